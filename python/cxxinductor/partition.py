"""How a joint graph becomes a forward and a backward graph: AOTAutograd's min-cut, given a graph that it can cut well.

Min-cut recomputes what it knows to be cheap and fusible. Two kinds of nodes hide that from it: ``detach``, which autograd
puts on every saved tensor, and softmaxes, which are one node here and a chain of cheap ones around two small reductions
there. Saving the logarithm of a softmax over a vocabulary costs gigabytes; its row maxima and sums cost nothing.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule, Node

aten, prims = torch.ops.aten, torch.ops.prims

_SAME_VALUE = {aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default}


def partition(joint: GraphModule, inputs: Sequence[Any], **kwargs: Any) -> tuple[GraphModule, GraphModule]:
    """A partition_fn of aot_autograd: (forward, backward) of the joint graph, which is changed in place."""
    for node in list(joint.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in _SAME_VALUE:
            node.replace_all_uses_with(node.args[0])
            joint.graph.erase_node(node)
        elif node.target in _SOFTMAXES:
            _expand_softmax(joint, node, logarithm=_SOFTMAXES[node.target])
    joint.graph.lint()
    joint.recompile()
    return min_cut_rematerialization_partition(joint, inputs, compiler="inductor", **kwargs)


_SOFTMAXES = {aten._softmax.default: False, aten._log_softmax.default: True}


def _expand_softmax(joint: GraphModule, node: Node, *, logarithm: bool) -> None:
    """softmax = exp(x - max) / sum(exp(x - max)) and its logarithm, in ATen's accumulate type, rounded once at the end."""
    x, dim, _half_to_float = node.args
    value = node.meta["val"]
    if value.dim() == 0 or value.numel() == 0:
        return

    def call(target: Callable[..., Any], *args: Any) -> Node:
        with joint.graph.inserting_before(node):
            made = joint.graph.call_function(target, args)
        made.meta = {k: v for k, v in node.meta.items() if k in ("stack_trace", "nn_module_stack", "seq_nr", "partitioner_tag")}
        with value.fake_mode:
            made.meta["val"] = target(*(a.meta["val"] if isinstance(a, Node) else a for a in args))
        return made

    accumulate = torch.float64 if value.dtype is torch.float64 else torch.float32
    wide = x if x.meta["val"].dtype is accumulate else call(prims.convert_element_type.default, x, accumulate)
    shifted = call(aten.sub.Tensor, wide, call(aten.amax.default, wide, [dim], True))
    powers = call(aten.exp.default, shifted)
    total = call(aten.sum.dim_IntList, powers, [dim], True)
    if logarithm:
        result = call(aten.sub.Tensor, shifted, call(aten.log.default, total))
    else:
        result = call(aten.div.Tensor, powers, total)
    if value.dtype is not accumulate:
        result = call(prims.convert_element_type.default, result, value.dtype)
    node.replace_all_uses_with(result)
    joint.graph.erase_node(node)
