"""cxxinductor: a C++ tensor compiler for PyTorch.

Use it as ``torch.compile(model, backend="cxxinductor")``; no import is needed. This module adds
``explain``, ``optimize`` (for TorchScript), ``package``, ``load``, ``register_device`` (ops are recorded),
``register_op`` and ``register_reduction`` (ops of your own in kernels), ``register_decomposition``, ``register_graph_pass`` and
``register_pattern`` (changes of graphs), ``load_target`` (kernels by a library of yours), ``plan_text``, ``set_remote_cache``,
``counters``, ``memory_snapshot`` and ``option_table``.
"""

from typing import Any, NoReturn

import torch

if not torch.__version__.startswith("2.11."):
    raise ImportError(
        f"cxxinductor is built for torch 2.11.*, found {torch.__version__}; install torch==2.11.* or rebuild cxxinductor"
    )

from . import device_guard  # noqa: E402

device_guard.keep_for_all_threads()

from . import _C  # noqa: E402  (torch must be loaded first: it brings the libraries that _C links)
from .cache_transfer import set_remote_cache  # noqa: E402
from .config import option_table  # noqa: E402
from .device import device_counters, explain_device, mark_step, register_device  # noqa: E402
from .errors import DeviceIndexOutOfRange, IndexOutOfRange, InternalError, KernelMismatch, Unsupported, UserError  # noqa: E402
from .explain import Explanation, GraphBreak, explain  # noqa: E402
from .extend import load_target, register_decomposition, register_graph_pass, register_op, register_pattern, register_reduction  # noqa: E402
from .packages import LoadedModel, load, package  # noqa: E402
from .planning import plan_text  # noqa: E402
from .torchscript import optimize  # noqa: E402

__version__ = "0.1.0"
__all__ = [
    "DeviceIndexOutOfRange",
    "Explanation",
    "GraphBreak",
    "IndexOutOfRange",
    "InternalError",
    "KernelMismatch",
    "LoadedModel",
    "Unsupported",
    "UserError",
    "counters",
    "device_counters",
    "explain",
    "explain_device",
    "mark_step",
    "memory_snapshot",
    "register_decomposition",
    "register_device",
    "register_graph_pass",
    "register_op",
    "register_pattern",
    "register_reduction",
    "wait_for_compiles",
    "load",
    "load_target",
    "optimize",
    "option_table",
    "package",
    "plan_text",
    "reset_counters",
    "set_remote_cache",
]


_RENAMED = {"finish_compiles": "wait_for_compiles"}


def __getattr__(name: str) -> NoReturn:
    if name in _RENAMED:
        raise AttributeError(f"cxxinductor.{name} was renamed: use cxxinductor.{_RENAMED[name]}")
    raise AttributeError(f"module 'cxxinductor' has no attribute {name!r}")


def counters() -> dict[str, int]:
    """Counts since the process started or reset_counters(): graphs, kernels, extern (ops that run through ATen inside
    compiled graphs), aten_fallback (graphs that run through ATen whole), eager_fallback (graphs given back to eager),
    checked_launches (launches of kernels that option check compared and found right), background_compiles (graphs that were given to a
    thread in the background: backward graphs, and those of option background) and background_calls (calls that ran through ATen meanwhile),
    copied_results (results of library calls that were computed elsewhere and copied into the graph's memory, because the backend that PyTorch took
    for the call cannot write there), cache_hits and cache_writes (entries of the cache on disk: plans, machine code and AOTAutograd's results).
    A graph compiled in the background counts as a graph from the first call that uses it. Of CUDA graphs (option cuda_graphs):
    graph_recordings (stretches recorded), graph_replays, graph_patched_nodes (nodes that the host gave other addresses before a replay; those that a
    recording updates itself are not counted) and
    graph_refusals (stretches that cannot be recorded)."""
    return _C.counters()


def memory_snapshot() -> list[dict[str, Any]]:
    """The allocations that compiled graphs of this process hold between calls, on all devices, one dict each:

    kind: "constant", a tensor of the model that a graph holds; "prepared", what option freezing computed once; "recording", a segment
    of torch's allocator for what libraries allocate in CUDA graphs (option cuda_graphs), of all graphs together; "scratch", memory that
    their replays on a stream use one after the other.
    name: of the buffer in the plan. graph: the graph's name. origin: of "prepared", the kernel or call that made it, with the path of
    the module. Recordings and scratch memory have none of these: "".
    device: "cpu", "cuda:0". address: of the allocation, as in the blocks of torch.cuda.memory_snapshot() (for recordings, in its
    segments). bytes: of the allocation.

    An allocation that two graphs hold is listed for both. What a running call holds is not listed: while
    torch.cuda.memory._record_memory_history() is on, calls put "cxxinductor: graph NAME" into the user metadata of their allocations."""
    return _C.memory_snapshot()


def wait_for_compiles() -> None:
    """Waits for what is compiled in the background: backward graphs, graphs of option background, and specialized kernels for the
    sizes and addresses of recent calls. The general kernel, or ATen, runs until they are compiled. For benchmarks and tests; nothing
    else needs it."""
    _C.wait_for_compiles()


def reset_counters() -> None:
    """Sets every counter to zero."""
    _C.reset_counters()
