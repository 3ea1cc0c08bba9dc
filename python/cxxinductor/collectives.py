"""Which collectives of a graph may be joined: csrc/model/passes/join_collectives.h."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

import torch

from . import _C


def steady_counts(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> set[int] | None:
    """Numbers of elements that are the same in all calls: those of parameters, and of their shards on this rank. None: all sizes of the graph are.

    Other sizes are constants until Dynamo sees them vary, which it may on one rank first. With ``dynamic=False`` it never makes them symbolic.
    """
    dynamo = torch._dynamo.config
    if not dynamo.automatic_dynamic_shapes and dynamo.assume_static_by_default:
        return None
    return set(_counts([*gm.parameters(), *(value for value in inputs if isinstance(value, torch.nn.Parameter))]))


def _counts(parameters: Iterable[torch.Tensor]) -> Iterable[int]:
    for parameter in parameters:
        for tensor in (parameter, getattr(parameter, "_local_tensor", None)):  # a DTensor's shard
            if tensor is not None and isinstance(count := tensor.numel(), int):
                yield count


def join(builder: "_C.CallGraphBuilder", options: "_C.Options", steady: set[int] | None) -> None:
    """Joins the collectives of the calls that were read so far."""
    builder.join_collectives(int(options.get("collective_bucket_bytes")), steady)
