"""A random program: inputs and steps, both as lines of Python over named values, for one or several assignments of sizes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable

import torch

# Operands and sizes are names in a step's text, so that the text means the same for every assignment of sizes.
Shapes = tuple[tuple[int, ...], ...]  # one shape for each assignment


@dataclasses.dataclass(frozen=True)
class Input:
    """`text` makes it by numbers(shape), integers(high, shape) or from earlier inputs; {shape} is filled in for each assignment."""

    name: str
    text: str
    shapes: Shapes
    leaf: bool = False  # its gradient is asked for

    def line(self, variant: int) -> str:
        return f"{self.name} = {self.text.format(shape=self.shapes[variant])}"


@dataclasses.dataclass(frozen=True)
class Step:
    text: str  # an expression, or a statement where there is no result
    operands: tuple[str, ...]
    results: tuple[str, ...] = ()

    def line(self) -> str:
        return f"{', '.join(self.results)} = {self.text}" if self.results else self.text


@dataclasses.dataclass(frozen=True)
class Program:
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    seed: int
    dtype: torch.dtype = torch.float32
    variants: int = 1
    kind: str = "inference"
    autocast: torch.dtype | None = None

    def body(self) -> str:
        lines = [f"def program({', '.join(x.name for x in self.inputs)}):", *(f"    {step.line()}" for step in self.steps)]
        return "\n".join([*lines, f"    return [{', '.join(self.outputs)}]"])

    def names(self, wide: bool) -> dict[str, Any]:
        """What the text may name beside values: two dtypes, which are f64 both where the program runs as a reference."""
        return {"torch": torch, "F": torch.nn.functional, "low": torch.float64 if wide else torch.bfloat16, "single": torch.float64 if wide else torch.float32}

    def function(self, wide: bool = False) -> Callable[..., list[Any]]:
        scope = self.names(wide)
        exec(compile(self.body(), f"<program {self.seed}>", "exec"), scope)
        return scope["program"]

    def arguments(self, variant: int = 0, device: str = "cpu", wide: bool = False, nudge: int | None = None) -> list[torch.Tensor]:
        """The inputs: always the same numbers, in f64 where wide, moved by a last place at random where nudge is a seed."""
        scope = {"torch": torch, **_makers(self.seed, self.dtype, device, wide, nudge)}
        for x in self.inputs:
            exec(x.line(variant), scope)
        return [scope[x.name].requires_grad_(x.leaf) for x in self.inputs]

    def source(self) -> str:
        """The program as a file that runs: compiled beside eager, largest differences printed."""
        ours = 'torch.compile(program, backend="cxxinductor"' + (", dynamic=True)" if self.variants > 1 else ")")
        context = f"torch.autocast(device, {self.autocast})" if self.autocast else "contextlib.nullcontext()"
        calls = []
        for variant in range(self.variants):
            lines = [x.line(variant) for x in self.inputs]
            leaves = [x.name for x in self.inputs if x.leaf]
            lines += [f"for leaf in [{', '.join(leaves)}]: leaf.requires_grad_()"] if leaves else []
            calls.append("\n".join([f"generator.manual_seed({self.seed})", *lines, f"return [{', '.join(x.name for x in self.inputs)}]"]))
        cases = "\n\n".join(f"def inputs_{i}():\n    " + call.replace("\n", "\n    ") for i, call in enumerate(calls))
        return f'''"""Fuzzed: kind {self.kind}, seed {self.seed}."""
import contextlib

import torch
import torch.nn.functional as F

device, low, single = "cpu", torch.bfloat16, torch.float32
generator = torch.Generator()


def numbers(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=generator).to({self.dtype}).to(device)


def integers(high, *shape):
    return torch.randint(0, high, shape, generator=generator).to(device)


{cases}


{self.body()}


def results(function, make):
    arguments = make()
    torch.manual_seed({self.seed})
    with {context}:
        outputs = function(*arguments)
    leaves = [x for x in arguments if x.requires_grad]
    roots = [y for y in outputs if isinstance(y, torch.Tensor) and y.requires_grad]
    gradients = torch.autograd.grad([y.float().sum() for y in roots], leaves, allow_unused=True) if roots else []
    return [y for y in (*outputs, *arguments, *gradients) if isinstance(y, torch.Tensor)]


compiled = {ours}
for make in [{", ".join(f"inputs_{i}" for i in range(self.variants))}]:
    for a, b in zip(results(compiled, make), results(program, make)):
        print(tuple(a.shape), tuple(b.shape), (a.double() - b.double()).abs().max().item() if a.numel() else 0)
'''


def _makers(seed: int, dtype: torch.dtype, device: str, wide: bool, nudge: int | None) -> dict[str, Callable[..., torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    moves = torch.Generator().manual_seed(nudge or 0)

    def numbers(*shape: int) -> torch.Tensor:
        x = torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype)
        if nudge is not None:
            step = torch.randint(-1, 2, x.shape, generator=moves)
            x = torch.where(step == 0, x, torch.nextafter(x, torch.copysign(torch.full_like(x, math.inf), step)))
        return x.to(device, torch.float64 if wide else dtype)

    def integers(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, high, shape, generator=generator).to(device)

    return {"numbers": numbers, "integers": integers}
