"""Passes over FX graphs that users register: run them, check what they leave, and record what the new nodes return.

A pass edits a graph of AOTAutograd before it is read into C++. It is untrusted: a graph with other inputs, outputs or writes to inputs is an
error that names the pass. Nodes that it makes or changes get their metadata here, by running their ops on tensors without memory.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, NamedTuple, Sequence

import torch
from torch import Tensor
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.utils._pytree import tree_leaves

from . import fx_reader, reports
from .errors import UserError
from .registry import Registry, Snapshot
from .user_decompositions import described, same_strides, same_tensors

aten = torch.ops.aten

INHERITED_META = ("stack_trace", "nn_module_stack", "seq_nr", "partitioner_tag")  # of nodes that stand for others
WHEN = ("joint", "forward", "backward", "inference")


class GraphPass(NamedTuple):
    """kind: what messages and explain() call it: "pass" or "pattern". run(graph): edits the graph; returns a note for explain(), or None."""

    kind: str
    when: tuple[str, ...]
    run: Callable[[Graph], str | None]


REGISTRY: Registry[GraphPass] = Registry("graph pass")


def when_of(when: str | Sequence[str], what: str) -> tuple[str, ...]:
    given = (when,) if isinstance(when, str) else tuple(when)
    if not given or any(name not in WHEN for name in given):
        raise UserError(f"{what}: when: expected one or more of {', '.join(map(repr, WHEN))}, found {when!r}")
    return given


def run(gm: GraphModule, when: str, passes: Snapshot) -> None:
    """Runs those of the passes that are for this place on the graph, in the order of their registration.

    Raises:
        UserError: a pass raised, or left a graph that is not valid or does something else at its borders.
    """
    for name, graph_pass in passes.entries.items():
        if when in graph_pass.when:
            _run_one(gm, f"{graph_pass.kind} {name} ({when} graph)", graph_pass.run)


def _run_one(gm: GraphModule, what: str, function: Callable[[Graph], str | None]) -> None:
    graph = gm.graph
    before = _Borders(graph)
    nodes = {node: _call(node) for node in graph.nodes}
    try:
        note = function(graph)
    except Exception as error:
        raise UserError(f"{what} raised {type(error).__name__}: {error}") from error
    changed = list(graph.nodes) != list(nodes) or any(nodes[node] != _call(node) for node in graph.nodes)
    if changed:
        before.require_valid(graph, what)
        record_values(graph, {node for node in graph.nodes if nodes.get(node) != _call(node)}, what)
        before.require_same_writes(graph, what)
        before.restore_outputs(graph, what)
        gm.recompile()
    if changed or note:
        reports.note_extension(f"{what}{': ' + note if note else ''}")


def _call(node: Node) -> tuple[Any, ...]:
    """What the node computes, comparable: 2 is not 2.0 here, and 0.0 not -0.0."""
    args, kwargs = torch.fx.node.map_aggregate((node.args, dict(node.kwargs)), lambda leaf: leaf if isinstance(leaf, Node) else (type(leaf), repr(leaf)))
    return (node.op, node.target, args, kwargs)


class _Borders:
    """What a pass has to leave as it is: inputs, outputs, and which inputs the graph writes."""

    def __init__(self, graph: Graph):
        self._inputs = _inputs(graph)
        self._writes = _writes(graph)
        self._outputs = [(item, _value(item)) for item in graph.output_node().args[0]]
        self._shared = _shared_storages(graph)

    def require_valid(self, graph: Graph, what: str) -> None:
        try:
            graph.lint()
            graph.output_node()
        except Exception as error:  # lint raises whatever it meets first
            raise UserError(f"{what} left a graph that is not valid: {error}") from error
        if _inputs(graph) != self._inputs:
            raise UserError(f"{what} changed the graph's inputs: expected {self._inputs}, found {_inputs(graph)}")
        outputs = graph.output_node().args[0]
        if not isinstance(outputs, (tuple, list)) or len(outputs) != len(self._outputs):
            raise UserError(f"{what} changed the graph's outputs: expected {len(self._outputs)}, found {outputs}")

    def require_same_writes(self, graph: Graph, what: str) -> None:
        if _writes(graph) != self._writes:
            raise UserError(f"{what} changed which inputs the graph writes: expected {self._writes}, found {_writes(graph)}")

    def restore_outputs(self, graph: Graph, what: str) -> None:
        """Other outputs are an error. Those that only lie differently, or in memory of an input or another output, are copied: programs would notice."""
        output, shared = graph.output_node(), _shared_storages(graph)
        outputs = list(output.args[0])
        for i, (item, wanted) in enumerate(self._outputs):
            found = _value(outputs[i])
            is_same = outputs[i] is item or _is_same_number(found, wanted)
            if isinstance(wanted, Tensor):
                is_same = isinstance(found, Tensor) and same_tensors(found, wanted)
            if not is_same:
                raise UserError(f"{what} changed output {i} of the graph: expected {described(wanted)}, found {described(found)}")
            if isinstance(wanted, Tensor) and not (same_strides(found, wanted) and shared[i] <= self._shared[i]):
                outputs[i] = restrided(output, outputs[i], wanted)
        output.args = (type(output.args[0])(outputs),)


def _value(item: Any) -> Any:
    return item.meta.get("val") if isinstance(item, Node) else item


def _shared_storages(graph: Graph) -> list[set[int]]:
    """Of each output, which inputs and outputs before it lie in the same memory."""
    items = [node for node in graph.nodes if node.op == "placeholder"]
    first_output, found = len(items), []
    storages: list[Any] = []
    for i, item in enumerate([*items, *graph.output_node().args[0]]):
        value = _value(item)
        storages.append(value.untyped_storage()._cdata if isinstance(value, Tensor) else None)
        if i >= first_output:
            found.append({other for other in range(i) if storages[i] is not None and storages[other] == storages[i]})
    return found


def _inputs(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes if node.op == "placeholder"]


def _writes(graph: Graph) -> list[str]:
    """The inputs that ops write, themselves or through views."""
    written = []
    owners = {_value(node).untyped_storage()._cdata: node.name for node in graph.nodes if node.op == "placeholder" and isinstance(_value(node), Tensor)}
    for node in graph.nodes:
        if not (isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable):
            continue
        for i, argument in enumerate(node.target._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            operand = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
            for item in operand if isinstance(operand, (tuple, list)) else [operand]:
                value = _value(item)
                if isinstance(value, Tensor) and value.untyped_storage()._cdata in owners:
                    written.append(owners[value.untyped_storage()._cdata])
    return sorted(written)


def _is_same_number(a: Any, b: Any) -> bool:
    if type(a) is not type(b) or isinstance(a, Tensor):
        return False
    return a.node.expr == b.node.expr if isinstance(a, (torch.SymInt, torch.SymFloat, torch.SymBool)) else a == b


def restrided(before: Node, node: Node, like: Tensor) -> Node:
    """A copy of a node's tensor in the strides of another one, in front of ``before``.

    Raises:
        UserError: the strides are symbolic, and no node of the graph holds them.
    """
    graph = before.graph
    with graph.inserting_before(before):
        sizes, strides = _symbolic(before, like.shape), _symbolic(before, like.stride())
        memory = graph.call_function(aten.empty_strided.default, (sizes, strides), {"dtype": like.dtype, "device": like.device})
        copy = graph.call_function(aten.copy.default, (memory, node))
    for made in (memory, copy):
        made.meta = {key: value for key, value in node.meta.items() if key in INHERITED_META}
        made.meta["val"] = value_of_call(made, fake_mode_of(graph), "the strides of a result")
    return copy


def _symbolic(before: Node, sizes: Iterable[Any]) -> list[Any]:
    """Sizes as numbers, or as nodes in front of one that hold them."""
    nodes: dict[Any, Node] = {}
    for node in before.graph.nodes:
        if node is before:
            break
        if isinstance(node.meta.get("val"), torch.SymInt):
            nodes.setdefault(node.meta["val"].node.expr, node)
    made = []
    for size in sizes:
        if isinstance(size, torch.SymInt) and size.node.expr not in nodes:
            raise UserError(f"a result changed its strides, and no node of the graph holds the size {size}: keep the result's strides")
        made.append(nodes[size.node.expr] if isinstance(size, torch.SymInt) else size)
    return made


def record_values(graph: Graph, changed: set[Node], what: str) -> None:
    """Computes meta["val"] of the changed nodes, and of those that follow from them.

    Raises:
        UserError: a changed node is not a call of an op, or its op refuses its arguments.
    """
    mode = fake_mode_of(graph)
    recorded: set[Node] = set()
    for node in graph.nodes:
        if node.op in ("placeholder", "output") or not (node in changed or recorded.intersection(node.all_input_nodes)):
            continue
        if isinstance(node.target, torch._ops.HigherOrderOperator) or node.meta.get("unbacked_bindings"):
            if node in changed and "val" not in node.meta:
                raise UserError(f"{what} made {node.format_node()}: expected calls of ops whose sizes follow from their operands")
        elif node.op == "call_function":
            node.meta["val"] = value_of_call(node, mode, what)
            recorded.add(node)
        if not fx_reader.can_read(node):
            raise _not_an_op(node, what)


def _not_an_op(node: Node, what: str) -> UserError:
    return UserError(f"{what} made {node.format_node()}: expected calls of ops such as torch.ops.aten.add.Tensor")


def fake_mode_of(graph: Graph) -> FakeTensorMode:
    for node in graph.nodes:
        for value in tree_leaves(node.meta.get("val")):
            if isinstance(value, FakeTensor):
                return value.fake_mode
    return FakeTensorMode(allow_non_fake_inputs=True)


def value_of_call(node: Node, mode: FakeTensorMode, what: str) -> Any:
    """What the node's op returns for the recorded values of its operands."""
    for operand in node.all_input_nodes:
        if "val" not in operand.meta:  # an attribute
            raise _not_an_op(operand, what)
    args, kwargs = torch.fx.node.map_arg((node.args, dict(node.kwargs)), lambda operand: operand.meta["val"])
    try:
        with mode, torch.no_grad(), torch._C._DisableAutocast():
            return node.target(*args, **kwargs)
    except Exception as error:  # each op refuses arguments in its own way
        raise UserError(f"{what} made a call that cannot be: {node.format_node()}: {error}") from error
