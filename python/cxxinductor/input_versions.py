"""Versions of inputs that a program writes more than once.

Of these AOTAutograd keeps the last one. Eager writes each, which is seen where something raises in between:
``st.add_(1); refuse(x); st.mul_(2)``. So Dynamo's graph gets a mark where such an input is about to be written again, and
AOTAutograd's graph, where marks name the versions, a ``copy_`` to the input for each.
"""

from __future__ import annotations

import operator
from typing import Any, Iterator

import torch
from torch.fx import Graph, GraphModule, Node
from torch.utils._pytree import tree_leaves

from . import _C  # noqa: F401  (registers the operator below)

_mark = torch.fx.has_side_effect(torch.ops.cxxinductor.input_version.default)
_copy = torch.ops.aten.copy_.default
_IN_PLACE = {getattr(operator, "i" + name) for name in "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift".split()}


def mark(gm: GraphModule) -> None:
    """Marks in a graph of Dynamo, by a number for each input: what is there before its first write, and before each later one."""
    inputs = {_storage(node, "example_value"): node for node in gm.graph.nodes if node.op == "placeholder"}
    inputs.pop(None, None)
    writes: dict[Node, list[tuple[Node, int]]] = {}  # of an input: the calls that write it, and how many that write nothing were before
    others = 0
    for node in gm.graph.nodes:
        written = {inputs.get(_storage(target, "example_value")): target for target in _written(node)}
        for source, target in written.items():
            if source is not None:
                writes.setdefault(source, []).append((node, others))
        others += node.op in ("call_function", "call_method") and not written
    for number, (source, calls) in enumerate(writes.items()):
        pairs = zip(calls, calls[1:])
        again = [node for (last, before), (node, after) in pairs if after > before or _is_opaque(last) or _is_opaque(node)]
        for node in [calls[0][0], *again] if again else []:
            with gm.graph.inserting_before(node):
                gm.graph.call_function(_mark, (source, number))
    if writes:
        gm.recompile()


def write_back(gm: GraphModule) -> None:
    """Takes the marks out of a graph of AOTAutograd, and writes the versions that they name where nothing needs an older one."""
    marks = [node for node in gm.graph.nodes if node.target is _mark]
    if not marks:
        return
    order = {node: position for position, node in enumerate(gm.graph.nodes)}
    chains: dict[int, list[Node]] = {}
    for node in marks:
        version, number = node.args
        chains.setdefault(number, []).append(version)
        gm.graph.erase_node(node)
    for source, *versions in chains.values():
        final = next((user for user in source.users if user.target is _copy and user.args[0] is source), None)
        if source.op != "placeholder" or final is None:
            continue
        last_read = max(order[user] for user in _readers(gm.graph, source, final))
        for version in dict.fromkeys(versions):
            if version.op == "call_function" and order[version] >= last_read and version is not final.args[1]:
                with gm.graph.inserting_after(version):
                    written = gm.graph.call_function(_copy, (source, version))
                written.meta = {**version.meta, "val": source.meta["val"]}
    gm.recompile()


def _readers(graph: Graph, source: Node, final: Node) -> Iterator[Node]:
    storage = _storage(source, "val")
    yield source
    for node in graph.nodes:
        if _storage(node, "val") == storage and node is not final:
            yield from (user for user in node.users if user is not final and user.op != "output")


def _is_opaque(node: Node) -> bool:
    """A custom op, which may raise after it has written."""
    operator = isinstance(node.target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket))
    return operator and not str(node.target).startswith(("aten.", "prims."))


def _written(node: Node) -> list[Node]:
    """What a call of Dynamo's graph writes, as far as its name or its schema says."""
    if node.op not in ("call_function", "call_method"):
        return []
    target = node.target
    if isinstance(target, torch._ops.OpOverloadPacket):
        target = getattr(target, target.overloads()[0])
    schema = getattr(target, "_schema", None)
    if schema is not None:
        formals = [(argument.name, argument.alias_info) for argument in schema.arguments]
        values = [node.args[i] if i < len(node.args) else node.kwargs.get(name) for i, (name, _) in enumerate(formals)]
        found: Any = [value for value, (_, alias) in zip(values, formals) if alias is not None and alias.is_write]
    else:
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        in_place = target in _IN_PLACE or target is operator.setitem or name.endswith("_") and not name.endswith("__")
        out = node.kwargs.get("out")
        if not in_place and out is None:
            return []
        found = [node.args[:1] if in_place else (), out]
    return [value for value in tree_leaves(found) if isinstance(value, Node)]


def _storage(node: Node, key: str) -> int | None:
    value = node.meta.get(key)
    plain = isinstance(value, torch.Tensor) and value.layout is torch.strided and not torch._C._functorch.is_functorch_wrapped_tensor(value)
    return value.untyped_storage()._cdata if plain else None
