"""TorchScript modules, compiled between control flow: the Python side of <cxxinductor/jit.h>."""

from __future__ import annotations

from typing import Any, Mapping

import torch

from . import _C, config, errors


def optimize(module: torch.jit.ScriptModule, *, options: Mapping[str, Any] | None = None) -> torch.jit.ScriptModule:
    """A frozen copy of a scripted or traced module whose forward runs compiled between control flow.

    What is compiled is compiled at the first call, for the dtypes, devices and sizes at hand; sizes that change later become
    symbols. The copy can be saved, and loaded by any program that has loaded libcxxinductor, without Python too.

    Args:
        module: in evaluation mode.
        options: names of ``cxxinductor.option_table()``; beside them the environment variables count. Calls wait for the
            compiler unless ``wait`` is False.

    Raises:
        UserError: it is not a ScriptModule, or the module or a submodule is in training mode.
    """
    script = _script(module, "optimize", "torch.jit.script or torch.jit.trace")
    return torch.jit._recursive.wrap_cpp_module(_C.optimize_torchscript(script, config.resolve(options)))


def describe(optimized: torch.jit.ScriptModule) -> str:
    """What became of each compiled part of a module that ``optimize`` returned, for people."""
    return _C.describe_torchscript(_script(optimized, "describe", "optimize"))


def _script(module: Any, caller: str, origin: str) -> Any:
    """The module as C++ knows it. origin: what makes such modules."""
    if not isinstance(module, torch.jit.ScriptModule):
        raise errors.UserError(f"{caller}: expected a ScriptModule, from {origin}, found {type(module).__name__}")
    return module._c
