"""Decompositions that users register: AOTAutograd runs them in the place of an op's call."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.fx.experimental.symbolic_shapes import guard_or_false
from torch.utils._pytree import tree_leaves

from . import reports
from .errors import UserError
from .registry import Registry, Snapshot

REGISTRY: Registry[Callable[..., Any]] = Registry("decomposition")

_NOT_CHECKED = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)  # running them again would make other sizes
_FORMATS = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)


def require_decomposable(op: torch._ops.OpOverload) -> None:
    """UserError for ops that no compiler sees, or whose calls do more than return tensors."""
    if op._schema.is_mutable:
        raise UserError(f"register_decomposition: {op} writes into its arguments; compiled graphs call the op that returns new tensors: decompose that")
    if any(result.alias_info for result in op._schema.returns):
        raise UserError(f"register_decomposition: {op} returns a view of an argument, which a decomposition cannot")
    if torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd"):
        raise UserError(f"register_decomposition: PyTorch itself takes {op} apart before a compiler sees it; decompose the ops that it consists of")


def table(users: Snapshot) -> dict[Any, Callable[..., Any]]:
    """By op, functions that also check what the users' return."""
    return {op: _checked(op, function) for op, function in users.entries.items()}


def _checked(op: torch._ops.OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    name = getattr(function, "__name__", repr(function))

    def decomposed(*args: Any, **kwargs: Any) -> Any:
        try:
            results = function(*args, **kwargs)
        except UserError:  # of an op that the function calls, such as this one again
            raise
        except RecursionError as error:
            raise UserError(f"the decomposition {name} of {op} calls {op} again and again: return NotImplemented to keep the op") from error
        except Exception as error:
            raise UserError(f"the decomposition {name} of {op} raised {type(error).__name__}: {error}") from error
        if results is NotImplemented:
            return results
        reports.note_extension(f"decomposition {name} of {op}")
        if any(tag in op.tags for tag in _NOT_CHECKED):
            return results
        with disable_proxy_modes_tracing():
            expected = op(*args, **kwargs)
        is_single = not isinstance(expected, (tuple, list))
        wanted, found = ([expected], [results]) if is_single else (list(expected), results)
        if not isinstance(found, (tuple, list)) or len(found) != len(wanted):
            raise UserError(f"the decomposition {name} of {op}: expected {len(wanted)} results, found {described(results)}")
        matching, taken = [], {leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        for result, like in zip(found, wanted):
            matching.append(_as_op_returns(result, like, taken, f"the decomposition {name} of {op}"))
        return matching[0] if is_single else type(expected)(matching)

    return decomposed


def described(value: Any) -> str:
    """A value of a graph, for messages."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)} on {value.device}"
    return f"({', '.join(map(described, value))})" if isinstance(value, (tuple, list)) else repr(value)


def _as_op_returns(result: Any, like: Any, taken: set[int], what: str) -> Any:
    """The result with the op's strides, which programs may read, in memory of its own. taken: that of arguments and of results before; it is added."""
    if not isinstance(like, Tensor):
        return result
    if not isinstance(result, Tensor) or not same_tensors(result, like):
        raise UserError(f"{what}: expected {described(like)}, as the op returns it, found {described(result)}")
    if result.untyped_storage()._cdata in taken:
        result = result.clone()
    taken.add(result.untyped_storage()._cdata)
    if same_strides(result, like):
        return result
    for memory_format in _FORMATS:
        if memory_format is torch.contiguous_format or like.dim() == (4 if memory_format is torch.channels_last else 5):
            laid_out = result.clone(memory_format=memory_format)
            if same_strides(laid_out, like):
                return laid_out
    raise UserError(f"{what}: expected strides {like.stride()}, as the op's result has, found {result.stride()}")


def same_tensors(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors, of which one may be fake, have the same dtype, device and sizes, as far as is known of symbolic ones."""
    if (a.dtype, a.dim()) != (b.dtype, b.dim()) or a.device != b.device:
        return False
    return not any(guard_or_false(x != y) for x, y in zip(a.shape, b.shape))


def same_strides(a: Tensor, b: Tensor) -> bool:
    return all(guard_or_false(n == 1) or guard_or_false(x == y) for n, x, y in zip(a.shape, a.stride(), b.stride()))
