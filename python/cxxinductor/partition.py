"""How a joint graph becomes a forward and a backward graph: AOTAutograd's min-cut, given a graph that it can cut well.

Min-cut recomputes nodes that it knows to be cheap and fusible. Some nodes hide that from it, or are larger than necessary:

* ``detach``, which autograd puts on every saved tensor, is not a node that it recomputes.
* Softmaxes and their backwards are one node here and a chain of cheap ones around two small reductions there. Saving the
  logarithm of a softmax over a vocabulary costs gigabytes; its row maxima and sums cost nothing.
* An attention mask that follows from positions costs less to recompute than to save, and is recognised where it is computed: the
  backward of causal attention reads none then (csrc/passes/graph/causal_attention.cpp).
* A dropout is one node, and its result nothing that could be made again; of the chain, the operand and the mask will do.
* Copies in a wider type are made again from what they copy: kernels that read them widen it themselves. So is the wide result of a layer norm
  of such a copy, of a tensor half as large and two numbers for each row.
* Pools save eight bytes per element for a position in a small window: one byte is enough.

The chains and the small positions are C++ (csrc/model/decompose/recompute_forms.cpp), as for functions that are recorded, whose cut is
csrc/model/passes/values_to_keep.cpp.
"""

from __future__ import annotations

import operator
from typing import Any, Sequence

import torch
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import OpTypes, get_default_op_list, min_cut_rematerialization_partition
from torch.fx import GraphModule, Node
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.checkpoint import CheckpointPolicy

from . import _C, eager_strides, fragments, graph_passes
from .registry import Snapshot

aten, prims = torch.ops.aten, torch.ops.prims

_RECOMPUTE_FORMS = set(_C.ops_with_fragments(_C.Fragments.RecomputeForms))

# Where each takes its mask; None: as attn_mask.
_MASKED_ATTENTIONS = {
    aten._scaled_dot_product_efficient_attention.default: 3,
    aten._scaled_dot_product_cudnn_attention.default: 3,
    aten._scaled_dot_product_flash_attention_for_cpu.default: None,
}
_COPIES = {aten._to_copy.default, prims.convert_element_type.default}
_SAME_VALUE = {aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default}
_LEAST_BUDGET = 1e-6
HELD = "cxxinductor_held"  # in the meta of a backward graph's placeholders: see _mark_held
_KEPT_META = ("stack_trace", "nn_module_stack", "seq_nr", "partitioner_tag")


def partition(joint: GraphModule, inputs: Sequence[Any], *, passes: Snapshot, memory_budget: float = 1.0, **kwargs: Any) -> tuple[GraphModule, GraphModule]:
    """A partition_fn of aot_autograd: (forward, backward) of the joint graph, which is changed in place, first by the passes of users.

    Args:
        passes: those of users.
        memory_budget: share, from 0 to 1, of what is saved for the backward pass without a limit; 1: torch's own setting,
            ``torch._functorch.config.activation_memory_budget``, applies.
    """
    budget = min(memory_budget, functorch_config.activation_memory_budget)
    graph_passes.run(joint, "joint", passes)
    eager_strides.correct(joint.graph)
    dropped: list[tuple[Node, Node]] = []  # operand and result of dropouts
    for node in list(joint.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in _SAME_VALUE:
            node.replace_all_uses_with(node.args[0])
            joint.graph.erase_node(node)
        elif isinstance(node.target, torch._ops.OpOverload) and node.target._schema.name in _RECOMPUTE_FORMS:
            operand, target = node.args[0], node.target
            if target is aten.native_layer_norm.default and not _is_read_wide_of_narrow(node):
                continue
            operands = set(node.all_input_nodes)
            results = _take_recompute_form(node)
            if results and target is aten.native_dropout.default:
                dropped.append((operand, results[0]))
            elif results and target is aten.native_layer_norm.default:
                for inner in _nodes_between(operands, results[0]):
                    inner.meta.setdefault("recompute", CheckpointPolicy.MUST_RECOMPUTE)
    for node in joint.graph.nodes:
        if node.target in _MASKED_ATTENTIONS:
            _mark_must_recompute(_mask_of(node))
    of_backward = _nodes_of_backward(joint, kwargs["num_fwd_outputs"])
    _recompute_wide_copies(joint, of_backward)
    if dropped:
        ops = get_default_op_list()  # made anew by each call
        for operand, result in dropped:
            _recompute_dropout(operand, result, of_backward, ops)
    _save_random_values(joint, limited=budget < 1)
    joint.graph.lint()
    joint.recompile()
    forward, backward = _cut(joint, inputs, budget, **kwargs)
    if budget < 1 and _saves_tuples(forward, kwargs["num_fwd_outputs"]):
        forward, backward = _cut(joint, inputs, 1, **kwargs)
    _mark_held(forward, backward, kwargs["num_fwd_outputs"])
    return forward, backward


def _cut(joint: GraphModule, inputs: Sequence[Any], budget: float, **kwargs: Any) -> tuple[GraphModule, GraphModule]:
    # Of a budget of 0 torch saves inputs alone, and not what must be saved.
    with functorch_config.patch(activation_memory_budget=max(budget, _LEAST_BUDGET)):
        return min_cut_rematerialization_partition(joint, inputs, compiler="inductor", **kwargs)


def _saves_tuples(forward: GraphModule, num_fwd_outputs: int) -> bool:
    """min-cut saves all that must be saved, tuples too, where nothing else could be recomputed: the budget then changes nothing."""
    return any(isinstance(node, Node) and isinstance(node.meta.get("val"), (tuple, list)) for node in forward.graph.output_node().args[0][num_fwd_outputs:])


def _mask_of(attention: Node) -> Any:
    position = _MASKED_ATTENTIONS[attention.target]
    if position is None:
        return attention.kwargs.get("attn_mask")
    return attention.args[position] if len(attention.args) > position else None


def _save_random_values(joint: GraphModule, limited: bool) -> None:
    """Checkpointing recomputes random ops from a saved state of the generator, one copy to the host per op; a mask is smaller.

    limited: a memory budget would have random ops run again, too.
    """
    for node in joint.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags:
            for value in (node, *(user for user in node.users if user.target is operator.getitem)):
                value.meta.pop("recompute", None)
                if limited:
                    value.meta["recompute"] = CheckpointPolicy.MUST_SAVE


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


def _nodes_of_backward(joint: GraphModule, num_fwd_outputs: int) -> set[Node]:
    """Those that no result of the forward pass depends on: they can run in the backward pass alone."""
    found = set(joint.graph.nodes)
    waiting = [result for result in joint.graph.output_node().args[0][:num_fwd_outputs] if isinstance(result, Node)]
    while waiting:
        node = waiting.pop()
        if node in found:
            found.remove(node)
            waiting += node.all_input_nodes
    return found


def _recompute_wide_copies(joint: GraphModule, of_backward: set[Node]) -> None:
    """Tells min-cut not to save floats in a wider type than that of what they copy. It would where the node that reads them in the backward
    pass is one that it does not know to be fused, as a norm's is."""
    for node in joint.graph.nodes:
        if node not in of_backward and not of_backward.isdisjoint(node.users) and _is_wide_copy(node):
            node.meta.setdefault("recompute", CheckpointPolicy.MUST_RECOMPUTE)


def _recompute_dropout(operand: Node, result: Node, of_backward: set[Node], ops: OpTypes) -> None:
    """Tells min-cut not to save what a product of the backward pass reads of a dropout. It would, as it makes nothing again for library calls;
    but the mask is saved in any case, and so is what the operand is made from, where that can be made again."""
    base = operand
    while base.target in _COPIES or _is_view(base):
        base = base.args[0]
    if not isinstance(base.target, torch._ops.OpOverload) or not ops.is_recomputable(base):
        return
    shown = [result]  # and its copies and views
    for node in shown:
        shown += (user for user in node.users if user not in shown and user not in of_backward and (user.target in _COPIES or _is_view(user)))
    if all(of_backward.isdisjoint(node.users) for node in shown):
        return
    for node in (*_nodes_between({operand}, result), *shown):
        node.meta.setdefault("recompute", CheckpointPolicy.MUST_RECOMPUTE)


def _nodes_between(operands: set[Node], result: Node) -> list[Node]:
    """Those that make the first result of an op's form of its operands, less the op's own call (which draws a dropout's mask)."""
    found, waiting = [], [result]
    while waiting:
        node = waiting.pop()
        if node not in operands and node.target is not operator.getitem:
            found.append(node)
            waiting += node.all_input_nodes
    return found


def _is_read_wide_of_narrow(norm: Node) -> bool:
    """Whether a layer norm is of a wide copy and its result is read in the wide type, as by the sums of a residual stream. Otherwise its result in
    the narrow type is what is saved, and nothing is gained."""
    base = norm.args[0]
    while _is_view(base):
        base = base.args[0]
    if not _is_wide_copy(base):
        return False
    shown = [user for user in norm.users if user.args[1] == 0]
    for node in shown:  # and its views
        shown += (user for user in node.users if user not in shown and _is_view(user))
    return any(not (_is_view(user) or user.target in _COPIES) for node in shown for user in node.users)


def _is_view(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target.is_view


def _is_wide_copy(node: Node) -> bool:
    if node.target not in _COPIES:
        return False
    to, source = node.meta["val"], node.args[0].meta["val"]
    return to.is_floating_point() and source.is_floating_point() and to.element_size() > source.element_size() and to.device == source.device


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
    """Makes nodes in front of ``before``, as if the call of ``of`` had made them. Calls are spelled as AOTAutograd spells them."""

    def __init__(self, before: Node, of: Node):
        self._before = before
        self._meta = {k: v for k, v in of.meta.items() if k in _KEPT_META}
        value = of.meta["val"]
        self._mode = (value[0] if isinstance(value, (list, tuple)) else value).fake_mode

    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> Node | list[Node]:
        """The result of the call, a node, or a node for each of several results."""
        if target is aten._to_copy.default:
            target, args, kwargs = prims.convert_element_type.default, (*args, kwargs["dtype"]), {}
        elif target is aten.arange.start_step:
            first, last, step = args
            kwargs = {"start": first, "step": step, **kwargs, "requires_grad": False}
            target, args = prims.iota.default, (last - first,)
        with self._mode:
            value = target(*(a.meta["val"] if isinstance(a, Node) else a for a in args), **kwargs)
        made = self._insert(target, args, kwargs, value)
        if not isinstance(value, tuple):
            return made
        return [self._insert(operator.getitem, (made, i), {}, each) for i, each in enumerate(value)]

    def _insert(self, target: Any, args: tuple, kwargs: dict[str, Any], value: Any) -> Node:
        with self._before.graph.inserting_before(self._before):
            made = self._before.graph.call_function(target, args, kwargs)
        made.meta = {**self._meta, "val": value}
        return made


def _take_recompute_form(node: Node) -> list[Any]:
    """The form of a call that leaves min-cut less to save, in its place: csrc/model/decompose/recompute_forms.cpp. Returns its results, none where
    the call stays."""
    value = node.meta["val"]
    value_of = lambda item: item.meta["val"] if isinstance(item, Node) else item  # noqa: E731
    form = fragments.find(_C.Fragments.RecomputeForms, node.target, node.args, node.kwargs, value_of, value)
    if form is None:
        return []
    *calls, (callee, overload, args, _) = form.calls
    if f"{callee}.{overload or 'default'}" != f"{node.target._schema.name}.{node.target._overloadname}":
        results = form.run(_Inserter(node, node))
        if isinstance(value, tuple):
            for user in list(node.users):
                user.replace_all_uses_with(results[user.args[1]])
                node.graph.erase_node(user)
        else:
            node.replace_all_uses_with(results[0])
        node.graph.erase_node(node)
        return results
    # The same call of another operand, which is made where the first one is: beside the forward pass.
    position = next(i for i, arg in enumerate(args) if isinstance(arg, _C.ValueRef) and arg.number >= len(form.operands))
    first = node.args[position]
    (operand,) = form._replace(calls=calls, results=[args[position]]).run(_Inserter(first.next, first))
    node.update_arg(position, operand)
    return []
