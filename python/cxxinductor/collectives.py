"""Whether collectives of a graph may be joined: csrc/model/passes/join_collectives.h."""

from __future__ import annotations

import torch

from . import _C


def sizes_may_vary() -> bool:
    """Whether Dynamo makes sizes symbolic where it sees them vary, which it may on one rank before the others. With ``dynamic=False`` it does not."""
    dynamo = torch._dynamo.config
    return dynamo.automatic_dynamic_shapes or not dynamo.assume_static_by_default


def join(builder: "_C.CallGraphBuilder", options: "_C.Options", sizes_may_vary: bool) -> None:
    """Joins the collectives of the calls that were read so far."""
    builder.join_collectives(int(options.get("collective_bucket_bytes")), sizes_may_vary)
