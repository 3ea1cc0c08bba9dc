"""Errors are of eager's type."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn

from . import program
from .loops import data


def error_of(run: Callable[[], Any]) -> str:
    try:
        run()
    except Exception as error:
        return type(error).__name__
    return "none"


@program
def wrong_calls(where: str) -> Any:
    x, ids = data(3, 4).to(where), torch.tensor([0, 1]).to(where)
    leaf = nn.Parameter(x.clone())
    spent = (leaf * 2).sum()
    spent.backward()
    return [
        error_of(run)
        for run in (
            lambda: x @ x,
            lambda: x + data(3, 3).to(where),
            lambda: x.view(5, 5),
            lambda: x[7],
            lambda: x[:, 9],
            lambda: x.sum(5),
            lambda: torch.cat([x, x[:, :2]], 0),
            lambda: nn.Linear(3, 2).to(where)(x),
            lambda: x.bogus,
            lambda: leaf.add_(1),
            lambda: spent.backward(),
            lambda: x.backward(),
            lambda: x.item(),
            lambda: bool(x),
            lambda: float(x),
            lambda: x.long().mean(),
            lambda: torch.nn.functional.embedding(ids.float(), x),
            lambda: x.expand(2, 2),
            lambda: x.half() @ x,
            lambda: x.log_softmax(4),
            lambda: x.requires_grad_().long().requires_grad_(),
            lambda: torch.zeros(-1, device=where),
            lambda: x.bitwise_and(x),
            lambda: x.reshape(7),
            lambda: torch.stack([x, x[0]]),
            lambda: x.index_select(0, ids.float()),
            lambda: x.unsqueeze(5),
            lambda: torch.nn.functional.conv2d(x, x),
            lambda: nn.functional.dropout(x, 1.5),
            lambda: x.expand(2, 3, 4).add_(1),
            lambda: x[0].copy_(x),
            lambda: x.index_add(0, ids, x[:1]),
            lambda: x.index_add(0, ids, x[:2].double()),
            lambda: x.scatter(0, ids[None], x[:1, :1]),
            lambda: x.gather(0, x[:1]),
            lambda: torch.nn.functional.nll_loss(x, ids),
            lambda: torch.nn.functional.nll_loss(x[:2], ids.float()),
            lambda: x << x,
            lambda: torch.linalg.cholesky(-torch.eye(3, device=where)).cpu(),
        )
    ]


@program(not_on_gpus="ends the process on a GPU")
def indices_out_of_range(where: str) -> Any:
    x = data(3, 4).to(where)
    return [error_of(run) for run in (lambda: x[torch.tensor([5]).to(where)].cpu(), lambda: nn.functional.embedding(torch.tensor([9]).to(where), x).cpu(), lambda: x.gather(0, torch.tensor([[8]]).to(where)).cpu())]  # fmt: skip


@program
def written_after_saving(where: str) -> Any:
    def run() -> None:
        x = data(3).to(where).requires_grad_()
        y = x.exp()
        y.add_(1)
        y.sum().backward()

    return error_of(run)


@program
def goes_on_after_an_error(where: str) -> Any:
    x = data(3, 4).to(where)
    y = x * 2
    failed = error_of(lambda: y @ y)
    z = y + 1
    return [failed, z, y]


@program
def anomalies(where: str) -> Any:
    def run() -> None:
        with torch.autograd.detect_anomaly():
            x = torch.zeros(2, device=where, requires_grad=True)
            (x.sqrt() * 0).sum().backward()

    return error_of(run)


@program
def sparse_gradients_are_refused(where: str) -> Any:
    """The device has no sparse tensors."""
    table = nn.Embedding(4, 2, sparse=True).to(where)
    failed = error_of(lambda: table(torch.tensor([1]).to(where)).sum().backward())
    return failed if where not in ("cpu", "cuda") else "NotImplementedError"
