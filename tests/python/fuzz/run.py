"""Runs a program compiled and in eager and compares all that a caller can see: values, strides, gradients, what inputs become, aliases."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.testing import CompileCounterWithBackend
from compare import assert_as_good_as_eager, offset_in, relative_error, whole_storage

import cxxinductor

from .program import Program

NUDGES, MORE_NUDGES = 3, 24
FACTOR = 8.0
# Where eager's own error is larger, a comparison tells nothing.
CHAOS = {torch.float64: 1e-10, torch.float32: 1e-3, torch.bfloat16: 0.2}


@dataclasses.dataclass
class Outcome:
    outputs: list[Any]
    memory: list[torch.Tensor]  # all of each input's storage
    gradients: list[torch.Tensor | None]
    facts: dict[str, Any]  # equal where two runs are alike
    generator: torch.Tensor

    def values(self) -> list[Any]:
        return [*self.outputs, *self.memory, *(g for g in self.gradients if g is not None)]


def outcome(program: Program, function: Any, variant: int, device: str, wide: bool = False, nudge: int | None = None) -> Outcome:
    """Runs `function`, a form of `program`, once, and its backward where inputs are leaves."""
    arguments = program.arguments(variant, device, wide, nudge)
    versions = [x._version for x in arguments]
    torch.manual_seed(program.seed)
    autocast = program.autocast is not None and not wide
    with torch.autocast(device, program.autocast or torch.bfloat16) if autocast else contextlib.nullcontext():
        outputs = function(*arguments)
    tensors = [y for y in outputs if isinstance(y, torch.Tensor)]
    facts = {
        "inputs written to": [x._version > v for x, v in zip(arguments, versions)],
        "outputs that alias inputs": [[offset_in(y, x) for x in arguments] for y in tensors],
        "outputs that alias each other": [[offset_in(a, b) for b in tensors] for a in tensors],
    }
    leaves = [x for x in arguments if x.requires_grad and x.is_leaf]
    roots = [y for y in tensors if y.requires_grad]
    gradients: list[torch.Tensor | None] = []
    if leaves:
        facts["outputs with gradients"] = [y.requires_grad for y in tensors]
    if leaves and roots:
        gradients = list(torch.autograd.grad(roots, leaves, [_tangent(y, i, program, wide) for i, y in enumerate(roots)], allow_unused=True))
    generator = torch.cuda.get_rng_state() if device == "cuda" else torch.get_rng_state()
    outputs = [y.detach() if isinstance(y, torch.Tensor) else y for y in outputs]
    return Outcome(outputs, [whole_storage(x) for x in arguments], gradients, facts, generator)


def _tangent(y: torch.Tensor, position: int, program: Program, wide: bool) -> torch.Tensor:
    """Contiguous, expanded and transposed ones, as autograd brings them."""
    generator = torch.Generator().manual_seed(program.seed + position)
    shape = y.shape if position % 3 else (1,) * y.dim()
    tangent = torch.randn(shape, dtype=torch.float64, generator=generator).to(torch.bfloat16).to(y.device, y.dtype).expand(y.shape)
    return tangent.transpose(0, -1).contiguous().transpose(0, -1) if position % 3 == 2 and y.dim() >= 2 else tangent


# ---- Programs that can be told right from wrong ----
def runs_in_eager(program: Program) -> bool:
    try:
        for variant in range(program.variants):
            outcome(program, program.function(), variant, "cpu")
            outcome(program, program.function(wide=True), variant, "cpu", wide=True)
        return True
    except Exception:
        return False


def is_telling(program: Program) -> bool:
    """Eager's results are finite, and near those of f64."""
    try:
        for variant in range(program.variants):
            eager = outcome(program, program.function(), variant, "cpu")
            reference = reference_of(program, variant, "cpu", eager)
            for a, b in zip(eager.values(), reference.values(), strict=True):
                if not isinstance(a, torch.Tensor) or not a.is_floating_point():
                    continue
                if not a.isfinite().all() or not b.isfinite().all() or relative_error(a, b) > CHAOS[_coarsest(program, a.dtype)]:
                    return False
        return True
    except Exception:
        return False


def _coarsest(program: Program, dtype: torch.dtype) -> torch.dtype:
    low = program.autocast is not None or torch.bfloat16 in (dtype, program.dtype) or "(low)" in program.body()
    return torch.bfloat16 if low else torch.float32 if program.dtype == torch.float32 or "(single)" in program.body() else torch.float64


def _draws(program: Program) -> bool:
    return any(word in program.body() for word in ("rand", "dropout", "bernoulli"))


def reference_of(program: Program, variant: int, device: str, eager: Outcome) -> Outcome:
    """In f64; numbers drawn there would be others, so that eager is its own reference where it draws some."""
    return eager if _draws(program) else outcome(program, program.function(wide=True), variant, device, wide=True)


# ---- The comparison ----
def check(program: Program, device: str = "cpu", backend: str = "cxxinductor") -> None:
    """Raises AssertionError, or what the compiler raised."""
    torch._dynamo.reset()
    cxxinductor.reset_counters()
    counting = CompileCounterWithBackend(backend)
    compiled = torch.compile(program.function(), backend=counting, dynamic=True if program.variants > 1 else None)
    refused = False
    for variant in range(program.variants):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
                ours = outcome(program, compiled, variant, device)
        counters = cxxinductor.counters()
        reason = next((str(w.message) for w in said if "cxxinductor" in str(w.message)), "")
        # Guards may make sizes equal in ways that expressions of them do not show, and 16-bit numbers of rank 0 take no floats made of
        # sizes: such graphs run through ATen, and their values are compared like others.
        refused |= program.variants > 1 and ("do not broadcast" in reason or "of type SymFloat" in reason)
        assert refused or counters["aten_fallback"] == counters["eager_fallback"] == 0, f"not compiled: {reason}"
        assert counting.frame_count == 1 or _torch_compiles_again(program, variant, device), f"compiled again for sizes {variant}"
        compare(program, ours, variant, device)
        if device == "cpu":
            again = outcome(program, compiled, variant, device)
            for a, b in zip(ours.values(), again.values(), strict=True):
                assert not isinstance(a, torch.Tensor) or torch.equal(a, b) or a.isnan().any(), "a second call gives something else"


def _torch_compiles_again(program: Program, variant: int, device: str) -> bool:
    """Are there guards of tracing and decomposing alone, which hold whatever the backend does?"""
    torch._dynamo.reset()
    run_as_traced = aot_autograd(fw_compiler=lambda gm, inputs: make_boxed_func(gm.forward), decompositions=cxxinductor.decompositions.table())
    counting = CompileCounterWithBackend("eager")
    counting.backend = run_as_traced
    traced = torch.compile(program.function(), backend=counting, dynamic=True)
    for earlier in range(variant + 1):
        outcome(program, traced, earlier, device)
    return counting.frame_count > 1


def compare(program: Program, ours: Outcome, variant: int, device: str) -> None:
    eager = outcome(program, program.function(), variant, device)
    for name, expected in eager.facts.items():
        assert ours.facts[name] == expected, f"{name}: {ours.facts[name]}, in eager {expected}"
    assert torch.equal(ours.generator, eager.generator), "torch's generator stands elsewhere"
    assert len(ours.gradients) == len(eager.gradients)
    for i, (a, b) in enumerate(zip(ours.gradients, eager.gradients)):
        assert (a is None) == (b is None) or (b is None and not a.any()), f"gradient {i}: one is None"
    keep = [i for i, g in enumerate(eager.gradients) if g is not None]
    reference = reference_of(program, variant, device, eager)

    def nudged(count: int) -> list[Outcome]:
        return [outcome(program, program.function(), variant, device, nudge=seed) for seed in range(1, count + 1)]

    def assert_equal(also: list[Outcome]) -> None:
        for part, of in [("outputs", lambda o: o.outputs), ("inputs", lambda o: o.memory), ("gradients", lambda o: [_packed(o.gradients[i]) for i in keep])]:
            coarse = _coarsest(program, program.dtype)
            slack = 256.0 if program.dtype == torch.float64 else 1.0  # the reference is no more precise than eager
            try:
                assert_as_good_as_eager(of(ours), of(eager), of(reference), FACTOR, [of(o) for o in also], precision=coarse, slack=slack)
            except AssertionError as error:
                raise AssertionError(f"{part} of sizes {variant}: {error}") from None

    try:
        assert_equal(nudged(NUDGES))
    except AssertionError:
        assert_equal(nudged(MORE_NUDGES))


def _packed(x: torch.Tensor) -> torch.Tensor:
    """Strides of gradients are nobody's promise."""
    return x.contiguous()
