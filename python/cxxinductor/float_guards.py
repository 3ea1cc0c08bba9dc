"""Guards of Dynamo on Python floats, made as cheap as the comparison that they are."""

from __future__ import annotations

import dataclasses

from torch._dynamo.source import CallMethodItemSource, FloatTensorSource
from torch._guards import TracingContext


def compare_floats_themselves() -> None:
    """Lets the guards of the frame that is being compiled read floats where they lie.

    With ``dynamic=True`` Dynamo holds every float of a model (``eps``, dropout's ``p``, an attention's scale) in a symbol
    whose source is ``___as_tensor(x).item()``: guards make a tensor and read it back for each of them at every call, a few
    microseconds a layer (torch 2.11, variables/builder.py: wrap_symfloat). The number is the same without the detour: the
    tensor is of float64, and that x is a float is a guard of its own.
    """
    context = TracingContext.try_get()
    shape_env = context.fake_mode.shape_env if context and context.fake_mode else None
    fakes = shape_env.tracked_fakes if shape_env else None
    for position, fake in enumerate(fakes or []):
        source = fake.source
        if isinstance(source, CallMethodItemSource) and isinstance(source.base, FloatTensorSource):
            fakes[position] = dataclasses.replace(fake, source=source.base.base)
