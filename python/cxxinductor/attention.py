"""Rewrites of Dynamo graphs that let attention take a fused kernel."""

from __future__ import annotations

import torch

from . import _C

_MASK_POSITION = 3


def make_masks_contiguous(gm: torch.fx.GraphModule) -> int:
    """Copies attention masks whose last stride is not 1, in place; returns how many.

    scaled_dot_product_attention picks its kernel while AOTAutograd traces, so this precedes it. csrc/model/attention_mask.h decides which, and
    says why; layers that share a mask share the copy.
    """
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or node.target is not torch._C._nn.scaled_dot_product_attention:
            continue
        mask = node.kwargs.get("attn_mask", node.args[_MASK_POSITION] if len(node.args) > _MASK_POSITION else None)
        if not isinstance(mask, torch.fx.Node) or not _wants_copy(node.args[0], mask):
            continue
        if mask not in copies:
            with gm.graph.inserting_after(mask):
                copies[mask] = gm.graph.call_method("contiguous", (mask,))
            copies[mask].meta = {**mask.meta, "example_value": mask.meta["example_value"].contiguous()}
        node.replace_input_with(mask, copies[mask])
    if copies:
        gm.recompile()
    return len(copies)


def _wants_copy(query: object, mask: torch.fx.Node) -> bool:
    value = mask.meta.get("example_value")
    query_value = query.meta.get("example_value") if isinstance(query, torch.fx.Node) else None
    if not (isinstance(value, torch.Tensor) and isinstance(query_value, torch.Tensor)):
        return False
    is_dense = value.dim() == 0 or value.stride(-1) == 1
    return _C.wants_dense_mask(value.device, query_value.dtype, bool(is_dense), value.requires_grad)
