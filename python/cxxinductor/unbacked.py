"""Sizes that are data: which symbols stand for them, and what the graph asserts of them."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, resolve_unbacked_bindings


def symbol_of(value: torch.SymInt | torch.SymBool) -> sympy.Symbol | None:
    """The symbol that is an integer, or 1 where a bool is true and 0 where not."""
    expression = value.node.expr
    if isinstance(value, torch.SymBool) and isinstance(expression, sympy.Eq) and expression.args[1] == 1:
        expression = expression.args[0]
    return expression if expression.is_Symbol else None


def solved_equalities(nodes: Any) -> dict[sympy.Symbol, sympy.Expr]:
    """Sizes that are data in terms of earlier ones, where the graph, or the forward graph before it, asserts an equality.

    Sizes that look different and are equal become one expression: what a list of sizes splits has a known sum.
    """
    defined: dict[sympy.Symbol, int] = {}
    equalities: list[sympy.Eq] = []
    solved: dict[sympy.Symbol, sympy.Expr] = {}
    shape_env = None
    for node in nodes:
        value, bindings, shape_env = node.meta.get("val"), node.meta.get("unbacked_bindings"), shape_env_of(node) or shape_env
        symbols = list(resolve_unbacked_bindings(shape_env, bindings) or ()) if bindings and shape_env is not None else []
        if node.op == "placeholder" and isinstance(value, torch.SymInt) and value.node.expr.is_Symbol:
            symbols.append(value.node.expr)
        for symbol in symbols:
            defined.setdefault(symbol, len(defined))
        asserted = node.args[0] if node.target is torch.ops.aten._assert_scalar.default else None
        condition = asserted.meta.get("val") if isinstance(asserted, Node) else None
        if isinstance(condition, torch.SymBool) and isinstance(condition.node.expr, sympy.Eq):
            equalities.append(condition.node.expr)
    for assertions in list(shape_env.deferred_runtime_asserts.values()) if defined else []:
        conditions = (shape_env.replace(assertion.expr) for assertion in assertions)
        equalities += [condition for condition in conditions if isinstance(condition, sympy.Eq)]
    for equality in equalities:
        difference = sympy.expand((equality.lhs - equality.rhs).xreplace(solved))
        unknown = free_unbacked_symbols(difference)
        # PyTorch may merge calls that are alike: the symbols of one of them are left without a definition.
        if not unknown or len(unknown - defined.keys()) > 1:
            continue
        latest = max(unknown, key=lambda symbol: defined.get(symbol, len(defined)))
        factor = difference.coeff(latest)
        rest = difference - factor * latest
        if factor in (1, -1) and latest not in rest.free_symbols:
            value = -rest * factor
            solved = {symbol: expression.xreplace({latest: value}) for symbol, expression in solved.items()}
            solved[latest] = value
    return solved


def shape_env_of(node: Node) -> Any:
    value = node.meta.get("val")
    for item in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(item, (torch.SymInt, torch.SymBool, torch.SymFloat)):
            return item.node.shape_env
        if isinstance(item, torch.Tensor) and getattr(item, "fake_mode", None) is not None:
            return item.fake_mode.shape_env
    return None
