"""Guards of Dynamo on Python floats, made as cheap as the comparison that they are."""

from __future__ import annotations

import dataclasses

import sympy
import torch
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._dynamo.source import CallMethodItemSource, FloatTensorSource
from torch._guards import TracingContext


def compare_floats_themselves() -> None:
    """Lets the guards of the frame that is being compiled read floats where they lie. To be called when the graph is compiled.

    With ``dynamic=True`` Dynamo holds every float of a model (``eps``, dropout's ``p``, an attention's scale) in a symbol
    whose source is ``___as_tensor(x).item()``: guards in Python make a tensor and read it back for each of them at every call,
    a few microseconds a layer (torch 2.11, variables/builder.py: wrap_symfloat). A float whose value the graph was compiled for
    gets the guard that it has without ``dynamic=True``. For others the number is the same without the detour: the tensor is of
    float64, and that x is a float is a guard of its own.
    """
    context = TracingContext.try_get()
    shape_env = context.fake_mode.shape_env if context and context.fake_mode else None
    if not shape_env or not shape_env.tracked_fakes:
        return
    kept = []
    for fake in shape_env.tracked_fakes:
        if isinstance(fake.fake, torch.SymFloat):
            source = fake.source
            if isinstance(source, CallMethodItemSource) and isinstance(source.base, FloatTensorSource):
                source = source.base.base
            if isinstance(shape_env.replacements.get(fake.fake.node._expr), sympy.Float):
                install_guard(source.make_guard(GuardBuilder.CONSTANT_MATCH))
                continue
            fake = dataclasses.replace(fake, source=source)
        kept.append(fake)
    shape_env.tracked_fakes[:] = kept
