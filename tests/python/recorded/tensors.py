"""Tensors by themselves: conversions, views, indices, writes, printing, random numbers."""

from __future__ import annotations

import math
from typing import Any

import torch

from . import program
from .loops import data


@program
def conversions(where: str) -> Any:
    x = data(2, 3, 4, 5).to(where)
    last = x.to(memory_format=torch.channels_last)
    forms = [
        x.to(torch.float64), x.to(torch.int32), x.to(where), x.to(where, torch.bfloat16), x.to(where, non_blocking=True), x.to(x.double()),
        x.to(where, copy=True), last, last.to(torch.half), last.contiguous(), x.type(torch.int64), x.bool(), x.half(), x.cpu(), x.cpu().to(where),
        x.to(device=where, dtype=torch.float16, memory_format=torch.channels_last), x.type_as(last.long()), x[:, ::2].to(torch.float64), x.mT.to(where, copy=True),
        torch.as_tensor(x, dtype=torch.float64), torch.as_tensor([1.0, 2.0], device=where), torch.tensor([[1, 2]], device=where), torch.asarray(x, copy=True),
    ]  # fmt: skip
    assert x.to(where) is x and x.to(torch.float32) is x and x.to(where, copy=True) is not x
    return [forms, [y.stride() for y in forms]]


@program
def to_numpy(where: str) -> Any:
    import numpy

    x = (data(3, 4).to(where) * 2).requires_grad_()
    array = x.detach().cpu().numpy()
    back = torch.from_numpy(array).to(where)
    floats = numpy.asarray(x.detach().cpu()[1]).tolist()
    return [back, floats, x.tolist(), float(x[0, 0]), int(x[0, 1]), bool(x[0, 2] > 0), math.floor(x[1, 1].item()), x[0, 1:3].tolist()]


@program
def printing(where: str) -> Any:
    kind = torch.device(where).type
    x = data(3, 4).to(where)
    texts = [repr(x), repr(x[0].requires_grad_()), str((x > 0)), repr(x.long()), f"{x[0, 0]:.3f}", repr(torch.nn.Linear(2, 2).to(where).weight[0]), repr(torch.empty(0).to(where))]
    plain = [text.replace(f", device='{kind}:0'", "").replace("MulBackward0", "") for text in texts]
    return [" ".join(text.split()) for text in plain]


@program
def views(where: str) -> Any:
    x = data(4, 6).to(where)
    made = [
        x.view(24), x.t(), x[1], x[:, 1:4], x.reshape(2, 12), x.unsqueeze(1), x.expand(2, 4, 6), x.diagonal(), x.unfold(1, 3, 2), x.as_strided((2, 2), (1, 2), 3),
        *x.split(2), *x.chunk(3, 1), *x.unbind(0), x.movedim(0, 1), x.narrow(1, 2, 3), x.flatten(), x.unflatten(1, (2, 3)), x.view(torch.int32), x.select(1, -1), x.squeeze(), x.T[2:4].T,
    ]  # fmt: skip
    x.mul_(2)
    made[1][0] = 7
    made[3].add_(1)
    assert all(y._base is x for y in made if y.dtype == x.dtype) and made[2]._is_view()
    return [x, made, [y.storage_offset() for y in made], [y.stride() for y in made]]


@program
def views_of_other_dtypes(where: str) -> Any:
    x = data(4, 6).to(where)
    bits = x.view(torch.int32)
    bits ^= 1
    halves = x.view(torch.int16)
    pairs = torch.view_as_complex(x.view(4, 3, 2))
    again = torch.view_as_real(pairs * 2)
    return [x, bits, halves, pairs, again]


@program
def indices(where: str) -> Any:
    x = data(5, 6).to(where)
    rows, mask = torch.tensor([3, 0, 3]).to(where), x > 0
    y = x.clone()
    y[mask] = 0
    y[rows] += 1
    y[:, 2] = x[:, 0]
    y[1:3, ::2] = torch.tensor([1.0, 2.0, 3.0])
    y[..., -1] = 5
    z = x.clone().requires_grad_()
    (z[mask].sum() + z[rows, rows].sum() + z[None, 2:, [0, 1]].sum()).backward()
    return [
        x[mask], x[rows], x[rows, :2], x[[0, 1], [2, 3]], x[:, mask[0]], x[mask[:, 0], 1:], x[torch.tensor(2)], x[..., None], y, z.grad, x.masked_select(mask), mask.nonzero(),
        x.index_select(0, rows), x.gather(1, rows[:, None].expand(3, 2)), x.scatter(0, rows[None], 1.0), x.index_add(0, rows, x[:3]), torch.where(mask, x, 0), x.masked_fill(mask, -1),
        x.take(rows), x.index_copy(0, rows[:2], x[:2]), x.index_fill(1, rows, 2.0), x.scatter_add(0, rows[None].expand(1, 3), x[:1]), x.scatter_reduce(1, rows.expand(5, 3), x, "amax"),
    ]  # fmt: skip


@program
def sizes_that_are_data(where: str) -> Any:
    x = (data(40) * 3).round().to(where)
    return [
        x.unique(), *torch.unique(x, return_inverse=True, return_counts=True), x.nonzero(), torch.nonzero(x > 0, as_tuple=True), x[x > 1], x.long().abs().bincount(), torch.where(x > 0),
        x.unique_consecutive(), torch.repeat_interleave(x[:3], torch.tensor([2, 0, 1]).to(where)), x.topk(3), x.sort(), x.argsort(), x.median(), x.mode(), x.kthvalue(3), torch.histc(x, 5),
        torch.combinations(x[:3]), x.count_nonzero(), torch.isin(x, x[:3]), torch.searchsorted(x.sort().values, x[:4]), torch.nn.functional.one_hot(x.long().abs()),
    ]  # fmt: skip


@program
def writes(where: str) -> Any:
    x = data(4, 6).to(where)
    x.add_(1).mul_(2).clamp_(-1, 3).copy_(x.flip(0)).sub_(x[0].clone())
    x[0].fill_(3)
    x.t().select(0, 1).zero_()
    x.masked_fill_(x > 2, 0).exp_().addcmul_(x, x, value=0.1).lerp_(torch.ones_like(x), 0.5)
    out = torch.empty(0, device=where)
    torch.add(x, 1, out=out)
    given = torch.empty(4, 6, device=where)
    torch.mul(x, 2, out=given)
    x += 1
    x /= 2
    x **= 2
    x.data.neg_()
    shown = x.detach()
    shown.mul_(3)
    reset = data(3).to(where)
    reset.data = x[1].clone()
    grown = data(2).to(where).resize_(3)[:2]
    return [x, out, given, shown, reset, grown, x._version]


@program
def metadata_in_place(where: str) -> Any:
    x = data(4, 6).to(where)
    x.t_()
    y = data(4, 1, 6).to(where)
    y.squeeze_().unsqueeze_(0).transpose_(0, 1)
    z = (data(3, 2).to(where) + 1).detach_()
    w = data(6).to(where)
    w.as_strided_((2, 2), (2, 1), 1)
    v = data(2, 3).to(where)
    v.set_(data(4).to(where))
    v.swapaxes_(0, 0)
    return [x * 2, y + 1, z, w, v, x.stride(), y.stride()]


@program
def scalars_of_the_cpu(where: str) -> Any:
    x = data(3, 4).to(where)
    s, i = torch.tensor(2.5), torch.tensor(3)
    y = x.clone()
    y[0] = s
    y *= s
    return [x * s, s * x, x + i, torch.where(x > 0, x, s), torch.where(x > 0, s.to(where), i.to(where)), y, x.pow(i), torch.full((2,), 3.0, device=where) * s, x.clamp(min=s.to(where)), x.masked_fill(x > 0, s), x.half() * s, x.long() * s, torch.maximum(x, s.to(where))]  # fmt: skip


@program
def random_numbers(where: str) -> Any:
    torch.manual_seed(11)
    first = [torch.rand(5, device=where), torch.randn(3, 2, device=where), torch.randint(10, (4,), device=where), torch.randperm(6, device=where), torch.empty(4, device=where).uniform_(-1, 1)]
    x = torch.ones(6, device=where)
    more = [torch.bernoulli(x * 0.3), x.clone().normal_(), x.clone().exponential_(), torch.multinomial(x, 3), torch.normal(x, 2.0), torch.rand_like(x), torch.randn_like(x.double()), torch.empty(3, device=where).log_normal_(), torch.empty(3, device=where).geometric_(0.3), torch.poisson(x * 4), torch.nn.functional.gumbel_softmax(x), torch.nn.functional.rrelu(-x, training=True), torch.distributions.Normal(x, x).sample()]  # fmt: skip
    generator = torch.Generator(where).manual_seed(4)
    drawn = torch.rand(3, generator=generator, device=where), torch.randperm(4, generator=generator, device=where)
    state = generator.get_state()
    again = torch.rand(2, generator=generator, device=where)
    generator.set_state(state)
    torch.manual_seed(11)
    return [first, more, drawn, again, torch.rand(2, generator=generator, device=where), torch.rand(5, device=where), generator.initial_seed()]


@program
def forked_random_numbers(where: str) -> Any:
    kind = torch.device(where).type
    torch.manual_seed(2)
    with torch.random.fork_rng([0] if kind != "cpu" else [], device_type=kind if kind != "cpu" else "cuda"):
        inside = torch.rand(3, device=where)
    torch.manual_seed(2)
    return [inside, torch.rand(3, device=where)]


@program
def several_indices(where: str) -> Any:
    kind = torch.device(where).type
    second = f"{kind}:1" if torch.get_device_module(kind).device_count() > 1 else where
    x = data(3, 4).to(where)
    y = x.to(second) * 2
    z = torch.ones(2, device=second, requires_grad=True)
    (z.to(where) * 3).sum().backward()
    layers = torch.nn.Linear(4, 4).to(where), torch.nn.Linear(4, 2).to(second)
    out = layers[1](layers[0](x).to(second))
    out.sum().backward()
    return [y, y.to(where) + x, z.grad, out, layers[0].weight.grad, layers[1].weight.grad, (y.to(where) == x * 2).all()]


@program
def streams_and_events(where: str) -> Any:
    """Calls are recorded in their order, whatever the stream: programs for GPUs may ask for some."""
    x = data(3).to(where)
    if where == "cpu":
        return [x * 2, True]
    stream, event = torch.Stream(device=where), torch.Event(device=where)
    with stream:
        y = x * 2
        event.record(stream)
    stream.wait_event(event)
    event.synchronize()
    torch.accelerator.synchronize()
    return [y, stream.query() and event.query()]


@program
def factories(where: str) -> Any:
    x = data(2, 3).to(where)
    with torch.device(where):
        inside = [torch.ones(2), torch.arange(3), torch.tensor([1.5]), torch.nn.Linear(2, 2).weight.shape]
    return [
        torch.zeros(2, 3, device=where), torch.full((2,), 3, device=where), torch.arange(1, 9, 2, device=where), torch.linspace(0, 1, 5, device=where), torch.eye(3, device=where),
        torch.logspace(0, 1, 4, device=where), torch.tril_indices(3, 3, device=where), torch.hann_window(5, device=where), x.new_zeros(2), x.new_full((2,), 5), x.new_tensor([1.0]),
        torch.zeros_like(x), torch.full_like(x, 2), torch.ones_like(x, dtype=torch.int64), x.new_ones(3, dtype=torch.half), torch.scalar_tensor(2.0, device=where), inside,
        torch.complex(x, x), torch.polar(x.abs(), x), torch.vander(x[0]), torch.block_diag(x, x), torch.cartesian_prod(x[0], x[1]), torch.meshgrid(x[0], x[1], indexing="ij"), torch.tensor([True, False], device=where),
        torch.empty_like(x).fill_(1), torch.empty_strided((2, 2), (1, 2), device=where).zero_(), torch.from_numpy(x.cpu().numpy()).to(where),
    ]  # fmt: skip


@program
def complex_numbers(where: str) -> Any:
    x = torch.complex(data(3, 4), data(3, 4, seed=1)).to(where).requires_grad_()
    y = (x.conj() @ x.mT).abs().sum() + (x * x).real.sum() + x.imag.sum() + torch.fft.fft(x).abs().sum()
    y.backward()
    return [y, x.grad, x.conj().resolve_conj(), x.detach().conj(), x.detach().conj().imag.neg(), torch.fft.rfft(x.real.detach())]


@program
def algebra(where: str) -> Any:
    x = data(4, 4).to(where)
    square = (x @ x.T + 4 * torch.eye(4, device=where)).requires_grad_()
    y = torch.linalg.cholesky(square).sum() + torch.linalg.solve(square, x).sum() + torch.linalg.inv(square).sum() + torch.linalg.det(square) + torch.logdet(square)
    y.backward()
    return [y, square.grad, torch.linalg.svdvals(x), torch.linalg.eigvalsh(square.detach()), torch.linalg.norm(x), torch.einsum("ij,kj->ik", x, x), torch.linalg.qr(x)[1].abs(), torch.trapz(x), torch.cdist(x, x), torch.kron(x, x), torch.cov(x)]  # fmt: skip


@program
def sorted_and_scanned(where: str) -> Any:
    x = data(4, 6).to(where).requires_grad_()
    values, order = x.sort(1)
    top = x.topk(2, 1)
    (values.sum() + top.values.sum() + x.cumsum(0).sum() + x.cumprod(1).sum() + x.logcumsumexp(1).sum() + x.cummax(1).values.sum()).backward()
    return [values, order, top, x.grad, x.argmax(1), x.min(0), x.aminmax(), x.std(0), torch.var_mean(x, 1), x.quantile(0.3), x.nanmean(), x.logsumexp(1), x.prod(1), x.any(), x.norm(1, 0), x.diff(), x.roll(2), x.rot90(), x.triu()]  # fmt: skip


@program
def results_in_given_tensors(where: str) -> Any:
    x, y = data(3, 4).to(where), data(3, 4, seed=1).to(where)
    same, other, wide = torch.empty(3, 4, device=where), torch.empty(2, device=where), torch.empty(3, 4, device=where, dtype=torch.float64)
    torch.maximum(x, y, out=same)
    torch.div(x, 2, out=other)
    torch.add(x, y, out=wide)
    torch.mul(x, x, out=x)
    values, order = torch.empty(3, device=where), torch.empty(3, device=where, dtype=torch.int64)
    torch.max(x, 1, out=(values, order))
    expanded = torch.zeros(1, device=where).expand(3)
    failed = []
    for run in (lambda: torch.sub(y[1:], 1, out=y[:2]), lambda: torch.add(x[0, :3], 1, out=expanded), lambda: torch.mul(x, 0.5, out=torch.empty(3, 4, dtype=torch.int64, device=where))):
        try:
            run()
            failed.append("none")
        except Exception as error:
            failed.append(type(error).__name__)
    return [same, other, wide, x, y, values, order, failed]


@program
def equality(where: str) -> Any:
    x = data(3, 4).to(where)
    return [torch.equal(x, x.clone()), torch.allclose(x, x + 1e-9), (x == x).all().item(), x.isnan().any().item(), x.is_nonzero() if x.numel() == 1 else None, bool((x > 5).any()), x.sum().item() == x.sum().item(), x in [x], len(x), x.numel(), [row.sum().item() for row in x]]  # fmt: skip
