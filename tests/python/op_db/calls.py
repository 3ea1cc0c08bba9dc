"""What is called: an operator of op_db, of one dtype, with the arguments of one sample, in one form."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import os
import random
from typing import Any, Callable, Iterator

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, UnaryUfuncInfo
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool)
DIFFERENTIATED = (torch.float32, torch.bfloat16, torch.float64)
FORMS = ("plain", "inplace", "backward", "strided")
MOST_ELEMENTS = 1 << 20
SEED = int(os.environ.get("OP_DB_SEED", 0))  # of samples' elements
WITHOUT_VALUES = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")  # memory as it was found


@dataclasses.dataclass(frozen=True)
class Call:
    operator: str
    dtype: torch.dtype
    form: str  # plain; inplace: of the first argument; backward: with gradients; strided: on inputs with gaps in memory
    sample: str  # its number, or "special"
    function: Callable[..., Any] = dataclasses.field(compare=False)
    arguments: tuple[Any, ...] = dataclasses.field(compare=False)  # positional and keyword arguments

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def device(self) -> str:
        return next((x.device.type for x in tree_leaves(self.arguments) if isinstance(x, torch.Tensor)), "cpu")

    def __str__(self) -> str:
        return f"{self.operator} {self.dtype_name} {self.form} {self.sample}"


@functools.cache
def operators() -> dict[str, OpInfo]:
    return {name_of(op): op for op in op_db}


def name_of(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def dtypes(op: OpInfo, device: str) -> list[torch.dtype]:
    supported = op.supported_dtypes(torch.device(device).type)
    return [dtype for dtype in DTYPES if dtype in supported]


def forms(op: OpInfo, dtype: torch.dtype, device: str) -> list[str]:
    found = ["plain", "strided"]
    if op.get_inplace() is not None:
        found.append("inplace")
    if op.supports_autograd and dtype in DIFFERENTIATED and dtype in op.supported_backward_dtypes(torch.device(device).type):
        found.append("backward")
    return [form for form in FORMS if form in found]


def calls(op: OpInfo, dtype: torch.dtype, device: str, form: str, most: int) -> list[Call]:
    """At most so many of the operator's samples, from its first to its last, that eager runs; and special values."""
    found: list[Call] = []
    function = op.get_inplace() if form == "inplace" else _zeroed(op.op) if op.name in WITHOUT_VALUES else op.op
    try:
        samples = list(_samples(op, dtype, device, form))
    except Exception:  # e.g. samples that need a library that is not installed
        return []
    usable = [(name, arguments) for name, arguments in samples if _is_usable(arguments)]
    for name, arguments in _spread(usable, most):
        call = Call(name_of(op), dtype, form, name, function, arguments)
        if runs(call):
            found.append(call)
    return found


def _zeroed(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda *args, **kwargs: function(*args, **kwargs).zero_()


def _samples(op: OpInfo, dtype: torch.dtype, device: str, form: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    random.seed(SEED)
    torch.manual_seed(SEED)
    if isinstance(op, UnaryUfuncInfo) and not dtype.is_complex:
        yield "special", ((special_values(dtype, device),), {})
    if isinstance(op, BinaryUfuncInfo) and form != "backward":
        a, b = special_pairs(dtype, device, op.name)
        yield "special", ((a, b), {})
        if dtype != torch.bool and not dtype.is_floating_point:
            yield "special without zeros", ((a[b != 0], b[b != 0]), {})
    for number, sample in enumerate(op.sample_inputs(torch.device(device), dtype, requires_grad=form == "backward")):
        arguments = ((sample.input, *sample.args), sample.kwargs)
        yield str(number), with_gaps(arguments) if form == "strided" else arguments


def special_values(dtype: torch.dtype, device: str) -> torch.Tensor:
    """Ends of the dtype's range, what is not a number, zeros of both signs, and numbers about which functions change."""
    if dtype == torch.bool:
        return torch.tensor([False, True, True], device=device)
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        values = [info.max, info.max - 1, 0, 1, 2, 3, 5, 7, 31, 100]
        return torch.tensor(values + ([info.min, info.min + 1, -1, -2, -3, -7, -100] if info.min else []), dtype=dtype, device=device)
    info = torch.finfo(dtype)
    sizes = [0.0, math.inf, info.max, info.tiny, info.smallest_normal / 4, info.eps, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 6.0, 10.0, 20.5, 90.0, 1e4]
    values = [math.nan, *sizes, *(-x for x in sizes)]
    return torch.tensor(values, dtype=torch.float64, device=device).to(dtype)


def special_pairs(dtype: torch.dtype, device: str, operator: str) -> tuple[torch.Tensor, torch.Tensor]:
    values = special_values(dtype, device)
    a, b = values.repeat(values.numel()), values.repeat_interleave(values.numel())
    if dtype == torch.bool or dtype.is_floating_point or not torch.iinfo(dtype).min:
        return a, b
    # Processors trap where the quotient of two integers does not fit; lcm divides by what it finds.
    least = torch.iinfo(dtype).min
    fits = (a != least) & (b != least) if operator == "lcm" else ~((a == least) & (b == -1))
    return a[fits], b[fits]


def with_gaps(tree: Any) -> Any:
    """The same values, every tensor of a dimension in reverse order of dimensions and with every second element of memory."""

    def spread(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.dim() == 0 or x.layout != torch.strided or x.requires_grad:
            return x
        wide = torch.zeros([2 * n if i == 0 else n for i, n in enumerate(reversed(x.shape))], dtype=x.dtype, device=x.device)
        gaps = wide[1::2].permute(*reversed(range(x.dim())))
        return gaps.copy_(x)

    return tree_map(spread, tree)


def _is_usable(arguments: Any) -> bool:
    tensors = [x for x in tree_leaves(arguments) if isinstance(x, torch.Tensor)]
    return all(type(x) in (torch.Tensor, torch.nn.Parameter) and x.layout == torch.strided and x.numel() <= MOST_ELEMENTS for x in tensors)


def _spread(items: list[Any], most: int) -> list[Any]:
    if len(items) <= most:
        return items
    step = (len(items) - 1) / max(1, most - 1)
    return [items[round(i * step)] for i in range(most)]


def runs(call: Call) -> bool:
    try:
        args, kwargs = fresh(call.arguments)
        results = call.function(*args, **kwargs)
        if call.form != "backward":
            return True
        roots = [y for y in tree_leaves(results) if isinstance(y, torch.Tensor) and y.requires_grad]
        leaves = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor) and x.requires_grad]
        torch.autograd.grad(roots, leaves, [torch.rand_like(y) for y in roots], allow_unused=True)
        return bool(roots)
    except Exception:
        return False


def fresh(tree: Any) -> Any:
    """A copy with storages of its own, shared as those of the original are."""
    leaves, spec = tree_flatten(tree)
    detached = copy.deepcopy([x.detach() if isinstance(x, torch.Tensor) else x for x in leaves])
    for copied, original in zip(detached, leaves, strict=True):
        if isinstance(original, torch.Tensor) and original.requires_grad:
            copied.requires_grad_()
    return spec.unflatten(detached)
