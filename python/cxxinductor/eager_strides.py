"""Strides of eager's results where PyTorch's metas record other ones.

ATen's pointwise kernels give a contiguous result where all operands are contiguous; the metas follow the operands' strides.
The two differ for tensors with dimensions of size 1, which can be contiguous and channels-last at once, and that decides which
memory format a convolution or a concatenation takes further down. Some metas (copysign, floor_divide) have strides of their
own. So the recorded strides are corrected in the graph, and what is computed from such values is traced again. Tensors of no
elements differ too, where their size is data.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, Sequence

import sympy
import torch
from torch import Tensor
from torch._prims_common import (
    is_channels_last_contiguous_or_false,
    is_contiguous_or_false,
    is_non_overlapping_and_dense_or_false,
    make_channels_last_strides_for,
    make_contiguous_strides_for,
    suggest_memory_format,
)
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils._sympy.functions import Min

aten = torch.ops.aten

# In a node's meta: the symbol of its size that is data, and its strides in eager where that is 0.
WHEN_EMPTY = "cxxinductor_strides_when_empty"

# Whose strides TensorIterator chooses, though they are not tagged pointwise, and the reverse.
_POINTWISE = {aten.floor_divide.default, aten.leaky_relu.default}
_SELF_FIRST = {aten.threshold_backward.default}  # though its gradient is the first argument (aten/src/ATen/native/Activation.cpp)
_NOT_POINTWISE = {
    aten.angle.default,
    aten.clone.default,
    aten.deg2rad.default,
    aten.hardtanh.default,
    aten.masked_fill.Scalar,
    aten.masked_fill.Tensor,
    aten.mvlgamma.default,
    aten.nan_to_num.default,
    aten.polygamma.default,
    aten.pow.Scalar,
    aten.rad2deg.default,
}


def batch_norm_format(x: Tensor, weight: Tensor | None = None) -> torch.memory_format:
    """The memory format of a batch norm of x."""
    if x.device.type == "cpu":
        return torch.contiguous_format if is_contiguous_or_false(x) else suggest_memory_format(x)
    # cuDNN's norms take weights; ATen's own leave the strides as they are.
    return torch.preserve_format if weight is None else suggest_memory_format(x)


# Arguments of pointwise calls that are operands even where they are numbers. Others are constants of the function.
_OPERANDS = ("self", "other", "n", "x")

# The memory format of the (first) result, by the call's arguments.
_FORMATS: dict[Any, Callable[..., torch.memory_format]] = {
    aten.angle.default: lambda x: torch.contiguous_format if x.is_complex() else torch.preserve_format,
    aten.masked_fill.Scalar: lambda *args: torch.contiguous_format,
    aten.masked_fill.Tensor: lambda *args: torch.contiguous_format,
    aten.native_layer_norm.default: lambda *args: torch.contiguous_format,
    aten.native_batch_norm.default: lambda x, weight, *args: batch_norm_format(x, weight),
    aten._native_batch_norm_legit.default: lambda x, weight, *args: batch_norm_format(x, weight),
    aten._native_batch_norm_legit_no_training.default: lambda x, weight, *args: batch_norm_format(x, weight),
}


# Of these, calls whose metas have other strides without dimensions of size 1, too.
_ANY_SIZES = {aten.angle.default}


def correct(graph: Graph) -> None:
    """Corrects the strides that the nodes of an AOTAutograd graph are recorded with."""
    corrected: set[Node] = set()
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if any(operand in corrected for operand in node.all_input_nodes) and _trace_again(node):
            corrected.add(node)
        if _correct_pointwise(node) or _correct_format(node):
            corrected.add(node)
        _record_when_empty(node)


def when_empty(node: Node, strides: Sequence[Any]) -> list[Any] | None:
    """The strides as expressions that hold for a tensor of no elements, too; None where ``strides`` are those."""
    if WHEN_EMPTY not in node.meta:
        return None
    symbol, exact = node.meta[WHEN_EMPTY]
    symbol = next((stride.node.shape_env.replace(symbol) for stride in strides if isinstance(stride, torch.SymInt)), symbol)
    exprs = [stride.node.expr if isinstance(stride, torch.SymInt) else sympy.Integer(stride) for stride in strides]
    return [e + (n - e.xreplace({symbol: sympy.Integer(0)})) * (1 - Min(1, symbol)) for e, n in zip(exprs, exact)]


def _trace_again(node: Node) -> bool:
    """Records the node's value for the operands that it has now; False where its strides stay, or cannot be found so."""
    before = node.meta.get("val")
    tensors = [value for value in tree_leaves(before) if isinstance(value, Tensor)]
    if not tensors or node.meta.get("unbacked_bindings"):
        return False
    args, kwargs = _values((node.args, node.kwargs))
    if node.target is operator.getitem:
        node.meta["val"] = operator.getitem(*args)
        return True
    if not isinstance(node.target, torch._ops.OpOverload) or node.target._schema.is_mutable:
        return False
    with tensors[0].fake_mode:
        value = node.target(*args, **kwargs)
    node.meta["val"] = value
    return node.target.is_view or _strides(value) != _strides(before)


def _strides(value: Any) -> list[str]:
    return [str(tensor.stride()) for tensor in tree_leaves(value) if isinstance(tensor, Tensor)]


def _correct_format(node: Node) -> bool:
    if node.target not in _FORMATS:
        return False
    value = node.meta["val"]
    first, rest = (value, None) if isinstance(value, Tensor) else (value[0], value[1:])
    if not has_unit_dimension(first) and node.target not in _ANY_SIZES:
        return False
    args = _values(node.args)
    memory_format = _FORMATS[node.target](*args)
    with first.fake_mode:
        like = args[0] if memory_format == torch.preserve_format else first
        made = torch.empty_like(like, dtype=first.dtype, memory_format=memory_format)
    node.meta["val"] = made if rest is None else (made, *rest)
    return _strides(made) != _strides(first)


def has_unit_dimension(x: Tensor) -> bool:
    return any(isinstance(size, int) and size == 1 for size in x.shape)


# ---- Pointwise results ---------------------------------------------------------------------------------------------


def _correct_pointwise(node: Node) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, Tensor) or not is_pointwise(node.target) or free_unbacked_symbols(value):
        return False
    arguments = _arguments(node, _values)
    if not has_unit_dimension(value) and not all(map(_has_fixed_sizes, (value, *tree_leaves(arguments)))):
        return False
    strides = pointwise_strides(arguments, value.shape)
    if strides is None or strides == value.stride():
        return False
    with value.fake_mode:
        node.meta["val"] = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device)
    return True


def _has_fixed_sizes(x: Any) -> bool:
    return not isinstance(x, Tensor) or all(isinstance(n, int) for n in (*x.shape, *x.stride()))


def is_pointwise(target: Any) -> bool:
    tagged = isinstance(target, torch._ops.OpOverload) and torch.Tag.pointwise in target.tags
    return (tagged and target not in _NOT_POINTWISE) or target in _POINTWISE


def _arguments(node: Node, values: Callable[[Any], Any]) -> dict[str, Any]:
    """The arguments by name, as values, in the order in which ATen hands the operands to TensorIterator."""
    args, kwargs = values((node.args, node.kwargs))
    found = dict(zip((argument.name for argument in node.target._schema.arguments), args)) | kwargs
    return {"self": found.pop("self"), **found} if node.target in _SELF_FIRST else found


def _values(tree: Any) -> Any:
    return tree_map(lambda item: item.meta.get("val") if isinstance(item, Node) else item, tree)


def pointwise_strides(arguments: dict[str, Any], shape: Sequence[Any]) -> tuple[Any, ...] | None:
    """What ATen's TensorIterator chooses for a result of that shape; None where it is not known.

    Args:
        arguments: of the call, by their names in its schema, operands in the order of TensorIterator.
    """
    operands = [value for value in arguments.values() if isinstance(value, Tensor)]
    # ATen makes a tensor of an operand that is a number, of another shape than the result's.
    numbers = any(not isinstance(arguments.get(name), (Tensor, type(None))) for name in _OPERANDS)
    if not operands:
        return None
    if not numbers and all(x.shape == shape for x in operands):
        if all(map(is_contiguous_or_false, operands)):
            return tuple(make_contiguous_strides_for(shape))
        if len(shape) == 4 and all(map(is_channels_last_contiguous_or_false, operands)):
            return make_channels_last_strides_for(shape)
        if all(x.stride() == operands[0].stride() and is_non_overlapping_and_dense_or_false(x) for x in operands):
            return tuple(operands[0].stride())
    known = (n for x in operands for n in (*x.shape, *x.stride()))
    return _sorted_strides(shape, operands) if all(isinstance(n, int) for n in (*shape, *known)) else None


def _sorted_strides(shape: Sequence[int], operands: Sequence[Tensor]) -> tuple[int, ...]:
    """Dense strides in the order of the operands', of which the first that tells two dimensions apart decides."""
    rank = len(shape)
    steps = []  # of each operand; 0: it is repeated along the dimension
    for x in operands:
        repeated = [(0 if size == 1 and whole != 1 else stride) for size, stride, whole in zip(x.shape, x.stride(), shape[rank - x.dim() :])]
        steps.append([0] * (rank - x.dim()) + repeated)

    def is_inside(outer: int, inner: int) -> bool | None:
        for step in steps:
            if step[outer] == 0 or step[inner] == 0:
                continue
            if step[outer] != step[inner]:
                return step[inner] < step[outer]
            if shape[outer] > shape[inner]:
                return True
        return None

    order = list(reversed(range(rank)))  # from the innermost dimension
    for end in range(1, rank):
        at = end
        for before in reversed(range(end)):
            swap = is_inside(order[before], order[at])
            if swap is False:
                break
            if swap:
                order[before], order[at] = order[at], order[before]
                at = before
    if order == list(reversed(range(rank))):
        return tuple(make_contiguous_strides_for(shape))
    strides, step = [0] * rank, 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


# ---- Results without elements --------------------------------------------------------------------------------------


class _Unknown(Exception):
    """A size that depends on another symbol."""


def _record_when_empty(node: Node) -> None:
    """Records the strides that eager gives a tensor whose size is data and 0, where the recorded ones are others then."""
    value = node.meta.get("val")
    if not isinstance(value, Tensor) or all(isinstance(n, int) for n in value.shape):
        return
    unbacked = free_unbacked_symbols(value)
    if len(unbacked) != 1 or not isinstance(node.target, torch._ops.OpOverload):
        return
    (symbol,) = unbacked
    try:
        strides = _strides_when_empty(node, symbol)
        if strides is not None and tuple(strides) != _value_when_empty(node, symbol).stride():
            node.meta[WHEN_EMPTY] = symbol, strides
    except (_Unknown, IndexError, RuntimeError):  # also: of a program that reads an element, which a tensor of none has not
        return


def _strides_when_empty(node: Node, symbol: sympy.Symbol) -> Sequence[int] | None:
    def values(tree: Any) -> Any:
        return tree_map(lambda item: _value_when_empty(item, symbol) if isinstance(item, Node) else item, tree)

    if node.target == aten.nonzero.default:
        # On a GPU it is a matrix of n columns that is turned, and strides of dense tensors count empty dimensions as 1.
        return (1, 1) if node.meta["val"].device.type == "cuda" else None
    if node.target.is_view:
        args, kwargs = values((node.args, node.kwargs))
        return node.target(*args, **kwargs).stride()
    if is_pointwise(node.target):
        return pointwise_strides(_arguments(node, values), _value_when_empty(node, symbol).shape)
    return None


def _value_when_empty(node: Node, symbol: sympy.Symbol) -> Any:
    """The node's value where the symbol is 0, a tensor on the meta device."""

    def number(n: Any) -> Any:
        found = n.node.expr.xreplace({symbol: sympy.Integer(0)}) if isinstance(n, torch.SymInt) else n
        if not isinstance(found, (int, sympy.Integer)):
            raise _Unknown
        return int(found)

    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        return number(value)
    if not isinstance(value, Tensor):
        return value
    _, strides = node.meta.get(WHEN_EMPTY, (None, value.stride()))
    return torch.empty_strided([number(n) for n in value.shape], [number(n) for n in strides], dtype=value.dtype, device="meta")
