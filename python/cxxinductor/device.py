"""A device whose ops are recorded, and run compiled: the Python side of <cxxinductor/device.h>."""

from __future__ import annotations

import os
import types
from typing import Any, Mapping

import torch

from . import _C, config


def register_device(
    name: str = "cxxi", backing: str | None = None, *, options: Mapping[str, Any] | None = None
) -> torch.device:
    """Makes the device, once in a process and before its first backward pass: ``model.to("cxxi")``.

    Calls on its tensors are recorded below autograd and run, compiled, at sync points: ``item()``, copies to other devices, printing,
    ops whose result sizes depend on elements, ops that cannot be recorded, and ``mark_step()``. Results are those of eager PyTorch on
    the backing device. ``torch.<name>`` is a module of it, with ``device_count``, ``synchronize`` and the like.

    Args:
        name: of the device.
        backing: ``"cuda"`` (an index for each GPU) or ``"cpu"`` (two indices); by default the GPU if there is one.
        options: names of ``cxxinductor.option_table()``; beside them the environment variables count.

    Raises:
        UserError: PyTorch's slot for devices (PrivateUse1) is taken, or there is no such backing.
    """
    _C.register_device(name, backing or "", config.resolve(options))
    torch._register_device_module(name, _module(name))
    torch.utils.generate_methods_for_privateuse1_backend()
    return torch.device(name)


def mark_step() -> None:
    """Runs what is recorded: a sync point."""
    _C.mark_step()


def device_counters() -> dict[str, int]:
    """Counts since the device was registered: calls recorded, runs of recordings, compiled recordings, and ops that ran through_aten."""
    return _C.device_counters()


def explain_device() -> str:
    """What became of the recordings, for people: ops that ran through ATen, and how often; kernels and memory of each recording."""
    return _C.explain_device()


def _module(name: str) -> types.ModuleType:
    """What PyTorch asks of ``torch.<name>``."""
    module = types.ModuleType(f"torch.{name}")
    process = os.getpid()
    vars(module).update(
        is_available=lambda: True,
        is_initialized=lambda: True,
        _is_in_bad_fork=lambda: os.getpid() != process,
        device_count=torch._C._accelerator_hooks_device_count,
        current_device=torch._C._accelerator_hooks_get_current_device,
        set_device=lambda device: torch._C._accelerator_hooks_set_current_device(torch.device(name, device).index),
        synchronize=lambda device=None: mark_step(),
        manual_seed_all=_C.seed_device,
        get_amp_supported_dtype=lambda: [torch.bfloat16, torch.float16],
        mark_step=mark_step,
    )
    return module
