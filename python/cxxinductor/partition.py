"""How a joint graph becomes a forward and a backward graph: AOTAutograd's min-cut, given a graph that it can cut well.

Min-cut recomputes nodes that it knows to be cheap and fusible. Some nodes hide that from it, or are larger than necessary:

* ``detach``, which autograd puts on every saved tensor, is not a node that it recomputes.
* Softmaxes and their backwards are one node here and a chain of cheap ones around two small reductions there. Saving the
  logarithm of a softmax over a vocabulary costs gigabytes; its row maxima and sums cost nothing.
* An attention mask that follows from positions costs less to recompute than to save, and is recognised where it is computed: the
  backward of causal attention reads none then (csrc/passes/graph/causal_attention.cpp).
* Pools save eight bytes per element for a position in a small window: one byte is enough.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, Sequence

import torch
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.checkpoint import CheckpointPolicy

from . import eager_strides

aten, prims = torch.ops.aten, torch.ops.prims

# Where each takes its mask; None: as attn_mask.
_MASKED_ATTENTIONS = {
    aten._scaled_dot_product_efficient_attention.default: 3,
    aten._scaled_dot_product_cudnn_attention.default: 3,
    aten._scaled_dot_product_flash_attention_for_cpu.default: None,
}
_SAME_VALUE = {aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default}
HELD = "cxxinductor_held"  # in the meta of a backward graph's placeholders: see _mark_held
_KEPT_META = ("stack_trace", "nn_module_stack", "seq_nr", "partitioner_tag")


def partition(joint: GraphModule, inputs: Sequence[Any], **kwargs: Any) -> tuple[GraphModule, GraphModule]:
    """A partition_fn of aot_autograd: (forward, backward) of the joint graph, which is changed in place."""
    eager_strides.correct(joint.graph)
    for node in list(joint.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in _SAME_VALUE:
            node.replace_all_uses_with(node.args[0])
            joint.graph.erase_node(node)
        elif node.target is aten._softmax.default:
            _expand_softmax(node, logarithm=False)
        elif node.target is aten._log_softmax.default:
            _expand_softmax(node, logarithm=True)
        elif node.target is aten._softmax_backward_data.default:
            _expand_softmax_backward(node, logarithm=False)
        elif node.target is aten._log_softmax_backward_data.default:
            _expand_softmax_backward(node, logarithm=True)
        elif node.target is aten.max_pool2d_with_indices_backward.default:
            _compress_pool_indices(node)
    for node in joint.graph.nodes:
        if node.target in _MASKED_ATTENTIONS:
            _mark_must_recompute(_mask_of(node))
    _save_random_values(joint)
    joint.graph.lint()
    joint.recompile()
    forward, backward = min_cut_rematerialization_partition(joint, inputs, compiler="inductor", **kwargs)
    _mark_held(forward, backward, kwargs["num_fwd_outputs"])
    return forward, backward


def _mask_of(attention: Node) -> Any:
    position = _MASKED_ATTENTIONS[attention.target]
    if position is None:
        return attention.kwargs.get("attn_mask")
    return attention.args[position] if len(attention.args) > position else None


def _save_random_values(joint: GraphModule) -> None:
    """Checkpointing recomputes random ops from a saved state of the generator, one copy to the host per op; a mask is smaller."""
    for node in joint.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags:
            for value in (node, *(user for user in node.users if user.target is operator.getitem)):
                value.meta.pop("recompute", None)


def _mark_must_recompute(mask: Any) -> None:
    """Tells min-cut not to save the mask, nor anything that it is made from, where that is no tensor of the user's."""
    needed: dict[Node, None] = {}
    waiting = [mask] if isinstance(mask, Node) else []
    while waiting:
        node = waiting.pop()
        if node in needed or not isinstance(node.meta.get("val"), torch.Tensor):
            continue  # sizes are there in both graphs
        target = node.target
        if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable or torch.Tag.nondeterministic_seeded in target.tags:
            return
        needed[node] = None
        waiting += node.all_input_nodes
    for node in needed:
        node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE


def _storage(node: Any) -> StorageWeakRef | None:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return StorageWeakRef(value.untyped_storage()) if isinstance(value, torch.Tensor) else None


def _mark_held(forward: GraphModule, backward: GraphModule, num_fwd_outputs: int) -> None:
    """Marks the backward graph's inputs that others hold while it runs: the user's tensors, and gradients that come in."""
    inputs = [node for node in forward.graph.nodes if node.op == "placeholder"]
    outputs = forward.graph.output_node().args[0]
    held = {_storage(node) for node in (*inputs, *outputs[:num_fwd_outputs])}
    saved = {node.name: _storage(node) for node in outputs[num_fwd_outputs:] if isinstance(node, Node)}
    for node in backward.graph.nodes:
        if node.op == "placeholder":
            node.meta[HELD] = node.name not in saved or saved[node.name] in held


class _Inserter:
    """Makes nodes in front of ``before``, as if the call of ``of`` had made them."""

    def __init__(self, before: Node, of: Node):
        self._before = before
        self._meta = {k: v for k, v in of.meta.items() if k in _KEPT_META}
        value = of.meta["val"]
        self._mode = (value[0] if isinstance(value, (list, tuple)) else value).fake_mode

    def __call__(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        with self._before.graph.inserting_before(self._before):
            made = self._before.graph.call_function(target, args, kwargs)
        made.meta = dict(self._meta)
        with self._mode:
            made.meta["val"] = target(*(a.meta["val"] if isinstance(a, Node) else a for a in args), **kwargs)
        return made

    def cast(self, x: Node, dtype: torch.dtype) -> Node:
        return x if x.meta["val"].dtype is dtype else self(prims.convert_element_type.default, x, dtype)


def _expand_softmax(node: Node, *, logarithm: bool) -> None:
    """softmax = exp(x - max) / sum(exp(x - max)) and its logarithm, in ATen's accumulate type, rounded once at the end."""
    x, dim, _half_to_float = node.args
    value = node.meta["val"]
    # Softmax gives dense rows; its parts would keep the strides of what they read.
    if value.dim() == 0 or not statically_known_true(value.shape[dim] > 0) or str(value.stride()) != str(x.meta["val"].stride()):
        return
    call = _Inserter(node, node)
    accumulate = torch.float64 if value.dtype is torch.float64 else torch.float32
    wide = call.cast(x, accumulate)
    shifted = call(aten.sub.Tensor, wide, call(aten.amax.default, wide, [dim], True))
    powers = call(aten.exp.default, shifted)
    total = call(aten.sum.dim_IntList, powers, [dim], True)
    if logarithm:
        result = call(aten.sub.Tensor, shifted, call(aten.log.default, total))
    else:
        result = call(aten.div.Tensor, powers, total)
    node.replace_all_uses_with(call.cast(result, value.dtype))
    node.graph.erase_node(node)


def _expand_softmax_backward(node: Node, *, logarithm: bool) -> None:
    """y (g - sum(g y)), and g - exp(y) sum(g) for the logarithm, in ATen's accumulate type, rounded where ATen rounds."""
    gradient, output, dim, _input_dtype = node.args
    value = node.meta["val"]
    if value.dim() == 0 or gradient.meta["val"].dtype is not output.meta["val"].dtype:
        return
    call = _Inserter(node, node)
    accumulate = torch.float64 if output.meta["val"].dtype is torch.float64 else torch.float32
    g, y = call.cast(gradient, accumulate), call.cast(output, accumulate)
    if logarithm:
        result = call(aten.sub.Tensor, g, call(aten.mul.Tensor, call(aten.exp.default, y), call(aten.sum.dim_IntList, g, [dim], True)))
    else:
        weighted = call.cast(call(aten.mul.Tensor, gradient, output), accumulate)  # a tensor of its own in eager
        result = call(aten.sub.Tensor, weighted, call(aten.mul.Tensor, y, call(aten.sum.dim_IntList, weighted, [dim], True)))
    node.replace_all_uses_with(call.cast(result, value.dtype))
    node.graph.erase_node(node)


def _compress_pool_indices(backward: Node) -> None:
    """Puts indices -> place in the window (int8) -> indices between a pool and its backward: min-cut saves the bytes."""
    _gradient, x, kernel, stride, padding, dilation, _ceil_mode, indices = backward.args
    sizes = [*x.meta["val"].shape[-2:], *indices.meta["val"].shape[-2:]]
    if not all(isinstance(n, int) for n in sizes) or kernel[0] * kernel[-1] > torch.iinfo(torch.int8).max:
        return
    width = sizes[1]
    windows = [(n[0], n[-1]) for n in (kernel, stride or kernel, padding, dilation)]
    call = _Inserter(indices.next, indices)
    device = indices.meta["val"].device

    def first_places(axis: int) -> Node:
        number = call(prims.iota.default, sizes[2 + axis], start=0, step=1, dtype=torch.int64, device=device, requires_grad=False)
        if axis == 0:
            number = call(aten.view.default, number, [sizes[2], 1])
        _, strides, paddings, _ = windows
        return call(aten.sub.Tensor, call(aten.mul.Tensor, number, strides[axis]), paddings[axis])

    def divide(number: Node, by: int) -> Node:
        return number if by == 1 else call(aten.div.Tensor_mode, number, by, rounding_mode="floor")

    def remainder(number: Node, quotient: Node, by: int) -> Node:
        return call(aten.sub.Tensor, number, call(aten.mul.Tensor, quotient, by))

    kernels, _, _, dilations = windows
    tops = [first_places(0), first_places(1)]
    row = divide(indices, width)
    taps = [divide(call(aten.sub.Tensor, n, top), d) for n, top, d in zip((row, remainder(indices, row, width)), tops, dilations)]
    place = call(aten.add.Tensor, call(aten.mul.Tensor, taps[0], kernels[1]), taps[1])
    place = call(prims.convert_element_type.default, place, torch.int8)
    wide = call(prims.convert_element_type.default, place, torch.int64)
    down = divide(wide, kernels[1])
    rows, columns = (
        call(aten.add.Tensor, call(aten.mul.Tensor, n, d), top)
        for n, top, d in zip((down, remainder(wide, down, kernels[1])), tops, dilations)
    )
    again = call(aten.add.Tensor, call(aten.mul.Tensor, rows, width), columns)
    backward.args = (*backward.args[:-1], again)
