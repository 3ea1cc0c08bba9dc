"""Tensors whose memory changes its size or is shown by others, and calls that are not recorded."""

from __future__ import annotations

from typing import Any, Callable

import torch

from . import program


def raises(call: Callable[[], Any]) -> bool:
    try:
        call()
    except RuntimeError:
        return True
    return False


@program
def refused_calls_leave_nothing_behind(where: str) -> Any:
    """A tensor of another device is an operand of the backing device's ATen alone. Nothing of its call may stay."""
    results = []
    for length, dtype in ((1000, torch.float32), (2, torch.float32), (2, torch.int64)):
        x = torch.ones(length, dtype=dtype).to(where)
        results.append(raises(lambda: torch.add(x, torch.ones(length))))  # noqa: B023
        results.append(x * 2)
    return results


@program
def memory_that_grows_after_a_refused_call(where: str) -> Any:
    x, mask = torch.arange(4.0).to(where), torch.tensor([True, False, True, True]).to(where)
    y = x[mask]
    x.resize_(8)
    x[4:] = 7
    return x * 2, y


@program
def memory_that_shrinks(where: str) -> Any:
    x = torch.zeros(6).to(where)
    x.resize_(3)
    x.fill_(4)
    y = torch.arange(3.0).to(where)
    y.view(3).resize_(1).fill_(9)
    z = torch.arange(3.0).to(where)
    z.detach().resize_(0)
    w = torch.arange(3.0).to(where)
    w.data.resize_(2)
    return x, y, z + 1, w


@program
def memory_without_elements(where: str) -> Any:
    x, y = torch.zeros(0, 3).to(where), torch.empty(0, device=where)
    y.resize_as_(x).copy_(x)
    return y.view(-1), y


@program
def results_in_a_view(where: str) -> Any:
    x = torch.zeros(3).to(where)
    torch.sum(torch.arange(6.0).to(where).view(2, 3), 1, out=x.view(3).resize_(2))
    return x


@program
def results_in_longer_memory(where: str) -> Any:
    x = torch.unique_consecutive(torch.tensor([5.0, 1.0, 1.0, 3.0]).to(where))
    torch.nonzero(x[1:])
    return x


@program
def writes_that_eager_refuses(where: str) -> Any:
    x = torch.zeros(3).to(where)
    x.add_(1)
    repeated = raises(lambda: torch.zeros(3, 1).to(where).expand(3, 4).add_(1))
    beyond = raises(lambda: torch.as_strided(x, (4,), (1,)))
    integers = torch.tensor([1, 2, 3]).to(where)
    masked = torch.bitwise_and(integers, 1)
    return x, repeated, beyond, masked, raises(lambda: torch.bitwise_and(integers, 1.5))


@program
def scalars_after_an_error(where: str) -> Any:
    x, scalar = torch.ones(3).to(where), torch.tensor(2.0)
    raises(lambda: torch.add(scalar, x.index_select(0, torch.tensor([0]).to(where)).reshape(7)))
    scalar.fill_(5.0)
    return torch.mul(x, scalar)


@program
def memory_nobody_wrote_to(where: str) -> Any:
    torch.use_deterministic_algorithms(True)
    try:
        x, y, z = torch.empty(3, device=where), torch.empty(2, dtype=torch.int32, device=where), torch.empty(2, dtype=torch.bool, device=where)
    finally:
        torch.use_deterministic_algorithms(False)
    return x, y, z
