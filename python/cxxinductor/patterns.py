"""Patterns that users register: the part of a graph that computes what one function does is replaced by what another one does.

Both functions are traced to graphs of ATen ops as AOTAutograd traces models, with the decompositions that it gets. PyTorch's matcher finds the
first one in a graph. The second one takes its place where its results have the same dtype, device and sizes, which depends on what the graph gives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Sequence

import sympy
import torch
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher
from torch._functorch._aot_autograd.functional_utils import has_data_mutation
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensorMode, dispatch_functionalize
from torch.fx import Graph, Node
from torch.fx.experimental import _config as symbolic_shapes_config
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import guard_or_false
from torch.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from torch.utils._python_dispatch import _disable_current_modes

from . import decompositions
from .errors import UserError
from .graph_passes import INHERITED_META, fake_mode_of, restrided, value_of_call
from .user_decompositions import same_strides, same_tensors


def make(pattern: Callable[..., Any], replacement: Callable[..., Any], example_inputs: Sequence[Any], check: Callable[..., bool] | None) -> "Pattern":
    """Traces both functions on the inputs.

    Raises:
        UserError: a function cannot be traced, has tensors of its own, calls higher-order operators, writes into inputs or draws random numbers; the
            pattern is no computation of all of its inputs; or the two return other things.
    """
    of_pattern, of_replacement = _traced(pattern, example_inputs, "pattern"), _traced(replacement, example_inputs, "replacement")
    for node in of_pattern.nodes:
        if node.op == "placeholder" and not node.users:
            raise UserError(f"register_pattern: the pattern does not read its input {node.name}: leave it out of both functions")
    if any(node.op != "call_function" for node in _results(of_pattern)):
        raise UserError("register_pattern: the pattern returns an input: expected results of its ops")
    if len(set(_results(of_pattern))) < len(_results(of_pattern)):
        raise UserError("register_pattern: the pattern returns one result twice: return each once")
    wanted, found = ([node.meta["val"] for node in _results(graph)] for graph in (of_pattern, of_replacement))
    if len(wanted) != len(found) or not all(map(same_tensors, wanted, found)):
        texts = [[f"{value.dtype}{list(value.shape)}" for value in values] for values in (wanted, found)]
        raise UserError(f"register_pattern: expected a replacement that returns {', '.join(texts[0])}, as the pattern does, found {', '.join(texts[1])}")
    sizes = [tuple(value.shape) for value in example_inputs if isinstance(value, Tensor)]
    return Pattern(of_pattern, of_replacement, check, sizes, _conditions(pattern, replacement, example_inputs))


def _trace(function: Callable[..., Any], example_inputs: Sequence[Any], tracing_mode: str) -> Graph:
    """What the function computes of the tensors among the inputs; raises whatever it raises."""
    positions = [i for i, value in enumerate(example_inputs) if isinstance(value, Tensor)]

    def of_tensors(*tensors: Tensor) -> Any:
        inputs = list(example_inputs)
        for position, tensor in zip(positions, tensors):
            inputs[position] = tensor
        results = function(*inputs)
        if any(map(has_data_mutation, tensors)):
            raise UserError("it writes into an input")
        return results

    # Equal sizes of an example are different symbols.
    symbols = symbolic_shapes_config.patch(use_duck_shape=False)
    with torch.no_grad(), _disable_current_modes(), torch._C._DisableAutocast(), symbols, enable_python_dispatcher():
        tensors = [example_inputs[position].detach() for position in positions]
        functional = dispatch_functionalize(of_tensors, FunctionalTensorMode())
        graph = make_fx(functional, decompositions.table(), tracing_mode=tracing_mode)(*tensors).graph
    graph.eliminate_dead_code()
    return graph


def _draws_random_numbers(node: Node) -> bool:
    """Whether a call of an op that may draw them does: not with a dropout_p of 0."""
    if torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    for position, argument in enumerate(node.target._schema.arguments):
        if argument.name == "dropout_p":
            given = node.kwargs.get("dropout_p", argument.default_value)
            return (node.args[position] if position < len(node.args) else given) != 0
    return True


def _traced(function: Callable[..., Any], example_inputs: Sequence[Any], what: str) -> Graph:
    try:
        graph = _trace(function, example_inputs, "fake")
    except Exception as error:  # the function's own
        raise UserError(f"register_pattern: the {what} cannot be traced: {type(error).__name__}: {error}") from error
    for node in graph.nodes:
        if node.op == "get_attr":
            raise UserError(f"register_pattern: the {what} holds a tensor of its own: make it an input, or make it with torch.full")
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            raise UserError(f"register_pattern: the {what} calls the higher-order operator {node.target}: expected ops that return new tensors")
        if isinstance(node.target, torch._ops.OpOverload) and (node.target._schema.is_mutable or _draws_random_numbers(node)):
            raise UserError(f"register_pattern: the {what} calls {node.target}, which writes or draws random numbers")
    results = _results(graph)
    if not results or not all(isinstance(node, Node) and isinstance(node.meta.get("val"), Tensor) for node in results):
        raise UserError(f"register_pattern: expected a {what} that returns tensors, found {graph.output_node().args[0]}")
    return graph


class _Sizes(NamedTuple):
    """What a function does with the sizes of its inputs."""

    symbols: list[tuple[Any, ...]]  # of each tensor among the inputs
    conditions: set[sympy.Basic]  # what has to hold of them
    computes: bool  # whether it computes numbers of them


def _sizes_of(function: Callable[..., Any], example_inputs: Sequence[Any]) -> _Sizes | None:
    """None of what cannot be traced with symbols: each size may count."""
    try:
        graph = _trace(function, example_inputs, "symbolic")
    except Exception:  # the function's own
        return None
    values = [node.meta["val"] for node in graph.nodes if node.op == "placeholder"]
    # _expr: as it was before conditions made it equal to others.
    symbols = [tuple(size.node._expr if isinstance(size, torch.SymInt) else size for size in value.shape) for value in values]
    computes = any(isinstance(node.meta.get("val"), (int, torch.SymInt, torch.SymFloat)) for node in graph.nodes)
    shape_env = next((value.fake_mode.shape_env for value in values if isinstance(value, FakeTensor)), None)
    return _Sizes(symbols, {guard.expr for guard in (shape_env.guards if shape_env is not None else ())}, computes)


def _conditions(pattern: Callable[..., Any], replacement: Callable[..., Any], example_inputs: Sequence[Any]) -> Conditions | None:
    needed, known = _sizes_of(replacement, example_inputs), _sizes_of(pattern, example_inputs)
    if needed is None or needed.computes:
        return None
    return Conditions(needed.symbols, needed.conditions - (known.conditions if known is not None else set()))


def _results(graph: Graph) -> list[Any]:
    (results,) = graph.output_node().args
    return list(results) if isinstance(results, (tuple, list)) else [results]


class Conditions(NamedTuple):
    """What has to hold of the sizes of a match, beyond what the pattern says of them."""

    symbols: list[tuple[Any, ...]]  # that stand for them; numbers where the example's size is 0 or 1
    conditions: set[sympy.Basic]

    def hold(self, values: Sequence[Tensor]) -> bool:
        if not self.conditions:
            return True
        if any(value.dim() != len(symbols) for value, symbols in zip(values, self.symbols)):
            return False
        pairs = [pair for value, symbols in zip(values, self.symbols) for pair in zip(symbols, value.shape)]
        if not all(guard_or_false(size == symbol) for symbol, size in pairs if isinstance(symbol, int)):
            return False
        sizes = {symbol: size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size) for symbol, size in pairs}
        return all(condition.xreplace(sizes) == sympy.true for condition in self.conditions)


@dataclass(frozen=True)
class Pattern:
    """A pass (graph_passes.GraphPass.run) that replaces what matches."""

    pattern: Graph
    replacement: Graph
    check: Callable[..., bool] | None
    sizes: list[tuple[int, ...]]  # of the example's tensors
    conditions: Conditions | None  # under which the replacement is right for other sizes; None: it was traced with those as numbers

    def __call__(self, graph: Graph) -> str | None:
        matcher = SubgraphMatcher(self.pattern, match_output=False, match_placeholder=False, remove_overlapping_matches=True)
        newer: dict[Node, Node] = {}
        try:
            matches = matcher.match(graph)
        except KeyError:  # PyTorch's matcher, where no node of the graph is like one of several results: nothing matches
            matches = []
        if not matches:
            return None
        replaced = sum(self._replace(graph, match, newer) for match in matches)
        left = len(matches) - replaced
        return f"{replaced} replaced" + (f", {left} left as they were" if left else "")

    def _replace(self, graph: Graph, match: InternalMatch, newer: dict[Node, Node]) -> bool:
        """Whether the match was replaced. newer: by node that an earlier match computed, what computes it now."""
        operands = [newer.get(operand, operand) for operand in match.placeholder_nodes]
        if not self._fits([operand.meta.get("val") if isinstance(operand, Node) else operand for operand in operands]):
            return False
        if self.check is not None and not self.check(*(node.meta.get("val") if isinstance(node, Node) else node for node in operands)):
            return False
        place = _first_user(graph, match.returning_nodes, operands)
        results = self._insert(place, operands, match.returning_nodes) if place is not None else None
        if results is None:
            return False
        for old, new in zip(match.returning_nodes, results):
            old.replace_all_uses_with(new)
            newer[old] = new
        matched = {node for pattern_node, node in match.nodes_map.items() if pattern_node.op == "call_function"}
        for node in reversed(graph.nodes):
            if node in matched and not node.users:
                graph.erase_node(node)
        return True

    def _fits(self, values: Sequence[Any]) -> bool:
        """Whether the operands may stand for the example's tensors."""
        if not all(isinstance(value, Tensor) for value in values):
            return False
        if self.conditions is not None and self.conditions.hold(values):
            return True
        return all(value.dim() == len(sizes) and all(guard_or_false(x == y) for x, y in zip(value.shape, sizes)) for value, sizes in zip(values, self.sizes))

    def _insert(self, place: Node, operands: Sequence[Any], olds: Sequence[Node]) -> list[Any] | None:
        """The results of the replacement, whose nodes are put in front of a node; None, and no nodes, where it does not compute what the old ones do."""
        graph, mode = place.graph, fake_mode_of(place.graph)
        inherited = {key: value for key, value in olds[0].meta.items() if key in INHERITED_META}
        nodes: dict[Node, Any] = dict(zip((node for node in self.replacement.nodes if node.op == "placeholder"), operands))
        first = place.prev
        try:
            with graph.inserting_before(place):
                for node in self.replacement.nodes:
                    if node.op == "call_function":
                        made = nodes[node] = graph.node_copy(node, nodes.__getitem__)
                        made.meta = dict(inherited)
                        made.meta["val"] = value_of_call(made, mode, "the replacement")
            results = [nodes[node] for node in _results(self.replacement)]
            if all(same_tensors(node.meta["val"], old.meta["val"]) for node, old in zip(results, olds)):
                return [self._laid_out(place, node, old) for node, old in zip(results, olds)]
        except UserError:  # an op refuses its arguments: the replacement was traced for other sizes
            pass
        while place.prev is not first:
            graph.erase_node(place.prev)
        return None

    @staticmethod
    def _laid_out(place: Node, node: Node, old: Node) -> Node:
        like = old.meta["val"]
        return node if same_strides(node.meta["val"], like) else restrided(place, node, like)


def _first_user(graph: Graph, results: Sequence[Node], operands: Sequence[Any]) -> Node | None:
    """The first node that reads a result; None where there is none, or an operand comes after it."""
    waiting = {operand for operand in operands if isinstance(operand, Node)}
    users = {user for result in results for user in result.users}
    for node in graph.nodes:
        if node in users:
            return None if waiting else node
        waiting.discard(node)
    return None
