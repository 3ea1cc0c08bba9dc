"""Higher-order operators of a post-AOTAutograd graph.

Three ways, in this order:

* *inlined*: what only wraps a graph (``invoke_subgraph``, wrappers, hints) is read in place, so that it fuses with its surroundings;
* *expanded*: ``auto_functionalized`` is traced into clones and the mutating call; ``with_effects`` becomes its call, in order;
* *stepped*: everything else (``cond``, ``while_loop``, ``scan``, ``map``, RNG-state wrappers, user Triton kernels, ``flex_attention``)
  is a step of the plan that calls the operator itself; the subgraphs of control flow are compiled first.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

import torch
from torch._higher_order_ops import auto_functionalize
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from .errors import Unsupported

# Operator -> what takes its arguments and returns (the graph that it runs, the operands of that graph).
_WRAPPERS: dict[str, Callable[[tuple], tuple[Any, Sequence[Any]]]] = {
    "invoke_subgraph": lambda args: (args[0], args[2:]),
    "wrap": lambda args: (args[0], args[1:]),
    "tag_activation_checkpoint": lambda args: (args[0], args[1:]),
    "wrap_with_set_grad_enabled": lambda args: (args[1], args[2:]),
    "hints_wrapper": lambda args: (args[0], args[1]),
    "strict_mode": lambda args: (args[0], args[1]),
    "invoke_quant_packed": lambda args: (args[0], args[1:]),
}
_FUNCTIONALIZED = {"auto_functionalized", "auto_functionalized_v2"}
# These call their graphs with tensors; others (flex_attention) may call them with batched or traced ones.
_CONTROL_FLOW = {"cond", "while_loop", "while_loop_stack_output", "scan", "map_impl"}


def inlined(node: Node, module: GraphModule) -> tuple[GraphModule, Sequence[Any]] | None:
    """The graph that a wrapper runs and its operands; None for other operators, and where sizes go by other names inside."""
    if node.target.name() not in _WRAPPERS:
        return None
    graph, operands = _WRAPPERS[node.target.name()](node.args)
    graph = submodule(module, graph)
    placeholders = [inner for inner in graph.graph.nodes if inner.op == "placeholder"]
    same = len(placeholders) == len(operands) and all(map(_same_geometry, placeholders, operands))
    return (graph, operands) if same else None


def _same_geometry(placeholder: Node, operand: Any) -> bool:
    inside = placeholder.meta.get("val")
    outside = operand.meta.get("val") if isinstance(operand, Node) else operand
    if isinstance(inside, torch.Tensor) and isinstance(outside, torch.Tensor):
        return _geometry(inside) == _geometry(outside)
    return str(inside) == str(outside)


def _geometry(tensor: torch.Tensor) -> tuple[str, ...]:
    return tuple(str(n) for n in (*tensor.shape, *tensor.stride(), tensor.dtype, tensor.device))


def submodule(module: GraphModule, node: Any) -> GraphModule:
    """The graph that a get_attr node names."""
    if not (isinstance(node, Node) and node.op == "get_attr"):
        raise Unsupported(f"a higher-order operator takes {node} where a graph was expected")
    value = functools.reduce(getattr, str(node.target).split("."), module)
    if not isinstance(value, GraphModule):
        raise Unsupported(f"a higher-order operator takes a {type(value).__name__} where a graph was expected")
    return value


# ---- Expanded -----------------------------------------------------------------------------------------------------


def expanded(node: Node) -> tuple[GraphModule, list[Node]] | None:
    """The operator as a graph of dispatcher calls on the returned nodes; None for operators that are no such sequence."""
    if node.target.name() not in _FUNCTIONALIZED:
        return None
    leaves, spec = tree_flatten((node.args, node.kwargs))
    operands = list(dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, Node)))
    run = _functionalized if node.target.name() == "auto_functionalized" else _functionalized_views

    def call(*values: Any) -> Any:
        given = dict(zip(operands, values))
        args, kwargs = tree_unflatten([given[leaf] if isinstance(leaf, Node) else leaf for leaf in leaves], spec)
        return run(*args, **kwargs)

    values = [operand.meta["val"] for operand in operands]
    mode = next((value.fake_mode for value in values if isinstance(value, torch._subclasses.FakeTensor)), None)
    if mode is None:
        return None
    with mode:
        return make_fx(call)(*values), operands


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone() if is_non_overlapping_and_dense_or_false(tensor) else auto_functionalize.clone_preserve_strides(tensor)


def _with_copies(result: Any, copies: Sequence[Any]) -> tuple[Any, ...]:
    return (*result, *copies) if isinstance(result, tuple) else (result, *copies)


def _functionalized(op: torch._ops.OpOverload, **kwargs: Any) -> tuple[Any, ...]:
    names, _ = auto_functionalize.get_mutable_args(op)
    copies = {name: tree_map(lambda x: _copy(x) if isinstance(x, torch.Tensor) else x, kwargs[name]) for name in names}
    return _with_copies(op(**{**kwargs, **copies}), list(copies.values()))


def _functionalized_views(op: torch._ops.OpOverload, _all_bases: Sequence[Any] = (), **kwargs: Any) -> tuple[Any, ...]:
    if not isinstance(op, torch._ops.OpOverload):
        raise Unsupported(f"auto_functionalized_v2 of {op}")
    names, types = auto_functionalize.get_mutable_args_from_schema(op._schema)
    views = auto_functionalize.read_view_information_from_args(names, types, kwargs, _all_bases)
    copies = [None if base is None else _copy(base) for base in _all_bases]

    def view_of(info: Any) -> Any:
        return None if info is None else info.regenerate_view(copies)

    for name in names:
        kwargs[name] = [view_of(info) for info in views[name]] if isinstance(views[name], list) else view_of(views[name])
    return _with_copies(op(**kwargs), copies)


# ---- Stepped ------------------------------------------------------------------------------------------------------


class Step:
    """A function of tensors and integers that runs a higher-order operator.

    Attributes:
        tensors, integers: nodes (or numbers) whose values it takes, in this order.
        call: ``(tensors, integers) -> list of tensors or None``.
    """

    def __init__(self, node: Node, module: GraphModule, compile_graph: Callable[[GraphModule, list[Any]], Callable[..., Any]]):
        leaves, spec = tree_flatten((node.args, node.kwargs))
        self.tensors: list[Node] = []
        self.integers: list[Node] = []
        slots: list[tuple[str, Any]] = []
        for leaf in leaves:
            value = leaf.meta.get("val") if isinstance(leaf, Node) else None
            if isinstance(leaf, Node) and leaf.op == "get_attr" and not isinstance(value, torch.Tensor):
                graph = submodule(module, leaf)
                slots.append(("constant", _compiled(graph, compile_graph) if node.target.name() in _CONTROL_FLOW else graph))
            elif isinstance(value, torch.Tensor):
                slots.append(("tensor", len(self.tensors)))
                self.tensors.append(leaf)
            elif isinstance(leaf, Node) and isinstance(value, (int, torch.SymInt)):
                slots.append(("integer", len(self.integers)))
                self.integers.append(leaf)
            elif isinstance(leaf, Node):
                raise Unsupported(f"{node.target} takes a {type(value).__name__}")
            else:
                slots.append(("constant", leaf))
        operator = node.target

        def call(tensors: list[torch.Tensor], integers: list[int]) -> list[torch.Tensor | None]:
            sources = {"tensor": tensors, "integer": integers}
            values = [given if kind == "constant" else sources[kind][given] for kind, given in slots]
            args, kwargs = tree_unflatten(values, spec)
            results = operator(*args, **kwargs)
            return [_own(result, tensors) for result in tree_flatten(results)[0]]

        self.call = call


def _own(result: Any, tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """A result that shares no memory with an operand: the plan takes it for new."""
    if result is None:
        return None
    if not isinstance(result, torch.Tensor):
        raise RuntimeError(f"a higher-order operator returned a {type(result).__name__} where the graph has a tensor")
    address = result.untyped_storage().data_ptr()
    return result.clone() if any(t.untyped_storage().data_ptr() == address for t in tensors) else result


def _compiled(graph: GraphModule, compile_graph: Callable[[GraphModule, list[Any]], Callable[..., Any]]) -> Callable[..., Any]:
    examples = [node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder"]
    boxed = compile_graph(graph, examples)
    (outputs,) = graph.graph.output_node().args
    single = not isinstance(outputs, (tuple, list))

    def run(*inputs: Any) -> Any:
        results = boxed(list(inputs))
        if isinstance(results, torch.Tensor):  # eager, as the graph returns it
            return results
        return results[0] if single else tuple(results)

    return run
