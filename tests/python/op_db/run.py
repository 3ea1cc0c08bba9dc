"""Runs a program compiled and in eager and compares: values, dtypes, strides, aliases, what inputs become, gradients; and counts calls into ATen."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
import random
import warnings
from typing import Any, Callable, Iterator, Sequence

import torch
from compare import nudged, offset_in, strides_of, whole_storage
from torch.utils._pytree import tree_leaves, tree_map

import cxxinductor
from cxxinductor import reports

from .program import Program

FACTOR = 8.0  # times eager's own error
NEAR = {torch.float64: 64, torch.float32: 8, torch.bfloat16: 2, torch.float16: 2}  # last places that need no reference
NUDGES = 8


@dataclasses.dataclass
class Outcome:
    outputs: list[Any]
    memory: list[torch.Tensor]  # all of each input's storage
    gradients: list[torch.Tensor | None]
    facts: dict[str, Any]  # equal where two runs are alike


@dataclasses.dataclass
class Finding:
    """`kind`: wrong (values, and all else that a caller sees), crash (an exception), fallback (a graph through ATen or eager), broken (several graphs)."""

    kind: str
    text: str
    externs: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    kernels: int = 0


def outcome(program: Program, function: Callable[..., Any], arguments: Sequence[torch.Tensor]) -> Outcome:
    random.seed(1)
    torch.manual_seed(1)
    versions = [x._version for x in arguments]
    outputs = tree_leaves(function(*arguments))
    tensors = [y for y in outputs if isinstance(y, torch.Tensor)]
    plain = [y for y in tensors if y.layout == torch.strided]
    facts: dict[str, Any] = {
        "types": [type(y).__name__ for y in outputs],
        "dtypes": [y.dtype for y in tensors],
        "devices": [y.device for y in tensors],
        "shapes": [tuple(y.shape) for y in tensors],
        "strides": [strides(y) for y in plain],
        "inputs written to": [x._version > v for x, v in zip(arguments, versions)],
        "outputs that alias inputs": [[_aliases(y, x) for x in arguments] for y in plain],
        "outputs that alias each other": [[_aliases(a, b) for b in plain] for a in plain],
    }
    gradients: list[torch.Tensor | None] = []
    leaves = [x for x in arguments if x.requires_grad]
    if program.form == "backward":
        facts["outputs with gradients"] = [y.requires_grad for y in tensors]
        roots = [y for y in tensors if y.requires_grad]
        if roots and leaves:
            gradients = list(torch.autograd.grad(roots, leaves, [_tangent(y, i) for i, y in enumerate(roots)], allow_unused=True))
    outputs = [y.detach() if isinstance(y, torch.Tensor) else y for y in outputs]
    return Outcome(outputs, [whole_storage(x) for x in arguments], gradients, facts)


def strides(tensor: torch.Tensor) -> list[int]:
    """Strides that place elements, where there are any."""
    return strides_of(tensor) if tensor.numel() else []


def _aliases(a: torch.Tensor, b: torch.Tensor) -> int | None:
    return offset_in(a, b) if b.numel() else None


def _tangent(y: torch.Tensor, position: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(position)
    return torch.randn(y.shape, dtype=torch.float64, generator=generator).to(torch.bfloat16).to(y.device, y.dtype)


# ---- One program -----------------------------------------------------------------------------------------------------
def check(program: Program, backend: str = "cxxinductor", dynamic: bool = False) -> Finding:
    """What is wrong with the compiled program; kind "" for nothing."""
    torch._dynamo.reset()
    cxxinductor.reset_counters()
    function = program.function()
    said: list[warnings.WarningMessage] = []
    with reports.collect() as graphs, one_graph(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        finding = _compared(program, function, backend, dynamic)
    counters = cxxinductor.counters()
    if finding.kind == "" and counters["aten_fallback"] + counters["eager_fallback"]:
        finding = Finding("fallback", next((str(w.message) for w in said if "cxxinductor" in str(w.message)), "no reason was given"))
    for graph in graphs:
        finding.externs.update(graph.details["externs"])
        finding.kernels += len(graph.details["kernels"])
    torch._dynamo.reset()
    return finding


@contextlib.contextmanager
def one_graph() -> Iterator[None]:
    """Calls whose results' sizes depend on data are part of graphs."""
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        yield


def _compared(program: Program, function: Callable[..., Any], backend: str, dynamic: bool) -> Finding:
    compiled = torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic or None)
    broken = ""
    try:
        ours = outcome(program, compiled, program.arguments())
    except torch._dynamo.exc.Unsupported as error:
        broken = _first_lines(error)
        torch._dynamo.reset()
        try:
            ours = outcome(program, torch.compile(function, backend=backend, dynamic=dynamic or None), program.arguments())
        except Exception as again:
            return Finding("crash", _first_lines(again))
    except Exception as error:
        return Finding("crash", _first_lines(error))
    try:
        eager = outcome(program, function, program.arguments())
    except Exception as error:
        return Finding("crash", f"in eager: {_first_lines(error)}")
    if difference := different(program, function, ours, eager):
        return Finding("wrong", difference)
    return Finding("broken", broken) if broken else Finding("", "")


def _first_lines(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()[:500]}"


# ---- The comparison --------------------------------------------------------------------------------------------------
def different(program: Program, function: Callable[..., Any], ours: Outcome, eager: Outcome) -> str:
    for name, expected in eager.facts.items():
        if ours.facts[name] != expected:
            return f"{name}: {ours.facts[name]}, in eager {expected}"
    measured: list[tuple[list[Any], list[list[Any]]]] = []

    def reference() -> tuple[list[Any], list[list[Any]]]:
        if not measured:
            measured.append(_reference(program, function, eager))
        return measured[0]

    for i, (a, e) in enumerate(zip(_values(ours), _values(eager), strict=True)):
        if not isinstance(e, torch.Tensor):
            # A gradient of zeros may be none.
            same = a == e or (a != a and e != e) or (isinstance(a, torch.Tensor) and e is None and not a.any())
            if not same and not (isinstance(a, float) and math.isclose(a, e, rel_tol=1e-5)):
                return f"{_place(eager, i)}: {a}, in eager {e}"
            continue
        if a is None:
            return f"{_place(eager, i)}: none, in eager a tensor"
        if text := _different_values(a, e, lambda i=i: (reference()[0][i], [run[i] for run in reference()[1]])):
            return f"{_place(eager, i)}: {text}"
    return ""


def _values(result: Outcome) -> list[Any]:
    return [*result.outputs, *result.memory, *result.gradients]


def _place(eager: Outcome, position: int) -> str:
    for name, values in [("output", eager.outputs), ("memory of input", eager.memory), ("gradient", eager.gradients)]:
        if position < len(values):
            return f"{name} {position}"
        position -= len(values)
    raise IndexError(position)


def _different_values(a: torch.Tensor, e: torch.Tensor, reference: Callable[[], tuple[Any, list[Any]]]) -> str:
    """What differs beyond what rounding explains, or "". The reference is made where it is needed."""
    if (a.dtype, a.shape) != (e.dtype, e.shape):
        return f"{a.dtype}{tuple(a.shape)}, in eager {e.dtype}{tuple(e.shape)}"
    if a.layout != torch.strided or not (e.is_floating_point() or e.is_complex()):
        a, e = (a, e) if a.layout == torch.strided else (a.to_dense(), e.to_dense())
        return _first_difference(a, e, (a != e) & ~((a != a) & (e != e)))
    eager_shape = e.shape
    if e.is_complex():
        a, e = torch.view_as_real(a.resolve_conj()), torch.view_as_real(e.resolve_conj())
    if wrong := _first_difference(a, e, a.isnan() != e.isnan()) or _first_difference(a, e, ~a.isnan() & ((a.isinf() | e.isinf()) & (a != e))):
        # Beside the largest finite number a last place is the way to infinity. Nor is it wrong to be right where eager is not.
        return wrong if not _overflows(a, e) and not _is_right(a, e, reference()[0]) else ""
    finite = e.isfinite()
    step = torch.finfo(e.dtype).eps
    near = NEAR.get(e.dtype, 2) * (step * e.abs().double() + torch.finfo(e.dtype).smallest_normal * step)
    far = finite & ((a.double() - e.double()).abs() > near)
    if not far.any():
        return ""
    r, others = reference()
    if not isinstance(r, torch.Tensor) or r.shape != eager_shape:
        r = e
    elif r.is_complex():
        r = torch.view_as_real(r.resolve_conj())
    others = [torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in others if isinstance(x, torch.Tensor)]
    named = r.dtype == e.dtype != torch.float64
    r = r.double()
    noise = torch.stack([(x.double() - r).abs() for x in (e, *others) if x.shape == r.shape])
    noise = torch.where(noise.isfinite(), noise, 0.0)
    # A call that names its dtype, and has no inputs to nudge: nothing measures what its sums lose beside their largest terms.
    unmeasured = step * e[finite].abs().max().double() if named and not noise.any() else 0.0
    # Of this element in any run, or a typical one's of all: rounding errors of sums are those of their largest terms.
    allowed = FACTOR * torch.maximum(noise.amax(0), noise.square().mean().sqrt()) + near + unmeasured
    return _first_difference(a, e, far & ((a.double() - r).abs() > allowed), r)


def _overflows(a: torch.Tensor, e: torch.Tensor) -> bool:
    largest = torch.finfo(e.dtype).max
    wrong = (a.isnan() != e.isnan()) | ((a != e) & (a.isinf() | e.isinf()))
    wrong &= ~(a.isnan() & e.isnan())
    x, y = a[wrong].double(), e[wrong].double()
    return bool(((x.abs() > 0.99 * largest) & (y.abs() > 0.99 * largest) & (x.sign() == y.sign())).all())


def _is_right(a: torch.Tensor, e: torch.Tensor, r: Any) -> bool:
    """Where eager has no number or infinity and f64 has a number, we have that number."""
    if e.dtype == torch.float64 or not isinstance(r, torch.Tensor) or r.shape != e.shape:
        return False
    wrong = (a.isnan() != e.isnan()) | (a.isinf() != e.isinf())
    return torch.equal(r[wrong].to(a.dtype), a[wrong])


def _first_difference(a: torch.Tensor, e: torch.Tensor, where: torch.Tensor, r: torch.Tensor | None = None) -> str:
    if not where.any():
        return ""
    place = tuple(where.nonzero()[0].tolist())
    exactly = f", in f64 {r[place].item()}" if r is not None else ""
    return f"{int(where.sum())} of {where.numel()} elements, first at {list(place)}: {a[place].item()}, in eager {e[place].item()}{exactly}"


def _reference(program: Program, function: Callable[..., Any], eager: Outcome) -> tuple[list[Any], list[list[Any]]]:
    """Eager's values in f64, and those of nudged inputs; eager's own where it does not run in f64."""

    def widen(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            return x.detach().double().requires_grad_(x.requires_grad)
        return x

    def nudge(x: torch.Tensor, seed: int) -> torch.Tensor:
        with torch.no_grad():
            return nudged(x.detach(), seed).requires_grad_(x.requires_grad)

    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        wide = _values(outcome(program, function, tree_map(widen, program.arguments())))
    except Exception:
        wide = [None] * len(_values(eager))
    finally:
        torch.set_default_dtype(before)
    others = []
    for seed in range(1, NUDGES + 1):
        with contextlib.suppress(Exception):
            others.append(_values(outcome(program, function, [nudge(x, seed) for x in program.arguments()])))
    return wide, others
