"""Runs programs of several calls, and those that fail call by call; what torch's tracing alone brings about is told apart."""

from __future__ import annotations

import collections
import dataclasses
from typing import Iterator

import torch
from torch._subclasses import FakeTensorMode
from torch.utils._pytree import tree_leaves

from .calls import Call
from .program import Program
from .run import Finding, check, strides


@dataclasses.dataclass
class Result:
    calls: list[Call]
    finding: Finding

    @property
    def is_traced_so(self) -> bool:
        return self.finding.kind.startswith("torch")


def sweep(program: Program, dynamic: bool = False) -> Iterator[Result]:
    finding = check(program, dynamic=dynamic)
    if not finding.kind:
        yield Result(list(program.calls), finding)
        return
    if len(program.calls) == 1:
        yield Result(list(program.calls), _blamed(program, finding, dynamic))
        return
    middle = len(program.calls) // 2
    parts = [result for half in (program.calls[:middle], program.calls[middle:]) for result in sweep(Program(half), dynamic)]
    yield from parts
    if not any(part.finding.kind for part in parts):
        yield Result(list(program.calls), dataclasses.replace(finding, text=f"only together: {finding.text}", externs=collections.Counter()))


def _blamed(program: Program, finding: Finding, dynamic: bool) -> Finding:
    """Sort "torch crash" and so on where the graph fails alike as it comes from torch, run in eager."""
    if finding.kind == "fallback":
        return finding
    traced = check(program, "aot_eager", dynamic)
    if finding.kind == "wrong" and finding.text.startswith("strides") and _are_others_in_tracing(program):
        return dataclasses.replace(finding, kind="torch wrong")
    alike = traced.kind == finding.kind and (finding.kind != "wrong" or traced.text.split(":")[0] == finding.text.split(":")[0])
    return dataclasses.replace(finding, kind=f"torch {finding.kind}") if alike else finding


def _are_others_in_tracing(program: Program) -> bool:
    """Whether the call has other strides on fake tensors than in eager: compiled code has those of fake tensors, which guards were made for."""

    def found(arguments: list[torch.Tensor]) -> list[list[int]]:
        results = tree_leaves(program.function()(*arguments))
        return [strides(y) for y in results if isinstance(y, torch.Tensor)]

    arguments = program.arguments()
    with FakeTensorMode() as mode:
        fake = found([mode.from_tensor(x) for x in arguments])
    return fake != found(arguments)
