"""Runs the rules of csrc/model/decompose on tensors of Python: a call becomes the calls that stand for it, as for every reader in C++.

Sizes cross as srepr text and come back as text in terms of the same symbols, so no FakeTensor and no sympy object crosses.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Callable, NamedTuple, Sequence

import sympy
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from . import _C
from .scalar_types import SCALAR_TYPES

_INT64 = (-(2**63), 2**63 - 1)
_FUNCTIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "min": torch.sym_min, "max": torch.sym_max}
_PLAIN = (int, float, complex, str, torch.dtype, torch.device, torch.memory_format)


class Fragment(NamedTuple):
    operands: list[Any]
    calls: list[tuple[str, str, list[Any], dict[str, Any]]]
    results: list[Any]
    symbols: dict[str, torch.SymInt]

    def run(self, call: Callable[..., Any]) -> list[Any]:
        """The results, None for those that nothing asks for. call(op, *args, **kwargs): what makes the result of each call."""
        values = list(self.operands)

        def given(item: Any) -> Any:
            if isinstance(item, _C.ValueRef):
                return values[item.number]
            return eval(item.text, _FUNCTIONS, self.symbols) if isinstance(item, _C.SizeText) else item

        for callee, overload, args, kwargs in self.calls:
            result = call(op_of(callee, overload), *tree_map(given, args), **tree_map(given, kwargs))
            values += result if isinstance(result, (list, tuple)) else [result]
        return [given(item) for item in self.results]


def op_of(callee: str, overload: str) -> Any:
    """The dispatcher op of "aten::norm" and "Scalar"; "" is the default overload."""
    namespace, name = callee.split("::")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")


def find(
    table: "_C.Fragments", op: Any, args: Sequence[Any], kwargs: dict[str, Any], value_of: Callable[[Any], Any] = lambda x: x, result: Any = None
) -> Fragment | None:
    """What stands for a call, or None where no rule covers it.

    Args:
        value_of: of each argument, its fake tensor, or itself where it is none.
        result: a fake tensor, or a tuple of them, with the metadata of the call's results; None: eager's, by the rules of csrc/model/infer.
    """
    return _Finder(value_of).find(table, op, args, kwargs, result)


class _Finder:
    def __init__(self, value_of: Callable[[Any], Any]):
        self._value_of = value_of
        self._builder = _C.CallGraphBuilder("call")
        self._operands: list[Any] = []
        self._symbols: dict[str, torch.SymInt] = {}

    def find(self, table: "_C.Fragments", op: Any, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> Fragment | None:
        try:
            arguments = [self._argument(item) for item in args]
            keywords = {key: self._argument(item) for key, item in kwargs.items()}
            made = result if isinstance(result, (tuple, list)) else [] if result is None else [result]
            results = [("", *self._fields(value), False, False) for value in made]
        except TypeError:
            return None
        schema = op._schema
        self._builder.call(schema.name, schema.overload_name, arguments, keywords, results, False, ("", 0, "", ""))
        found = _C.fragment(self._builder, table)
        return None if found is None else Fragment(self._operands, *found, self._symbols)

    def _argument(self, item: Any) -> Any:
        value = self._value_of(item)
        if isinstance(value, Tensor):
            self._operands.append(item)
            return self._builder.tensor_input("", *self._fields(value), "", False, False)
        if isinstance(value, torch.SymInt):
            return self._size(value)
        if isinstance(value, (list, tuple)):
            return [self._argument(each) for each in value]
        if value is None or isinstance(value, _PLAIN):
            return value
        raise TypeError

    def _fields(self, value: Tensor) -> tuple:
        if value.layout is not torch.strided or value.dtype not in SCALAR_TYPES or value.is_conj() or value.is_neg():
            raise TypeError
        device = value.device
        sizes, strides = ([self._size(n) for n in numbers] for numbers in (value.shape, value.stride()))
        return SCALAR_TYPES[value.dtype], device.type, -1 if device.index is None else device.index, sizes, strides, 0, 0

    def _size(self, value: int | torch.SymInt) -> Any:
        if isinstance(value, int):
            return value
        expression, shape_env = value.node.expr, value.node.shape_env
        if expression.is_Integer:
            return int(expression)
        for symbol in expression.free_symbols:
            self._add_symbol(symbol, shape_env)
        if expression.is_Symbol:
            self._symbols[str(expression)] = value
        return _C.Sym(sympy.srepr(expression))

    def _add_symbol(self, symbol: sympy.Symbol, shape_env: Any) -> None:
        if str(symbol) in self._symbols:
            return
        hint = shape_env.backed_var_to_val.get(symbol)
        self._symbols[str(symbol)] = shape_env.create_symintnode(symbol, hint=None if hint is None else int(hint))
        known = shape_env.var_to_range.get(symbol)
        low, high = (known.lower, known.upper) if known is not None else (-math.inf, math.inf)
        bounds = [int(min(max(bound, _INT64[0]), _INT64[1])) if sympy.sympify(bound).is_Integer else limit for bound, limit in zip((low, high), _INT64)]
        self._builder.symbol(str(symbol), *bounds, 1)
