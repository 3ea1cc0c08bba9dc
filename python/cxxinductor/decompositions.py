"""What AOTAutograd decomposes before we read a graph.

The rule: an op that the C++ front-end imports whole is never decomposed (``_C.overloads_imported_whole``, one place:
csrc/frontend's tables), because ATen computes it in one kernel, or because the front-end states ATen's own roundings,
and torch's decompositions round elsewhere: those of gelu, silu or softmax differ from eager in a fifth of the elements
in bf16. The rest of torch's core table applies, which decomposes composites that the front-end does not know, with one exception:
ops that are one ATen kernel each and run as that kernel (``_C.arrives_whole``; csrc/frontend/call_reasons.cpp states the reasons).
Ops that the table lacks become the fragments that every reader in C++ makes of them (csrc/model/decompose), if they have one.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.fx.experimental.symbolic_shapes import guard_or_false

from . import _C, eager_strides, fragments, user_decompositions
from .registry import Snapshot

aten = torch.ops.aten

# Beyond the core table: training forms of batch norm, so that only their reductions and pointwise parts arrive.
_BATCH_NORMS = (
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_functional.default,
    aten._batch_norm_with_update_functional.default,
)

# Their CPU kernels give the memory format of the input; their CUDA kernels and torch's decompositions contiguous tensors.
_OF_IMAGES = (
    aten.channel_shuffle.default,
    aten.max_unpool2d.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad3d.default,
    aten.replication_pad2d.default,
    aten.replication_pad3d.default,
)


def table(users: Snapshot | None = None) -> dict[Any, Callable[..., Any]]:
    """A fresh copy of the decomposition table, with those that users registered: aot_autograd changes what it is given.

    users: theirs; by default those that are registered now.
    """
    return {**_table(), **user_decompositions.table(users or user_decompositions.REGISTRY.snapshot())}


@functools.cache
def _table() -> dict[Any, Callable[..., Any]]:
    decompositions = dict(core_aten_decompositions())
    decompositions.update(get_decompositions(_BATCH_NORMS))
    whole = set(_C.overloads_imported_whole())
    for op in list(decompositions):
        schema = op._schema
        overload = f".{schema.overload_name}" if schema.overload_name else ""
        if schema.name + overload in whole or _C.arrives_whole(schema.name):
            del decompositions[op]
    for op in (aten.nll_loss_backward.default, aten.soft_margin_loss_backward.default, aten.take.default):
        decompositions[op] = _by_rule(op)  # in the place of torch's
    for name in _C.ops_with_fragments(_C.Fragments.Decompositions):
        callee, _, overload = name.partition(".")
        op = fragments.op_of(callee, overload)
        if name not in whole and op not in decompositions:
            decompositions[op] = _by_rule(op)
    decompositions[aten.nan_to_num.default] = functools.partial(nan_to_num, decompositions[aten.nan_to_num.default])
    decompositions[aten.linalg_vector_norm.default] = linalg_vector_norm
    decompositions[aten.huber_loss.default] = huber_loss
    for op in _BATCH_NORMS:
        decompositions[op] = _laid_out_as_in_eager(decompositions[op], eager_strides.batch_norm_format)
    for op in _OF_IMAGES:
        decompositions[op] = _laid_out_as_in_eager(decompositions[op], suggest_memory_format)
    return decompositions


def _laid_out_as_in_eager(decomposition: Callable[..., Any], format_of: Callable[[Tensor], torch.memory_format]) -> Callable[..., Any]:
    """On the CPU the (first) result is contiguous in a memory format, whatever the strides of the input."""

    @functools.wraps(decomposition)
    def laid_out(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        results = decomposition(input, *args, **kwargs)
        if input.device.type != "cpu":
            return results
        output, *rest = results if isinstance(results, tuple) else (results,)
        # With dimensions of size 1 it may be contiguous in both formats: only clone gives the strides of one.
        lay_out = torch.clone if eager_strides.has_unit_dimension(output) else Tensor.contiguous
        output = lay_out(output, memory_format=format_of(input))
        return (output, *rest) if isinstance(results, tuple) else output

    return laid_out


def _by_rule(op: Any) -> Callable[..., Any]:
    """By the rule that every reader in C++ follows; calls that it does not cover stay."""

    def decomposed(*args: Any, **kwargs: Any) -> Any:
        fragment = fragments.find(_C.Fragments.Decompositions, op, args, kwargs)
        if fragment is None:
            return NotImplemented
        results = fragment.run(lambda target, *given, **named: target(*given, **named))
        return tuple(results) if len(results) > 1 else results[0]

    return decomposed


def nan_to_num(
    of_real: Callable[..., Tensor], self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Also of complex tensors, part by part: torch's decomposition takes real ones alone."""
    if not self.is_complex():
        return of_real(self, nan, posinf, neginf)
    return torch.view_as_complex(of_real(torch.view_as_real(self.resolve_conj()), nan, posinf, neginf))


def linalg_vector_norm(
    self: Tensor, ord: float = 2, dim: list[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Orders that the front-end does not import; along one dimension of size 1, where torch states wrong sizes, eager takes |x|."""
    x = self if dtype is None else self.to(dtype)
    if dim is not None and len(dim) == 1 and self.dim() > 0 and ord != 0 and guard_or_false(self.shape[dim[0]] == 1):
        return x.abs() if keepdim else x.abs().squeeze(dim[0])
    return _by_rule(aten.linalg_vector_norm.default)(self, ord, dim, keepdim, dtype=dtype)


def huber_loss(self: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    """Of two dtypes: the loss has that of the input, but torch states the promoted one."""
    if self.dtype == target.dtype:
        return NotImplemented
    dtype = torch.promote_types(self.dtype, target.dtype)
    loss = aten.huber_loss(self.to(dtype), target.to(dtype), 0, delta).to(self.dtype)
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()
