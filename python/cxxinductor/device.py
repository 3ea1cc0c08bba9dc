"""A device whose ops are recorded, and run compiled: the Python side of <cxxinductor/device.h>."""

from __future__ import annotations

import functools
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
        options: names of ``cxxinductor.option_table()``; beside them the environment variables count. While the compiler works,
            recordings run through ATen, unless ``wait`` is True.

    Raises:
        UserError: PyTorch's slot for devices (PrivateUse1) is taken, or there is no such backing.
    """
    unless_set = {"wait": os.environ.get("CXXINDUCTOR_WAIT") or "false"}
    _C.register_device(name, backing or "", config.resolve({**unless_set, **(options or {})}))
    torch._register_device_module(name, _module(name))
    torch.utils.generate_methods_for_privateuse1_backend()
    _make_new_tensor_known(name)
    return torch.device(name)


def mark_step() -> None:
    """Runs what is recorded: a sync point."""
    _C.mark_step()


def device_counters() -> dict[str, int]:
    """Counts since the device was registered: calls recorded, runs of recordings and how many of them were not compiled, compiled
    forms of recordings, ops that ran through_aten, runs that began before their recording had ended (early_starts), and how many of
    these were dropped (early_drops)."""
    return _C.device_counters()


def explain_device() -> str:
    """What became of the recordings, for people: ops that ran through ATen, and how often; kernels and memory of each recording."""
    return _C.explain_device()


def _make_new_tensor_known(name: str) -> None:
    """``Tensor.new_tensor`` takes the device from a tensor's dispatch keys, in which ours has one that names no device."""
    of_others = torch.Tensor.new_tensor

    @functools.wraps(of_others)
    def new_tensor(self: torch.Tensor, data: Any, **options: Any) -> torch.Tensor:
        if self.device.type != name:
            return of_others(self, data, **options)
        return torch.tensor(data, **{"dtype": self.dtype, "device": self.device, **options})

    torch.Tensor.new_tensor = new_tensor


def _module(name: str) -> types.ModuleType:
    """What PyTorch and programs ask of ``torch.<name>``."""
    module = types.ModuleType(f"torch.{name}")
    process = os.getpid()
    generators = _C.device_generators()

    def index_of(device: Any = None) -> int:
        if isinstance(device, int):
            return device
        found = None if device is None else torch.device(device).index
        return torch.accelerator.current_device_index() if found is None else found

    def current(device: Any) -> torch.accelerator.device_index:
        """A context in which the device is the current one. None, or an index below 0: no change."""
        index = -1 if device is None else index_of(device)
        return torch.accelerator.device_index(None if index < 0 else index)

    def manual_seed_all(seed: int) -> None:
        for generator in generators:
            generator.manual_seed(seed)

    def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
        generators[index_of(device)].set_state(state)

    vars(module).update(
        _initialized=True,
        _is_in_bad_fork=lambda: os.getpid() != process,
        current_device=torch.accelerator.current_device_index,
        current_stream=lambda device=None: torch.accelerator.current_stream(torch.device(name, index_of(device))),
        default_generators=generators,
        device=current,
        device_count=torch._C._accelerator_hooks_device_count,
        get_amp_supported_dtype=lambda: [torch.bfloat16, torch.float16],
        get_rng_state=lambda device=None: generators[index_of(device)].get_state(),
        get_rng_state_all=lambda: [generator.get_state() for generator in generators],
        initial_seed=lambda: generators[index_of()].initial_seed(),
        is_available=lambda: True,
        is_bf16_supported=lambda: True,
        is_initialized=lambda: True,
        manual_seed=lambda seed: generators[index_of()].manual_seed(seed),
        manual_seed_all=manual_seed_all,
        mark_step=mark_step,
        set_device=lambda device: torch.accelerator.set_device_index(index_of(device)),
        set_rng_state=set_rng_state,
        set_rng_state_all=lambda states: [set_rng_state(state, index) for index, state in enumerate(states)],
        synchronize=lambda device=None: mark_step(),
    )
    return module
