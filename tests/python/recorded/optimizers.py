"""Every optimizer of torch.optim, with and without foreach and fused, and its learning rate schedulers."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn, optim

from . import program


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def batches(where: str, steps: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    make = torch.Generator().manual_seed(0)
    return [(torch.randn(4, 6, generator=make).to(where), torch.randn(4, 3, generator=make).to(where)) for _ in range(steps)]


def state_of(model: nn.Module, optimizer: optim.Optimizer) -> list[Any]:
    return [model.state_dict(), {str(k): v for k, v in optimizer.state_dict()["state"].items()}]


def train(where: str, make: Any, steps: int = 3, **options: Any) -> list[Any]:
    model = network().to(where)
    weights = [p for p in model.parameters() if p.dim() == 2] if make is optim.Muon else list(model.parameters())
    optimizer = make(weights, **options)
    losses = []
    for x, y in batches(where, steps):

        def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return [losses, *state_of(model, optimizer)]


def _add(make: Any, name: str, not_on_gpus: str = "", **options: Any) -> None:
    program(functools.partial(train, make=make, **options), name=f"{make.__name__} {name}".strip(), not_on_gpus=not_on_gpus)


FOREACH = (optim.Adadelta, optim.Adafactor, optim.Adagrad, optim.Adam, optim.AdamW, optim.Adamax, optim.ASGD, optim.NAdam, optim.RAdam, optim.RMSprop, optim.Rprop, optim.SGD)  # fmt: skip
for one in FOREACH:
    _add(one, "")
    _add(one, "foreach", foreach=True)
    _add(one, "one by one", foreach=False)
for one in (optim.Adam, optim.AdamW, optim.SGD):
    _add(one, "fused", fused=True)
_add(optim.Adagrad, "fused", not_on_gpus="eager has no fused Adagrad on a GPU", fused=True)
_add(optim.SGD, "momentum", momentum=0.9, nesterov=True, weight_decay=0.1)
_add(optim.SGD, "momentum fused", momentum=0.9, fused=True)
_add(optim.Adam, "amsgrad", amsgrad=True, maximize=True)
_add(optim.AdamW, "amsgrad fused", amsgrad=True, fused=True)
_add(optim.RMSprop, "centered", centered=True, momentum=0.5)
_add(optim.LBFGS, "", max_iter=4)
_add(optim.LBFGS, "strong Wolfe", max_iter=4, line_search_fn="strong_wolfe")
_add(optim.Muon, "")


@program
def capturable_adam(where: str) -> list[Any]:
    """`capturable` is for accelerators; its results are those of plain Adam."""
    model = network().to(where)
    optimizer = optim.Adam(model.parameters(), capturable=where != "cpu")
    for x, y in batches(where, 2):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return list(model.parameters())


@program
def learning_rate_is_a_tensor(where: str) -> list[Any]:
    return train(where, optim.AdamW, lr=torch.tensor(0.01), foreach=False)


@program
def optimizer_state_is_loaded(where: str) -> list[Any]:
    make = functools.partial(optim.AdamW, lr=0.01)
    model = network().to(where)
    optimizer = make(model.parameters())
    steps = batches(where, 4)

    def run(part: list[Any]) -> None:
        for x, y in part:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()

    run(steps[:2])
    saved = model.state_dict(), optimizer.state_dict()
    model = network().to(where)
    model.load_state_dict(saved[0])
    optimizer = make(model.parameters())
    optimizer.load_state_dict(saved[1])
    run(steps[2:])
    return state_of(model, optimizer)


@program
def groups_of_parameters(where: str) -> list[Any]:
    model = network().to(where)
    weights, biases = [p for p in model.parameters() if p.dim() > 1], [p for p in model.parameters() if p.dim() == 1]
    optimizer = optim.AdamW([{"params": weights, "weight_decay": 0.1}, {"params": biases, "lr": 0.1}])
    for x, y in batches(where, 2):
        optimizer.zero_grad(set_to_none=False)
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return state_of(model, optimizer)


SCHEDULERS = {
    "StepLR": dict(step_size=1),
    "ExponentialLR": dict(gamma=0.9),
    "CosineAnnealingLR": dict(T_max=4),
    "OneCycleLR": dict(max_lr=0.1, total_steps=8),
    "LinearLR": dict(),
    "CyclicLR": dict(base_lr=0.01, max_lr=0.1),
    "LambdaLR": dict(lr_lambda=lambda step: 0.5**step),
}


@program
def schedulers(where: str) -> list[Any]:
    results = []
    for name, options in SCHEDULERS.items():
        model = network().to(where)
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scheduler = getattr(optim.lr_scheduler, name)(optimizer, **options)
        for x, y in batches(where, 2):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            scheduler.step()
        results += [scheduler.get_last_lr(), *model.parameters()]
    return results


@program
def plateau(where: str) -> list[Any]:
    model = network().to(where)
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for x, y in batches(where, 4):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step(loss)
    return [scheduler.get_last_lr(), *model.parameters()]


@program
def averaged_models(where: str) -> list[Any]:
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)).to(where)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    mean = optim.swa_utils.AveragedModel(model)
    moving = optim.swa_utils.AveragedModel(model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9))
    steps = batches(where, 3)
    for x, y in steps:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        mean.update_parameters(model)
        moving.update_parameters(model)
    optim.swa_utils.update_bn([x for x, _ in steps], mean, device=where)
    return [mean.state_dict(), moving.state_dict()]
