"""cxxinductor: a C++ tensor compiler for PyTorch.

Use it as ``torch.compile(model, backend="cxxinductor")``; no import is needed. This module offers what is beside that:
``explain``, ``plan_text``, ``counters`` and ``option_table``.
"""

import torch

if not torch.__version__.startswith("2.11."):
    raise ImportError(
        f"cxxinductor is built for torch 2.11.*, found {torch.__version__}; install torch==2.11.* or rebuild cxxinductor"
    )

from . import _C  # noqa: E402  (torch must be loaded first: it brings the libraries that _C links)
from .config import option_table  # noqa: E402
from .errors import DeviceIndexOutOfRange, IndexOutOfRange, InternalError, KernelMismatch, Unsupported, UserError  # noqa: E402
from .explain import Explanation, explain  # noqa: E402
from .planning import plan_text  # noqa: E402

__version__ = "0.1.0"
__all__ = [
    "DeviceIndexOutOfRange",
    "Explanation",
    "IndexOutOfRange",
    "InternalError",
    "KernelMismatch",
    "Unsupported",
    "UserError",
    "counters",
    "explain",
    "wait_for_compiles",
    "option_table",
    "plan_text",
    "reset_counters",
]


def counters() -> dict[str, int]:
    """Counts since the process started or reset_counters(): graphs, kernels, extern (ops that run through ATen inside
    compiled graphs), aten_fallback (graphs that run through ATen whole) and eager_fallback (graphs given back to eager)."""
    return _C.counters()


def wait_for_compiles() -> None:
    """Waits for kernels that are compiled beside running calls: those for sizes and addresses that came up only now (a general
    kernel serves until they are there). For benchmarks and tests; nothing else needs it."""
    _C.wait_for_compiles()


def reset_counters() -> None:
    """Sets every counter to zero."""
    _C.reset_counters()
