"""What a failing program is told as: its seed, and the smallest program found that fails, as a file that runs."""

from __future__ import annotations

import logging

import torch

from .program import Program
from .run import check
from .shrink import shrink


def problem(program: Program, device: str) -> str | None:
    """What is wrong with the compiled program, in a line or two; None too where torch's tracing alone brings it about."""
    found = _problem(program, device, "cxxinductor")
    return None if found is None or _kind(_problem(program, device, "aot_eager")) == _kind(found) else found


def _problem(program: Program, device: str, backend: str) -> str | None:
    try:
        check(program, device, backend)
        return None
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip()[:600]}"
    finally:
        torch._dynamo.reset()


def failure(program: Program, device: str, seconds: float = 60.0) -> str | None:
    """None, or a report; the program is made smaller for at most that long."""
    found = problem(program, device)
    if found is None:
        return None
    logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
    kind = _kind(found)
    small = shrink(program, lambda p: _kind(problem(p, device)) == kind, seconds)
    return f"{program.kind}, seed {program.seed}: {found}\nReduced, it fails with: {problem(small, device)}\n\n{small.source()}"


def _kind(found: str | None) -> str | None:
    """Failures of one sort may be one bug."""
    return None if found is None else " ".join(found.split()[: 3 if "AssertionError" in found else 1])
