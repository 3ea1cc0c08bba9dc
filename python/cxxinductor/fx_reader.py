"""Reads a post-AOTAutograd FX graph into a C++ CallGraph: one builder call a node.

No FakeTensor and no sympy object crosses. What is called on the C++ side:

``_C.CallGraphBuilder(name)``
``.symbol(name, low, high, divisor)``
    what is known of a symbol that occurs in some size: its range, where int64 limits stand for "unbounded", and a number that it is
    a multiple of.
``.tensor_input(name, dtype, device_type, device_index, sizes, strides, storage_offset, storage, source, conjugate, negative) -> ValueRef``
    dtype: number of c10::ScalarType; device_index: -1 for the current one; sizes, strides, storage_offset: int or Sym; storage: equal
    where shared; conjugate, negative: PyTorch's bits.
``.symint_input(name, srepr, source) -> ValueRef`` and ``.opaque_input(name, source) -> ValueRef``
``.call(callee, overload, args, kwargs, results, result_is_list, origin) -> list[ValueRef]``
    callee: "aten::add"; overload: "" for the default one. args, kwargs: trees of lists over ValueRef, Sym, int, float,
    complex, bool, str, None, torch.dtype, torch.device, torch.layout, torch.memory_format, Function. results, flattened: for a tensor
    ``(name, dtype, device_type, device_index, sizes, strides, storage_offset, storage, conjugate, negative)``, for an integer a Sym, for a
    missing one None. origin: (file, line, module path, call).
``.function(callable) -> Function``: the argument of ``cxxinductor::call_function`` that names a Python function.
``.order_last_call()``: the last call has side effects and keeps its order among those that do.
``.restride_input(position, strides)``: the strides in which an input comes, where they are not those that the calls were recorded with.
``.flexible_output_strides(positions)``: outputs that may come in any strides; the compiled graph says which.
``.donate_inputs(positions)``: those that the caller keeps no reference to while the graph runs.
``.freeze_inputs(positions)``: parameters and buffers, which option freezing takes to stay as they are.
``.output(outputs)``: a list of ValueRef, Sym, int or None.
``_C.Sym(text)``: a symbolic integer as sympy.srepr text; ``_C.Condition(text)``: a condition on some, as 1 or 0; ``_C.ValueRef``: a handle of the builder's.

Inputs are the placeholders in order, then the tensors that the graph held as attributes.

Sizes that are data (``capture_dynamic_output_shape_ops``, ``capture_scalar_outputs``) are symbols that the calls define: C++
finds them in the metadata of results. What tracing relies upon about them becomes ranges, checked where the symbol is
defined, and calls of ``aten::_assert_scalar``. A float that ``item()`` gives stays a tensor of one element; a bool is a symbol
that is 0 or 1.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, Callable, NamedTuple, Sequence

import sympy
import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, resolve_unbacked_bindings, statically_known_true
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from torch.utils._sympy.functions import FloorDiv, Mod

from . import _C, eager_strides, higher_order, unbacked
from .errors import Unsupported, UserError
from .origins import origin, where
from .scalar_types import SCALAR_TYPES

_INT64 = (-(2**63), 2**63 - 1)

# How symbolic floats are computed: as tensors of one f64.
_REAL_CALLS = {
    operator.add: ("aten::add", "Tensor"),
    operator.sub: ("aten::sub", "Tensor"),
    operator.mul: ("aten::mul", "Tensor"),
    operator.truediv: ("aten::div", "Tensor"),
    operator.pow: ("aten::pow", "Tensor_Tensor"),
    operator.neg: ("aten::neg", ""),
    torch.sym_float: ("", ""),
    torch.sym_sqrt: ("aten::sqrt", ""),
    math.sqrt: ("aten::sqrt", ""),
}


# Calls that give what a tensor's metadata says.
_SYMBOLIC_CALLS = {f"aten::sym_{name}" for name in ("size", "stride", "numel", "storage_offset", "is_contiguous")}

_NUMBERS = (int, float, torch.SymBool, torch.SymFloat, torch.SymInt)

# Their results from the second on are positions and counts, of int64; PyTorch records them with the dtype of the values.
_POSITIONS = {
    torch.ops.aten._unique2.default,
    torch.ops.aten.unique_dim.default,
    torch.ops.aten.unique_consecutive.default,
    torch.ops.aten.unique_dim_consecutive.default,
}


def can_read(node: Node) -> bool:
    """Whether a node between inputs and output is of those that are read: an attribute, a call of an op, or any function that gives a number."""
    if node.op != "call_function":
        return node.op == "get_attr"
    is_op = isinstance(node.target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator))
    return is_op or node.target is operator.getitem or isinstance(node.meta.get("val"), _NUMBERS)


class _Unreadable:
    """A value that C++ cannot be told of; an error only if a call uses it."""

    def __init__(self, what: str):
        self.what = what


class ReadGraph(NamedTuple):
    builder: "_C.CallGraphBuilder"
    constants: list[torch.Tensor]  # to pass after the graph's own inputs
    # By position. Inputs: what makes a tensor of one element of the caller's float. Outputs: what makes the caller's bool
    # or float of an integer or a tensor of one element.
    input_conversions: dict[int, Callable[[Any], Any]]
    output_conversions: dict[int, Callable[[Any], Any]]


def read_graph(
    gm: GraphModule,
    name: str = "graph",
    inputs: Sequence[Any] = (),
    compile_graph: Callable[[GraphModule, Sequence[Any]], Callable[..., Any]] | None = None,
) -> ReadGraph:
    """Reads the graph into a builder.

    Args:
        inputs: what the graph will be called with, where their strides may differ from the recorded ones.
        compile_graph: makes a boxed callable of a subgraph and examples of its inputs; None: higher-order operators that
            are steps of their own are refused.

    Raises:
        Unsupported: the graph has a node that is no dispatcher call (higher-order ops, Python functions), or a value
            without tensor metadata; the message names the node and the model's line.
    """
    return _Reader(gm, name, inputs, compile_graph).read()


class _Reader:
    def __init__(self, gm: GraphModule, name: str, inputs: Sequence[Any], compile_graph: Any):
        self._gm = gm
        self._inputs = inputs
        self._compile_graph = compile_graph
        self._builder = _C.CallGraphBuilder(name)
        self._values: dict[Node, Any] = {}
        self._constants: list[torch.Tensor] = []
        self._quotients: dict[sympy.Expr, sympy.Integer] | None = None  # found when first wanted
        self._symbolic: dict[sympy.Expr, Any] = {}
        self._sizes: list[torch.SymInt] = []  # one of each size that is no number
        self._ranged: set[sympy.Symbol] = set()
        self._storages: dict[int, int] = {}
        self._defined: set[sympy.Symbol] = set()  # by calls so far
        self._asserted: set[sympy.Basic] = set()
        self._solved: dict[sympy.Symbol, sympy.Expr] = {}
        self._input_conversions: dict[int, Callable[[Any], Any]] = {}
        self._output_conversions: dict[int, Callable[[Any], Any]] = {}
        self._real_devices: dict[Node, torch.device] = {}  # of floats that are tensors

    def read(self) -> ReadGraph:
        if torch.get_default_dtype() is not torch.float32:
            raise Unsupported(f"the default dtype is {torch.get_default_dtype()}; only torch.float32 is read")
        self._solved = unbacked.solved_equalities(self._gm.graph.nodes)
        position = 0
        for node in self._gm.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = self._placeholder(node, position)
                self._restride(node, position)
                position += 1
            elif node.op == "output":
                (outputs,) = node.args
                outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]  # a subgraph of one result
                self._builder.output([self._output(node, i, item) for i, item in enumerate(outputs)])
            else:
                self._read_node(node)
        return ReadGraph(self._builder, self._constants, self._input_conversions, self._output_conversions)

    def _read_node(self, node: Node) -> None:
        if not can_read(node):
            raise Unsupported(f"{where(node)}: is not a dispatcher op")
        if node.op == "get_attr":
            self._values[node] = self._attribute(node)
        else:
            self._values[node] = self._call(node)
            self._assert_what_is_known(node)

    # ---- inputs --------------------------------------------------------------------------------------------------

    def _placeholder(self, node: Node, position: int) -> Any:
        value = node.meta.get("val")
        source = str(node.meta["desc"].expr()) if "desc" in node.meta else str(node.target)
        if isinstance(value, torch.Tensor):
            return self._tensor_input(node, value, source)
        if isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool):
            size = self._size(value)
            self._builder.symint_input(node.name, _srepr(value), source)
            return size
        if isinstance(value, torch.SymFloat):
            self._input_conversions[position] = functools.partial(torch.tensor, dtype=torch.float64)
            self._real_devices[node] = torch.device("cpu")
            return self._builder.tensor_input(*_scalar_fields(node.name, torch.float64, torch.device("cpu")), source, False, False)
        if isinstance(value, torch.SymBool) and (symbol := unbacked.symbol_of(value)) is not None:
            self._range(symbol, value.node.shape_env)
            self._builder.symint_input(node.name, sympy.srepr(symbol), source)
        else:
            self._builder.opaque_input(node.name, source)
        return _Unreadable(f"input {source} of type {type(value).__name__}")

    def _tensor_input(self, node: Node, value: torch.Tensor, source: str) -> Any:
        *fields, conjugate, negative = self._tensor(node, node.name, value)
        return self._builder.tensor_input(*fields, source, conjugate, negative)

    def _restride(self, node: Node, position: int) -> None:
        recorded = node.meta.get("val")
        given = self._inputs[position] if position < len(self._inputs) else None
        if not (isinstance(recorded, torch.Tensor) and isinstance(given, torch.Tensor)):
            return
        strides = (*recorded.stride(), *given.stride())
        if all(isinstance(s, int) for s in strides) and recorded.stride() != given.stride():
            self._builder.restride_input(position, given.stride())

    def _attribute(self, node: Node) -> Any:
        value = self._gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            return _Unreadable(f"attribute {node.target} of type {type(value).__name__}")
        if value.dim() == 0 and value.device.type == "cpu" and not _is_written(node):
            return self._literal(node, value)
        with _disable_current_modes():
            self._constants.append(value.detach())
        return self._tensor_input(node, value, str(node.target))

    def _literal(self, node: Node, value: torch.Tensor) -> Any:
        # A constant of one element is a number of the graph: kernels take it by value, on any device.
        with _disable_current_modes():  # the tracer's fake mode has no numbers to give
            number = value.item()
        if value.dtype not in SCALAR_TYPES:
            raise Unsupported(f"{where(node)}: a constant of dtype {value.dtype}")
        results = [self._tensor(node, node.name, value)]
        options = {"dtype": value.dtype, "device": value.device}
        return self._builder.call("aten::full", "", [[], number], options, results, False, origin(node))[0]

    # ---- calls ---------------------------------------------------------------------------------------------------

    def _call(self, node: Node) -> Any:
        target, value = node.target, node.meta.get("val")
        if target is operator.getitem:
            return self._item(node)
        if isinstance(target, torch._ops.HigherOrderOperator):
            return self._higher_order(node)
        if target in (torch.ops.prims._make_token.default, torch.ops.prims._sink_tokens.default):
            return _Unreadable("a token of effects")
        if target is torch.ops.aten._local_scalar_dense.default:
            return self._scalar_read(node, value)
        if not isinstance(target, torch._ops.OpOverload) or target._schema.name in _SYMBOLIC_CALLS:
            return self._symbolic_call(node, value)
        return self._dispatcher_call(node, target, node.args, node.kwargs, value)

    def _dispatcher_call(self, node: Node, target: Any, args: Sequence[Any], kwargs: dict[str, Any], value: Any) -> Any:
        args = [self._argument(node, item) for item in args]
        kwargs = {key: self._argument(node, item) for key, item in kwargs.items()}
        returns = target._schema.returns
        is_list = len(returns) == 1 and isinstance(returns[0].type, torch.ListType)
        if value is None and returns:
            raise Unsupported(f"{where(node)}: has no metadata")
        items = [] if not returns else list(value) if isinstance(value, (list, tuple)) else [value]
        results = [self._result(node, number, item, len(items)) for number, item in enumerate(items)]
        if target in _POSITIONS:
            results[1:] = [self._positions(node, target, number, fields) for number, fields in enumerate(results[1:], 1)]
        name, overload = target._schema.name, target._schema.overload_name
        refs = self._builder.call(name, overload, args, kwargs, results, is_list, origin(node))
        values = [self._size(v) if isinstance(v, (int, torch.SymInt)) else ref for ref, v in zip(refs, items)]
        return values if isinstance(value, (list, tuple)) else values[0] if values else None

    def _positions(self, node: Node, target: Any, number: int, fields: tuple) -> tuple:
        name, dtype, *rest = fields
        reads = (user for user in node.users if user.target is operator.getitem and user.args[1] == number)
        if dtype != SCALAR_TYPES[torch.int64] and any(user.op != "output" for read in reads for user in read.users):
            raise Unsupported(f"{where(node)}: result {number} of {target} is recorded with the dtype of the values")
        return name, SCALAR_TYPES[torch.int64], *rest

    # ---- higher-order operators (higher_order.py) ------------------------------------------------------------------

    def _higher_order(self, node: Node) -> Any:
        if node.target.name() == "with_effects":
            return self._with_effects(node)
        if found := higher_order.inlined(node, self._gm) or higher_order.expanded(node):
            return self._read_inside(node, *found)
        if self._compile_graph is None:
            raise Unsupported(f"{where(node)}: is not a dispatcher op")
        step = higher_order.Step(node, self._gm, self._compile_graph)
        leaves, spec = tree_flatten(node.meta.get("val"))
        results = [self._result(node, number, item, len(leaves)) for number, item in enumerate(leaves)]
        if not all(item is None or isinstance(item, torch.Tensor) for item in leaves):
            raise Unsupported(f"{where(node)}: returns numbers")
        tensors, integers = ([self._argument(node, item) for item in items] for items in (step.tensors, step.integers))
        arguments = [self._builder.function(step.call), tensors, integers]
        refs = self._builder.call("cxxinductor::call_function", "", arguments, {}, results, True, origin(node))
        return tree_unflatten(refs, spec)

    # (token, op, *args) -> (token, *results); a token orders calls and holds nothing.
    def _with_effects(self, node: Node) -> Any:
        _, target, *args = node.args
        if not isinstance(target, torch._ops.OpOverload):
            raise Unsupported(f"{where(node)}: has the effects of {target}")
        _, *results = node.meta["val"]
        returns = target._schema.returns
        value = tuple(results) if len(returns) > 1 else results[0] if returns else None
        found = self._dispatcher_call(node, target, args, dict(node.kwargs), value)
        self._builder.order_last_call()
        return [_Unreadable("a token of effects"), *(found if isinstance(value, tuple) else [found])]

    # Reads a graph in place of the node, its placeholders being the operands.
    def _read_inside(self, node: Node, graph: GraphModule, operands: Sequence[Any]) -> Any:
        given = iter([self._values[item] if isinstance(item, Node) else self._argument(node, item) for item in operands])
        outer, self._gm = self._gm, graph
        try:
            for inner in graph.graph.nodes:
                inner.meta.setdefault("stack_trace", node.meta.get("stack_trace"))
                if inner.op == "placeholder":
                    self._values[inner] = next(given)
                elif inner.op != "output":
                    self._read_node(inner)
            (outputs,) = graph.graph.output_node().args
            return tree_map(lambda item: self._values[item] if isinstance(item, Node) else item, outputs)
        finally:
            self._gm = outer

    def _item(self, node: Node) -> Any:
        container, index = node.args
        return self._values[container][index]

    def _scalar_read(self, node: Node, value: Any) -> Any:
        (tensor,) = node.args
        ref, of = self._argument(node, tensor), tensor.meta["val"]
        if isinstance(value, (float, torch.SymFloat)):
            self._real_devices[node] = of.device
            scalar = self._one_element(node, "aten::view", "", [ref, []], of.dtype, of.device) if of.dim() else ref
            return self._one_element(node, "aten::_to_copy", "", [scalar], torch.float64, of.device, {"dtype": torch.float64})
        if isinstance(value, (torch.SymBool, torch.SymInt)):
            symbol = unbacked.symbol_of(value)
            if symbol is None:
                raise Unsupported(f"{where(node)}: reads {value.node.expr} off a tensor")
            self._range(symbol, value.node.shape_env)
            self._builder.call("aten::_local_scalar_dense", "", [ref], {}, [_C.Sym(sympy.srepr(symbol))], False, origin(node))
            if symbol in self._solved:  # nothing else names the symbol
                equality = sympy.Eq(symbol, self._solved[symbol], evaluate=False)
                arguments = [_C.Condition(sympy.srepr(equality)), f"Runtime assertion failed for expression {equality}"]
                self._builder.call("aten::_assert_scalar", "", arguments, {}, [], False, origin(node))
        return self._size(value) if isinstance(value, torch.SymInt) else _Unreadable(f"{node.target} of type {type(value).__name__}")

    def _assert_what_is_known(self, node: Node) -> None:
        """What tracing took for granted once the node's symbols were there: it left out assertions that it knew to hold."""
        bindings, shape_env = node.meta.get("unbacked_bindings"), unbacked.shape_env_of(node)
        if not bindings or shape_env is None:
            return
        self._defined.update(resolve_unbacked_bindings(shape_env, bindings))
        for assertions in list(shape_env.deferred_runtime_asserts.values()):
            for assertion in assertions:
                condition = shape_env.replace(assertion.expr)
                if free_unbacked_symbols(condition) and free_unbacked_symbols(condition) <= self._defined:
                    self._assert(node, condition, assertion.expr, shape_env)

    def _assert(self, node: Node, condition: sympy.Basic, text: sympy.Basic, shape_env: Any) -> None:
        if condition in self._asserted:
            return
        self._asserted.add(condition)
        message = f"Runtime assertion failed for expression {text}"
        arguments = [self._truth(node, condition, shape_env), message]
        self._builder.call("aten::_assert_scalar", "", arguments, {}, [], False, origin(node))

    def _symbolic_call(self, node: Node, value: Any) -> Any:
        if isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool):
            return self._size(value)
        if isinstance(value, _NUMBERS):
            return _Unreadable(f"{node.target} of type {type(value).__name__}")
        raise Unsupported(f"{where(node)}: returns a {type(value).__name__}")

    def _result(self, node: Node, number: int, value: Any, count: int) -> Any:
        if value is None:
            return None
        if isinstance(value, torch.Tensor):
            return self._tensor(node, node.name if count == 1 else f"{node.name}_{number}", value)
        if isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool):
            self._size(value)
            return _C.Sym(_srepr(value))
        raise Unsupported(f"{where(node)}: returns a {type(value).__name__}")

    def _argument(self, node: Node, value: Any) -> Any:
        if isinstance(value, Node):
            found = self._values[value]
            if isinstance(value.meta.get("val"), torch.SymFloat):
                return self._real_argument(node, value)
            if isinstance(found, _Unreadable):
                condition = value.meta.get("val")
                if isinstance(condition, torch.SymBool):
                    return self._condition_argument(node, condition)
                raise Unsupported(f"{where(node)}: takes {found.what}")
            return found
        if isinstance(value, (list, tuple)):
            return [self._argument(node, item) for item in value]
        if isinstance(value, torch.SymInt):
            return self._size(value)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise Unsupported(f"{where(node)}: takes {value}, which is no integer of 64 bits")
        plain = (int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format)
        if value is None or isinstance(value, plain):
            return value
        raise Unsupported(f"{where(node)}: takes an argument of type {type(value).__name__}")

    # A bool of Python's promotes as a tensor of one bool does.
    def _condition_argument(self, node: Node, condition: torch.SymBool) -> Any:
        truth = self._truth(node, condition.node.expr, condition.node.shape_env)
        if node.target is torch.ops.aten._assert_scalar.default:
            self._asserted.add(condition.node.expr)
            return truth
        result = node.meta.get("val")
        device = result.device if isinstance(result, torch.Tensor) else torch.device("cpu")
        return self._one_element(node, "aten::full", "", [[], truth], torch.bool, device, {"dtype": torch.bool, "device": device})

    # A condition on sizes as a number of the same truth: 1 or 0.
    def _truth(self, node: Node, condition: sympy.Basic, shape_env: Any) -> Any:
        condition = condition.xreplace(self._solved)
        symbols = sorted(condition.free_symbols, key=str)
        try:
            if not all(symbol.is_integer for symbol in symbols):
                raise Unsupported
            truth = _C.Condition(sympy.srepr(condition))
        except (Unsupported, UserError):
            raise Unsupported(f"{where(node)}: takes the condition {condition}") from None
        for symbol in symbols:
            self._range(symbol, shape_env)
        return truth

    def _output(self, node: Node, position: int, item: Any) -> Any:
        value = item.meta.get("val") if isinstance(item, Node) else None
        if isinstance(value, torch.SymBool):
            self._output_conversions[position] = bool
            return self._truth(node, value.node.expr, value.node.shape_env)
        if isinstance(value, torch.SymFloat):
            self._output_conversions[position] = torch.Tensor.item
            return self._real(node, item, torch.device("cpu"))
        return self._argument(node, item)

    # A float made of sizes stands in a call as a tensor of one element: of f64 with f64, else of f32, as numbers enter kernels.
    # It promotes as a number does beside a tensor of some rank, or of its own dtype.
    def _real_argument(self, node: Node, value: Node) -> Any:
        result = node.meta.get("val")
        narrow = isinstance(result, torch.Tensor) and result.dim() == 0 and result.dtype not in (torch.float32, torch.float64)
        if narrow or not isinstance(result, torch.Tensor) or not result.is_floating_point():
            raise Unsupported(f"{where(node)}: takes {value.target} of type SymFloat")
        exact = self._real(node, value, result.device)
        if result.dtype == torch.float64:
            return exact
        return self._one_element(node, "aten::_to_copy", "", [exact], torch.float32, result.device, {"dtype": torch.float32})

    def _real(self, node: Node, value: Any, device: torch.device) -> Any:
        options = {"dtype": torch.float64, "device": device}
        if isinstance(value, Node) and value.target in _REAL_CALLS and isinstance(value.meta.get("val"), torch.SymFloat):
            operands = [self._real(node, item, device) for item in value.args]
            name, overload = _REAL_CALLS[value.target]
            return self._one_element(node, name, overload, operands, torch.float64, device) if name else operands[0]
        number = self._values[value] if isinstance(value, Node) else value
        if isinstance(number, _C.ValueRef):
            here = self._real_devices[value] == device
            return number if here else self._one_element(node, "aten::_to_copy", "", [number], torch.float64, device, options)
        if isinstance(number, _Unreadable):
            raise Unsupported(f"{where(node)}: takes {number.what}")
        return self._one_element(node, "aten::full", "", [[], number], torch.float64, device, options)

    def _one_element(
        self, node: Node, name: str, overload: str, args: list[Any], dtype: torch.dtype, device: torch.device, options: Any = None
    ) -> Any:
        result = (*_scalar_fields(f"{node.name}_number", dtype, device), False, False)
        return self._builder.call(name, overload, args, options or {}, [result], False, origin(node))[0]

    # ---- metadata ------------------------------------------------------------------------------------------------

    def _tensor(self, node: Node, name: str, value: torch.Tensor) -> tuple:
        if value.layout is not torch.strided or value.is_quantized:
            raise Unsupported(f"{where(node)}: a tensor that is sparse or quantised")
        if value.is_neg() and node.op in ("placeholder", "get_attr"):
            raise Unsupported(f"{where(node)}: an input with the negative bit set")
        if value.dtype not in SCALAR_TYPES:
            raise Unsupported(f"{where(node)}: a tensor of dtype {value.dtype}")
        if value.dtype is torch.complex32 and (value.is_conj() or value.is_neg()):
            raise Unsupported(f"{where(node)}: a tensor of dtype {value.dtype} with the conjugate or negative bit set")
        storage = self._storages.setdefault(value.untyped_storage()._cdata, len(self._storages) + 1)
        device = value.device
        strides = eager_strides.when_empty(node, value.stride())
        return (
            name,
            SCALAR_TYPES[value.dtype],
            device.type,
            _index(device),
            [self._size(s) for s in value.shape],
            [_C.Sym(sympy.srepr(s.xreplace(self._solved))) for s in strides] if strides else [self._size(s) for s in value.stride()],
            self._size(value.storage_offset()),
            storage,
            value.is_conj(),
            value.is_neg(),
        )

    def _size(self, value: int | torch.SymInt) -> Any:
        if isinstance(value, int):
            return value
        expression = self._expression(value)
        if expression not in self._symbolic:
            self._symbolic[expression] = self._new_size(value, expression)
        return self._symbolic[expression]

    def _expression(self, value: torch.SymInt) -> sympy.Expr:
        if self._quotients is None:
            self._quotients = _known_quotients(value.node.shape_env.guards)
        return value.node.expr.xreplace(self._solved).xreplace(self._quotients)

    def _new_size(self, value: torch.SymInt, expression: sympy.Expr) -> Any:
        if expression.is_Integer:
            return int(expression)
        if value.node.is_nested_int():
            raise Unsupported("a size that differs from row to row, of a nested tensor")
        # Guards may say what a size is, or that two are equal, which their expressions alone do not show.
        backed = not free_unbacked_symbols(expression)
        if backed and statically_known_true(value == value.node.hint):
            return value.node.hint
        for other in self._sizes if backed else []:
            if other.node.hint == value.node.hint and statically_known_true(other == value):
                return self._symbolic[self._expression(other)]
        self._sizes.append(value)
        for symbol in sorted(expression.free_symbols, key=str):
            self._range(symbol, value.node.shape_env)
        return _C.Sym(sympy.srepr(expression))

    def _range(self, symbol: sympy.Symbol, shape_env: Any) -> None:
        if symbol in self._ranged:
            return
        self._ranged.add(symbol)
        known = shape_env.var_to_range.get(symbol)
        if known is not None:
            low, high = _bound(known.lower, _INT64[0]), _bound(known.upper, _INT64[1])
            self._builder.symbol(str(symbol), low, high, _divisor(symbol, shape_env))


def _scalar_fields(name: str, dtype: torch.dtype, device: torch.device) -> tuple:
    return name, SCALAR_TYPES[dtype], device.type, device.index or 0, [], [], 0, 0


def _bound(value: Any, otherwise: int) -> int:
    if not value.is_Integer:
        return otherwise
    return max(_INT64[0], min(_INT64[1], int(value)))


def _known_quotients(guards: Sequence[Any]) -> dict[sympy.Expr, sympy.Integer]:
    """What guards say that quotients are: strides of a pooled image of one column read s0 // 2 where a guard says that it is 1."""
    equalities = (guard.expr for guard in guards if isinstance(guard.expr, sympy.Eq))
    return {e.lhs: e.rhs for e in equalities if isinstance(e.lhs, FloorDiv) and e.rhs.is_Integer}


def _divisor(symbol: sympy.Symbol, shape_env: Any) -> int:
    """What guards say that the symbol is a multiple of: all of its other residues contradict one of them."""
    found = 1
    for guard in shape_env.guards:
        if isinstance(guard.expr, sympy.Eq) and guard.expr.free_symbols == {symbol}:
            difference = guard.expr.lhs - guard.expr.rhs
            for divisor in sorted({atom.args[1] for atom in difference.atoms(FloorDiv, Mod)}, key=str):
                if divisor.is_Integer and 2 <= divisor <= 64 and _needs_multiple(difference, symbol, int(divisor)):
                    found = math.lcm(found, int(divisor))
    return found


def _needs_multiple(difference: sympy.Expr, symbol: sympy.Symbol, divisor: int) -> bool:
    difference = difference.replace(Mod, lambda base, modulus: base - modulus * FloorDiv(base, modulus))
    multiple = divisor * sympy.Symbol("multiple", integer=True, nonnegative=True)
    rest = (sympy.expand(difference.xreplace({symbol: multiple + residue})) for residue in range(1, divisor))
    return all(value.is_Integer and value != 0 for value in rest)


def _index(device: torch.device) -> int:
    return -1 if device.index is None else device.index


def _srepr(value: int | torch.SymInt) -> str:
    return f"Integer({value})" if isinstance(value, int) else sympy.srepr(value.node.expr)


def _is_written(node: Node) -> bool:
    return any(user.target is torch.ops.aten.copy_.default and user.args[0] is node for user in node.users)
