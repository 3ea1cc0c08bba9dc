"""Training loops as people write them."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torch.utils.data import DataLoader, TensorDataset

from . import program


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip


def data(*sizes: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))


def labels(count: int, classes: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(classes, (count,), generator=torch.Generator().manual_seed(seed))


def gradients(model: nn.Module) -> list[torch.Tensor | None]:
    return [p.grad for p in model.parameters()]


def train(model: nn.Module, where: str, x: torch.Tensor, steps: int = 3, classes: int = 4) -> list[Any]:
    """Losses, then gradients, parameters and buffers of the last step."""
    model.to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, eps=1e-3)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model((x + step / 10).to(where)), labels(len(x), classes, step).to(where))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return [losses, gradients(model), model.state_dict()]


@program
def a_perceptron(where: str) -> Any:
    return train(perceptron(), where, data(6, 8))


@program
def convolutions_and_norms(where: str) -> Any:
    return train(images(), where, data(2, 3, 12, 12))


@program
def channels_last(where: str) -> Any:
    model = images().to(memory_format=torch.channels_last)
    result = train(model, where, data(2, 3, 12, 12).contiguous(memory_format=torch.channels_last))
    return [result, [p.stride() for p in model.parameters()]]


@program
def dropouts(where: str) -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout, self.alpha, self.features = nn.Dropout(0.3), nn.AlphaDropout(0.2), nn.FeatureAlphaDropout(0.2)
            self.channels, self.last = nn.Dropout1d(0.4), nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.alpha(self.dropout(x))
            return self.last(F.dropout(self.features(self.channels(x)), 0.1, inplace=True).sum(1))

    return train(Model(), where, data(4, 5, 8))


@program
def dropout_of_one_and_none(where: str) -> Any:
    x = data(5, 4).to(where).requires_grad_()
    kept, gone, same = F.dropout(x, 0.0), F.dropout(x, 1.0), F.dropout(x, 0.5, training=False)
    (kept + gone + same).sum().backward()
    return [kept, gone, same, x.grad]


@program
def attention(where: str) -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.last = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True), nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
            return self.last(self.attention(x, x, x, attn_mask=mask, is_causal=True)[0].mean(1))

    return train(Model(), where, data(3, 5, 8))


@program
def transformer(where: str) -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.all = nn.Transformer(8, 2, 1, 1, 16, dropout=0.1, batch_first=True)
            self.last = nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(self.all(x, x.flip(1)).mean(1))

    return train(Model(), where, data(3, 5, 8))


@program(atol=1e-5)
def attention_in_all_forms(where: str) -> Any:
    results = []
    for options in (
        {}, {"is_causal": True}, {"scale": 0.3}, {"attn_mask": data(5, 5).to(where)}, {"attn_mask": (data(2, 1, 5, 5) > -1).to(where)},
        {"dropout_p": 0.3}, {"enable_gqa": True},
    ):  # fmt: skip
        q = data(2, 4, 5, 8).to(where).requires_grad_()
        heads = 2 if "enable_gqa" in options else 4
        k, v = (data(2, heads, 5, 8, seed=seed).to(where).requires_grad_() for seed in (1, 2))
        y = F.scaled_dot_product_attention(q, k, v, **options)
        y.square().sum().backward()
        results.append([y, q.grad, k.grad, v.grad])
    return results


def _recurrent(where: str, make: Any) -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.last = make(), nn.Linear(12, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(self.inner(x)[0].mean(1))

    return train(Model(), where, data(3, 5, 8))


@program
def lstm(where: str) -> Any:
    with torch.backends.cudnn.flags(enabled=False):  # it draws its dropout from a state of its own
        return _recurrent(where, lambda: nn.LSTM(8, 6, num_layers=2, batch_first=True, dropout=0.2, bidirectional=True))


@program
def gru(where: str) -> Any:
    return _recurrent(where, lambda: nn.GRU(8, 12, batch_first=True))


@program
def rnn(where: str) -> Any:
    return _recurrent(where, lambda: nn.RNN(8, 12, batch_first=True, nonlinearity="relu"))


@program
def packed_sequences(where: str) -> Any:
    model = nn.LSTM(4, 6).to(where)
    x = data(5, 3, 4).to(where).requires_grad_()
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3, 2]))
    y, (h, c) = model(packed)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(y)
    (padded.sum() + h.sum() + c.sum()).backward()
    return [padded, lengths, h, c, x.grad, gradients(model)]


@program
def embeddings(where: str) -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.bag, self.last = nn.Embedding(10, 8, padding_idx=0), nn.EmbeddingBag(10, 8, mode="mean"), nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            ids = (x.abs() * 3).long().clamp(max=9)
            return self.last(self.table(ids).mean(1) + self.bag(ids))

    return train(Model(), where, data(4, 5))


@program
def gradients_accumulate(where: str) -> Any:
    model = perceptron().to(where)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(6):
        loss = model(data(4, 8, seed=step).to(where)).square().mean() / 3
        loss.backward()
        losses.append(loss.detach())
        if step % 3 == 2:
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1, error_if_nonfinite=True)
            losses.append(norm)
            optimizer.step()
            optimizer.zero_grad()
    return [losses, list(model.parameters())]


@program
def clipped_in_all_ways(where: str) -> Any:
    results = []
    for norm, foreach in ((2.0, None), (2.0, True), (2.0, False), (1.0, None), (float("inf"), None)):
        model = perceptron().to(where)
        model(data(4, 8).to(where)).square().sum().backward()
        results += [nn.utils.clip_grad_norm_(model.parameters(), 0.5, norm, foreach=foreach), gradients(model)]
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
        results.append(gradients(model))
    return results


@program
def checkpoints(where: str) -> Any:
    results = []
    for reentrant in (False, True):
        model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.ReLU(), nn.Linear(16, 8)).to(where)
        x = data(4, 8).to(where).requires_grad_()
        torch.manual_seed(3)
        y = checkpoint(model, x, use_reentrant=reentrant)
        y = checkpoint_sequential(model, 2, y, use_reentrant=reentrant)
        y.sum().backward()
        results += [y, x.grad, gradients(model)]
    return results


@program
def hooks(where: str) -> Any:
    seen: list[Any] = []
    model = perceptron().to(where)
    model[0].register_forward_hook(lambda module, inputs, output: output * 2)
    model[1].register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    model[3].register_full_backward_hook(lambda module, grads, outputs: seen.append(outputs[0]))
    model[3].weight.register_hook(lambda grad: grad * 0.5)
    model[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum()))
    x = data(4, 8).to(where).requires_grad_()
    y = model(x)
    y.retain_grad()
    y.register_hook(lambda grad: grad.clamp(max=0.5))
    y.square().sum().backward()
    return [y, y.grad, x.grad, seen, gradients(model)]


@program
def parametrizations(where: str) -> Any:
    from torch.nn.utils import parametrizations, prune, weight_norm

    results = []
    for wrap in (
        parametrizations.weight_norm, parametrizations.spectral_norm, weight_norm, nn.utils.spectral_norm,
        lambda layer: prune.l1_unstructured(layer, "weight", 0.3),
        lambda layer: parametrizations.orthogonal(layer, use_trivialization=False),
    ):  # fmt: skip
        layer = wrap(nn.Linear(6, 6)).to(where)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            layer(data(4, 6, seed=step).to(where)).square().sum().backward()
            optimizer.step()
        results.append(layer.state_dict())
    return results


@program
def vectors_of_parameters(where: str) -> Any:
    model = perceptron().to(where)
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector * 2, model.parameters())
    return [vector, list(model.parameters())]


@program
def copies_of_models(where: str) -> Any:
    model = perceptron().to(where)
    teacher = copy.deepcopy(model)
    x = data(4, 8).to(where)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        F.mse_loss(model(x), teacher(x).detach() + 1).backward()
        optimizer.step()
        with torch.no_grad():
            for mine, theirs in zip(teacher.parameters(), model.parameters()):
                mine.lerp_(theirs, 0.1)
    tied = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to(where)
    tied[1].weight = tied[0].weight
    other = copy.deepcopy(tied)
    assert other[1].weight is other[0].weight and not torch.equal(teacher[0].weight, model[0].weight)
    return [model.state_dict(), teacher.state_dict(), other.state_dict(), copy.copy(x), copy.deepcopy([x, x[1]])]


@program
def frozen_parts(where: str) -> Any:
    model = perceptron().to(where)
    model[0].requires_grad_(False)
    results = train(model, where, data(6, 8))
    model.eval()
    with torch.no_grad():
        quiet = model(data(2, 8).to(where))
    with torch.inference_mode():
        inference = model(data(2, 8).to(where)) * 2
        made = torch.ones(3, device=where).add_(1)
    return [results, quiet, inference.is_inference(), inference.clone(), made, made + 1]


@program
def gradients_of_gradients(where: str) -> Any:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(where)
    x = data(3, 4).to(where).requires_grad_()
    (first,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    ((first.norm(dim=1) - 1) ** 2).mean().backward()
    hessian = torch.autograd.functional.hessian(lambda t: t.pow(3).sum(), data(3).to(where))
    return [first, gradients(model), hessian]


@program
def functions_of_autograd(where: str) -> Any:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    x = data(5).to(where).requires_grad_()
    Cube.apply(x).sum().backward()
    return [x.grad]


@program
def a_loader(where: str) -> Any:
    set_of_all = TensorDataset(data(12, 8), labels(12, 4))
    model = perceptron().to(where)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for workers, pin in ((0, False), (1, False), (0, True)):
        # Pinned memory is the accelerator's: eager on a machine without one has none.
        loader = DataLoader(set_of_all, 4, shuffle=True, num_workers=workers, pin_memory=pin and where != "cpu", generator=torch.Generator().manual_seed(0))
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x.to(where, non_blocking=True)), y.to(where, non_blocking=True))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return [losses, model.state_dict()]


@program
def functional_calls(where: str) -> Any:
    model = perceptron().to(where)
    parameters = {name: p.detach() * 2 for name, p in model.named_parameters()}
    x = data(4, 8).to(where)

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.func.functional_call(model, parameters, (x,)).square().sum()

    return [torch.func.grad(loss)(parameters), torch.func.vmap(model)(x), torch.func.jacrev(model)(x)]


@program
def losses(where: str) -> Any:
    x, y = data(4, 5).to(where).requires_grad_(), data(4, 5, seed=1).to(where)
    target = labels(4, 5).to(where)
    found = [
        F.cross_entropy(x, target, label_smoothing=0.1, weight=y[0].abs()), F.nll_loss(F.log_softmax(x, 1), target), F.mse_loss(x, y), F.l1_loss(x, y),
        F.smooth_l1_loss(x, y), F.huber_loss(x, y, delta=0.5), F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=y[0].abs()),
        F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean"),
        F.hinge_embedding_loss(x, y.sign()), F.margin_ranking_loss(x[0], y[0], y[1].sign()), F.cosine_embedding_loss(x, y, y[:, 0].sign()),
        F.triplet_margin_loss(x, y, y.flip(0)), F.multi_margin_loss(x, target), F.multilabel_soft_margin_loss(x, (y > 0).float()),
        F.poisson_nll_loss(x, y.abs()), F.gaussian_nll_loss(x, y, y.abs() + 1), F.soft_margin_loss(x, y.sign()),
        F.ctc_loss(F.log_softmax(data(6, 2, 5).to(where), 2), torch.tensor([[1, 2], [3, 1]]).to(where), torch.tensor([6, 5]), torch.tensor([2, 2])),
    ]  # fmt: skip
    sum(found).backward()
    return [found, x.grad]
