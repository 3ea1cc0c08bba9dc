"""Runs an exported program through cxxinductor.load and compares it with eager."""

from __future__ import annotations

import copy
import dataclasses
import tempfile
import warnings
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves

import cxxinductor
from exported_programs import Program


@dataclasses.dataclass
class Outcome:
    """What became of a program: ``error`` is empty where every result is eager's."""

    error: str = ""
    fallback: str = ""  # why all of it runs through ATen
    kernels: int = 0
    graphs: int = 0
    explanation: str = ""


def exported(given: Program, decomposed: bool) -> torch.export.ExportedProgram:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args, kwargs = copy.deepcopy((given.args, given.kwargs))
        found = torch.export.export(given.module, args, kwargs, dynamic_shapes=given.dynamic_shapes, strict=given.strict)
        return found.run_decompositions() if decomposed else found


def same(found: Any, expected: Any, tolerance: float) -> str:
    """Where they differ; "" if they do not."""
    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected)):
        if not isinstance(b, torch.Tensor):
            if type(a) is not type(b) or a != b:
                return f"result {i} is {a!r}, expected {b!r}"
            continue
        if not isinstance(a, torch.Tensor) or a.dtype != b.dtype or a.shape != b.shape:
            return f"result {i} is {getattr(a, 'dtype', a)} {list(getattr(a, 'shape', []))}, expected {b.dtype} {list(b.shape)}"
        if a.stride() != b.stride() and a.numel() > 0 and any(s > 1 and x != y for s, x, y in zip(a.shape, a.stride(), b.stride())):
            return f"result {i} has strides {a.stride()}, expected {b.stride()}"
        try:
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            return f"result {i}: {' '.join(str(error).split())[:200]}"
    return ""


def run_program(given: Program, *, decomposed: bool = False, options: dict[str, Any] | None = None, tolerance: float = 2e-5) -> Outcome:
    """Each set of arguments in order, on a model that keeps its state between them, as eager does: the exported program in Python."""
    given.module.train(given.train)
    program = exported(given, decomposed)
    eager = copy.deepcopy(program).module()
    with tempfile.NamedTemporaryFile(suffix=".pt2") as file, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.export.save(program, file.name)
        before = cxxinductor.counters()
        outcome = Outcome()
        try:
            model = cxxinductor.load(file.name, options={**given.options, **(options or {})})
            for args in [given.args, *given.others]:
                ours, theirs = (copy.deepcopy((args, given.kwargs)) for _ in range(2))
                expected, structure = tree_flatten(eager(*theirs[0], **theirs[1]))
                found, found_structure = tree_flatten(model.run(*ours[0], **ours[1]))
                if found_structure != structure:
                    outcome.error = f"results nested as {found_structure}, expected {structure}"
                    break
                outcome.error = same(found, expected, tolerance) or same(tree_leaves(ours), tree_leaves(theirs), tolerance)
                if outcome.error:
                    break
            state = {**dict(eager.named_parameters()), **dict(eager.named_buffers())}
            for name in () if outcome.error else model.weight_names():
                if name in state:
                    outcome.error = outcome.error or same([model.weight(name)], [state[name].detach()], tolerance)
            outcome.explanation = model.explain()
        except Exception as error:  # of the library, or of torch below it
            outcome.error = f"{type(error).__name__}: {error}"
        after = cxxinductor.counters()
    outcome.kernels, outcome.graphs = after["kernels"] - before["kernels"], after["graphs"] - before["graphs"]
    if "runs op by op through ATen" in outcome.explanation:
        outcome.fallback = outcome.explanation.split("runs op by op through ATen: ", 1)[1].split("\n")[0]
    return outcome
