"""The rules of csrc/model/infer against eager: the dispatcher calls that samples of op_db make, on the CPU.

Composites, which arrive taken apart there, are called by themselves, and ops of GPUs on tensors without memory.
A rule sees the metadata of a call's arguments alone, once as numbers and once with every size of two or more as a symbol. What it
states must be what eager's results have: dtype, sizes, strides (of dimensions of more than one element), offset, and whose memory.
``python tests/python/test_infer.py [samples]`` takes that many samples of each kind, and lists the calls without a rule by name.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import logging
import math
import random
import re
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

import pytest
import torch
from op_db.calls import operators, with_gaps
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from cxxinductor import _C
from cxxinductor.scalar_types import SCALAR_TYPES

ROWS = (Path(__file__).parents[2] / "csrc" / "ir" / "dtypes.def").read_text()
NAMES = {int(number): name for name, number in re.findall(r'^DTYPE\(\w+, "(\w+)", "[^"]*", (\d+),', ROWS, re.MULTILINE)}
DTYPES = {dtype: NAMES[number] for dtype, number in SCALAR_TYPES.items()}
FORMATS = {torch.contiguous_format: 0, torch.preserve_format: 1, torch.channels_last: 2, torch.channels_last_3d: 3}
LIBRARIES = ("aten::", "prims::")
MOST_ELEMENTS = 1 << 16


class NoText(Exception):
    """An argument that the text form of calls does not have."""


# ---- Calls as text -------------------------------------------------------------------------------------------------


class Writer:
    """A call's text, and the storages of its tensors by number."""

    def __init__(self, symbolic: bool):
        self.inputs: list[str] = []
        self.storages: dict[int, int] = {}
        self.hints: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._symbolic = symbolic

    def text(self, name: str, args: Any, kwargs: Any) -> str:
        items = [self._value(x) for x in args]
        items += [f"{key} = {self._value(x)}" for key, x in kwargs.items() if not isinstance(x, torch.Generator)]
        where = " where " + ", ".join(f"2 <= {s}" for s in self.hints) if self.hints else ""
        return f"calls @f{where} {{\n" + "".join(self.inputs) + f'  "{name}"({", ".join(items)})\n  return\n}}\n'

    def _size(self, n: int) -> str:
        if not self._symbolic or n < 2:
            return str(n)
        self.hints[f"s{n}"] = n
        return f"s{n}"

    def _tensor(self, x: torch.Tensor) -> str:
        if id(x) in self._names:
            return self._names[id(x)]
        if x.dtype not in DTYPES or x.layout != torch.strided or x.device.type == "meta" or x.numel() > MOST_ELEMENTS:
            raise NoText
        device = "" if x.device.type == "cpu" else f" on {x.device}"
        storage = self.storages.setdefault(x.untyped_storage()._cdata, len(self.storages) + 1)
        name = f"%t{len(self.inputs)}"
        sizes = ", ".join(map(self._size, x.shape))
        # Row-major strides are not written, and are products of sizes then.
        dense = all(s == d for s, d in zip(x.stride(), torch.empty(x.shape, device="meta").stride()))
        strides = "" if dense else f" strides [{', '.join(map(str, x.stride()))}]"
        offset = f" offset({x.storage_offset()})" if x.storage_offset() else ""
        bits = " conjugate" * x.is_conj() + " negative" * x.is_neg()
        self.inputs.append(f"  input {name}: {DTYPES[x.dtype]}[{sizes}]{strides}{device}{offset} storage {storage}{bits}\n")
        self._names[id(x)] = name
        return name

    def _value(self, x: Any) -> str:
        if isinstance(x, torch.Tensor):
            return self._tensor(x)
        if isinstance(x, (list, tuple)):
            return f"[{', '.join(map(self._value, x))}]"
        if x is None:
            return "none"
        if isinstance(x, bool):
            return str(x).lower()
        if isinstance(x, int) and -(2**63) <= x < 2**63:
            return str(x)
        if isinstance(x, float) and math.isfinite(x):
            return repr(x)
        if isinstance(x, complex):
            return f"complex({x.real!r}, {x.imag!r})"
        if isinstance(x, str):
            return f'"{x}"'
        if isinstance(x, torch.dtype) and x in DTYPES:
            return DTYPES[x]
        if isinstance(x, torch.device) and x.type == "cpu":
            return "device(cpu)"
        if x is torch.strided:
            return "layout(0)"
        if isinstance(x, torch.memory_format):
            return f"memory_format({FORMATS[x]})"
        raise NoText


# ---- Comparing -----------------------------------------------------------------------------------------------------


def results_of(value: Any) -> list[Any]:
    return list(itertools.chain.from_iterable(map(results_of, value))) if isinstance(value, (list, tuple)) else [value]


def metadata(x: Any, storages: dict[int, int]) -> Any:
    if not isinstance(x, torch.Tensor):
        return x if isinstance(x, int) else None
    storage = storages.get(x.untyped_storage()._cdata, 0)
    return DTYPES.get(x.dtype), list(x.shape), list(x.stride()), x.storage_offset(), storage, str(x.device)


def is_same(found: Any, expected: Any) -> bool:
    if not isinstance(found, tuple) or not isinstance(expected, tuple):
        return found == expected
    if 0 in expected[1]:  # neither strides nor memory matter
        return found[:2] == expected[:2] and found[5] == expected[5]
    strides = all(a == b for n, a, b in zip(expected[1], found[2], expected[2]) if n > 1)
    return found[:2] == expected[:2] and len(found[2]) == len(expected[2]) and strides and found[3:] == expected[3:]


@dataclasses.dataclass
class Sweep:
    compared: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # calls by overload
    without_rule: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    without_symbols: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # none for symbolic sizes
    failures: dict[str, list[str]] = dataclasses.field(default_factory=lambda: collections.defaultdict(list))
    seen: set[str] = dataclasses.field(default_factory=set)

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Runs an overload, and compares what the rule states where the call has a text form."""
        name = function.name()
        written = []
        if name.startswith(LIBRARIES):
            for symbolic in (False, True):
                writer = Writer(symbolic)
                try:
                    written.append((writer, writer.text(name, args, kwargs)))
                except NoText:
                    break
        results = function(*args, **kwargs)
        if len(written) == 2 and written[0][1] not in self.seen:
            self.seen.add(written[0][1])
            flat = results_of(results) if function._schema.returns else []
            if all(x is None or not isinstance(x, torch.Tensor) or x.layout == torch.strided for x in flat):
                for writer, text in written if written[1][0].hints else written[:1]:
                    self.compare(name, writer, text, flat)
        return results

    def compare(self, name: str, writer: Writer, text: str, results: list[Any]) -> None:
        expected = [metadata(x, writer.storages) for x in results]
        try:
            found = _C.infer_call(text, writer.hints)
        except Exception as error:  # a rule may not raise: eager did not
            self.failures[name].append(f"{error}\n{text}")
            return
        if found is None:
            (self.without_symbols if writer.hints else self.without_rule)[name] += 1
            return
        self.compared[name] += 1
        if len(found) != len(expected) or not all(map(is_same, found, expected)):
            self.failures[name].append(f"found    {found}\nexpected {expected}\n{text}")


class Recorder(TorchDispatchMode):
    def __init__(self, sweep: Sweep):
        super().__init__()
        self._sweep = sweep

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._sweep.call(function, args, kwargs or {})


# ---- Samples -------------------------------------------------------------------------------------------------------


def channels_last(tree: Any) -> Any:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}

    def turned(x: Any) -> Any:
        is_dense = isinstance(x, torch.Tensor) and x.dim() in formats and x.layout == torch.strided
        return x.detach().to(memory_format=formats[x.dim()]).requires_grad_(x.requires_grad) if is_dense else x

    return tree_map(turned, tree)


def sampled(op: Any, dtype: torch.dtype, most: int, backward: bool) -> Iterator[tuple[Any, Any]]:
    random.seed(0)
    torch.manual_seed(0)
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=backward), most):
        yield (sample.input, *sample.args), sample.kwargs


def run(sweep: Sweep, op: Any, arguments: Any, backward: bool) -> None:
    args, kwargs = arguments
    with Recorder(sweep):
        results = op.op(*args, **kwargs)
        if not backward:
            return
        roots = [y for y in tree_leaves(results) if isinstance(y, torch.Tensor) and y.requires_grad]
        leaves = [x for x in tree_leaves(arguments) if isinstance(x, torch.Tensor) and x.requires_grad]
        torch.autograd.grad(roots, leaves, [torch.ones_like(y) for y in roots], allow_unused=True)


def kinds(op: Any) -> Iterator[tuple[torch.dtype, bool, Any]]:
    supported = op.supported_dtypes("cpu")
    for dtype in (torch.float32, torch.int64, torch.bfloat16, torch.complex64):
        if dtype in supported:
            yield dtype, False, None
    if torch.float32 in supported:
        yield torch.float32, False, with_gaps
        yield torch.float32, op.supports_autograd, channels_last
        if op.supports_autograd:
            yield torch.float32, True, None


# ---- Calls that op_db has no samples of ----------------------------------------------------------------------------


def further_calls() -> Iterator[Callable[[], Any]]:
    """Formats, narrow dtypes with f32 parameters, and ops that torch lists no samples of."""
    last, last3d = {"memory_format": torch.channels_last}, {"memory_format": torch.channels_last_3d}
    plain = torch.randn(2, 4, 8, 8)
    images = (plain, plain.to(**last), plain.transpose(2, 3), torch.randn(1, 4, 1, 1), torch.randn(2, 1, 8, 8).to(**last))
    volumes = (torch.randn(2, 4, 4, 8, 8), torch.randn(2, 4, 4, 8, 8).to(**last3d))
    for dtype, x, transposed in itertools.product((torch.float32, torch.float64, torch.bfloat16), images, (False, True)):
        for groups in (1, 4) if x.shape[1] == 4 and dtype == torch.float32 else (1,):
            weight = torch.randn(x.shape[1], x.shape[1] // groups, 3, 3).to(dtype)
            for w in (weight, weight.to(**last)):
                yield partial(convolution, x.to(dtype), w, 2, transposed, groups)
    for dtype, x, transposed in itertools.product((torch.float32, torch.float64), volumes, (False, True)):
        yield partial(convolution, x.to(dtype), torch.randn(4, 4, 3, 3, 3).to(dtype), 1, transposed, 1)
    for w in (torch.randn(6, 4, 3), torch.randn(3, 4, 6).permute(2, 1, 0)):
        yield partial(convolution, torch.randn(2, 4, 9), w, 1, False, 1)
    yield from image_calls(images, volumes)
    yield from other_calls()


def image_calls(images: Sequence[torch.Tensor], volumes: Sequence[torch.Tensor]) -> Iterator[Callable[[], Any]]:
    aten = torch.ops.aten
    for x in images[:3]:
        for kind in ("reflection", "replication"):
            forward, backward = getattr(aten, f"{kind}_pad2d"), getattr(aten, f"{kind}_pad2d_backward")
            yield lambda x=x, f=forward, b=backward: b(f(x, [1, 2, 1, 1]), x, [1, 2, 1, 1])
        for kind in ("nearest", "_nearest_exact", "bilinear", "bicubic"):
            name = f"_upsample{kind}2d" if kind.startswith("_") else f"upsample_{kind}2d"
            corners = [] if "nearest" in kind else [False]
            yield lambda x=x, name=name, corners=corners: getattr(aten, name + "_backward")(
                getattr(aten, name)(x, [12, 12], *corners), [12, 12], list(x.shape), *corners
            )
        yield partial(aten._upsample_bilinear2d_aa, x, [5, 5], False)
        yield partial(aten._upsample_bicubic2d_aa, x, [5, 5], False)
        for dim in (0, 1, 4):
            yield partial(aten.stack, [x, x], dim)
        yield partial(aten.roll, x, [1, 1], [2, 3])
        yield partial(aten.constant_pad_nd, x, [1, 1, -1, 0], 0.0)
        yield partial(aten.constant_pad_nd, x, [-1, -1], 0.0)
        yield partial(aten.native_dropout, x, 0.5, True)
        yield partial(aten.native_group_norm, x, torch.ones(4), None, x.shape[0], 4, 64, 2, 1e-5)
        yield partial(aten._to_copy, x, dtype=torch.float16)
        yield partial(aten._to_copy, x, memory_format=torch.channels_last)
        yield partial(aten.add.Tensor, x, torch.randn(4, 1, 1))
        yield partial(aten.add.Tensor, x, images[1])
        yield partial(aten.bernoulli.p, x, 0.5)
        yield partial(aten.rrelu_with_noise, x, torch.empty_like(x), 0.1, 0.3, True)
        for dtype, train in itertools.product((torch.float32, torch.bfloat16), (False, True)):
            yield partial(batch_norm, x.to(dtype), train)
    for x in volumes:
        yield partial(aten.upsample_nearest3d, x, [8, 8, 8])
        yield partial(aten.upsample_nearest3d_backward, x, [4, 8, 8], [2, 4, 2, 4, 4])
        yield partial(aten.upsample_trilinear3d_backward, x, [4, 8, 8], [2, 4, 2, 4, 4], False)
        for kind in ("reflection", "replication"):
            yield partial(getattr(aten, f"{kind}_pad3d"), x, [1] * 6)


def other_calls() -> Iterator[Callable[[], Any]]:
    aten = torch.ops.aten
    narrow = torch.randn(4, 8, 16).bfloat16()
    for weight in (torch.ones(16), torch.ones(16).bfloat16(), None):
        yield partial(aten.native_layer_norm, narrow, [16], weight, None, 1e-5)
        yield partial(aten._fused_rms_norm, narrow, [16], weight, 1e-5)
        yield partial(aten._fused_rms_norm, narrow.float().transpose(0, 1), [16], None, None)
    for dim, sizes in ((0, [4, 1, 1]), (2, [1, 1, 3])):
        yield partial(aten._weight_norm_interface, torch.randn(4, 5, 3), torch.randn(sizes), dim)
    query = torch.randn(2, 4, 8, 16)
    for q in (query, query.transpose(1, 2).contiguous().transpose(1, 2), query.bfloat16()):
        yield lambda q=q: attention(q)
    items = [torch.randn(3, 4), torch.randn(5).bfloat16()]
    yield partial(aten._foreach_add.List, items, items, alpha=2)
    yield partial(aten._foreach_mul.Scalar, items, 2.0)
    yield partial(aten._foreach_addcmul.Scalar, items, items, items, 0.5)
    yield partial(aten._foreach_sqrt, items)
    yield partial(aten._foreach_lerp.Scalar, items, items, 0.5)
    yield partial(aten._foreach_pow.ScalarList, items, [2.0, 3.0])
    gaps = torch.randn(5, 20)[:, 1::2].t()
    yield partial(aten.pow.Scalar, 2.0, gaps)
    yield partial(aten.ldexp.Tensor, torch.randn(10, 1, 5).permute(2, 1, 0), gaps.t())
    yield partial(aten.log_sigmoid_forward, gaps)
    yield partial(aten.arange.start_step, 0.0, -8.000001, -4.0, dtype=torch.int64)
    yield partial(aten.avg_pool1d, torch.randn(2, 3, 9), [2])
    yield partial(aten.adaptive_avg_pool1d, torch.randn(2, 3, 9), [4])
    yield partial(aten._pdist_forward, torch.randn(4, 5), 2.0)
    yield partial(aten._foreach_norm.Scalar, [torch.randn(3, 4), torch.randn(5, dtype=torch.complex64)])
    yield partial(torch.ops.prims.convert_element_type, gaps, torch.float16)
    yield partial(torch.ops.prims.iota, 5, start=1, step=2, dtype=torch.int32, device=torch.device("cpu"), requires_grad=False)
    for lower, rows, columns, offset in itertools.product((True, False), (0, 3, 5), (0, 4), (-6, -1, 0, 2, 7)):
        yield partial(aten.tril_indices if lower else aten.triu_indices, rows, columns, offset)
    table, offsets = torch.randn(10, 4), torch.tensor([0, 2, 4])
    for mode, last, weights, x in itertools.product(range(3), (False, True), (None, torch.ones(5)), (table, table.double(), table.bfloat16())):
        for op in (aten._embedding_bag, aten._embedding_bag_forward_only):
            scale = None if weights is None or mode else weights.to(x.dtype)
            yield partial(op, x, torch.tensor([1, 2, 3, 4, 5]), offsets, False, mode, False, scale, last)
    block = torch.randn(4, 5, 6)
    for indices in ([torch.tensor([0, 1]), None, torch.tensor([2, 3])], [None, torch.tensor([[0, 1], [2, 3]])]):
        for x in (block, block.permute(2, 0, 1)):
            yield partial(aten.index.Tensor, x, indices)
            yield partial(aten._unsafe_index.Tensor, x, indices)
    for name in ("transpose_", "squeeze_", "t_", "unsqueeze_"):
        arguments = {"transpose_": (0, 1), "unsqueeze_": (1,)}.get(name, ())
        yield lambda name=name, arguments=arguments: getattr(aten, name)(torch.randn(3, 1), *arguments)
    yield lambda: aten.resize_(torch.randn(4, 4), [2, 3])
    yield partial(aten._int_mm, torch.ones(32, 32, dtype=torch.int8), torch.ones(32, 32, dtype=torch.int8))


def convolution(x: torch.Tensor, weight: torch.Tensor, step: int, transposed: bool, groups: int) -> None:
    spatial = x.dim() - 2
    numbers = [step] * spatial, [1] * spatial, [1] * spatial, transposed, [0] * spatial, groups
    y = torch.ops.aten.convolution(x, weight, None, *numbers)
    for mask in ([True, True, True], [False, True, False]):
        torch.ops.aten.convolution_backward(y, x, weight, [y.shape[1]], *numbers, mask)


def batch_norm(x: torch.Tensor, train: bool) -> None:
    aten, channels = torch.ops.aten, x.shape[1]
    weight, mean, variance = torch.ones(channels), torch.zeros(channels), torch.ones(channels)
    y, saved_mean, saved = aten.native_batch_norm(x, weight, weight, mean, variance, train, 0.1, 1e-5)
    aten.native_batch_norm_backward(y, x, weight, mean, variance, saved_mean, saved, train, 1e-5, [True, True, True])
    aten._native_batch_norm_legit_no_training(x, weight, weight, mean, variance, 0.1, 1e-5)


def attention(query: torch.Tensor) -> None:
    aten = torch.ops.aten
    y, sums = aten._scaled_dot_product_flash_attention_for_cpu(query, query, query)
    aten._scaled_dot_product_flash_attention_for_cpu_backward(y, query, query, query, y, sums, 0.0, False)


def composite_calls() -> Iterator[tuple[Any, ...]]:
    aten = torch.ops.aten
    x = torch.randn(2, 4, 6, 8)
    for x in (x, x.to(memory_format=torch.channels_last), x.transpose(1, 2), x[:, ::2]):
        yield aten.contiguous.default, (x,)
        yield aten.contiguous.default, (x,), {"memory_format": torch.channels_last}
        yield from ((aten.flatten.using_ints, (x, start, end)) for start, end in ((0, -1), (1, 2), (2, 3), (1, 1)))
        yield aten.unflatten.int, (x, -1, [2, -1])
        yield aten.movedim.int, (x, 1, -1)
        yield aten.movedim.intlist, (x, [0, 3], [2, 0])
        yield from ((op, (x, chunks, 3)) for op in (aten.chunk.default, aten.unsafe_chunk.default) for chunks in (1, 3, 5, 9))
        yield aten.chunk.default, (x[..., :0], 3, 3)
        yield aten.narrow.default, (x, 1, -2, 1)
        yield aten.reshape.default, (x, [2, -1, 8])
        yield aten.true_divide.Tensor, (x, x)
        yield from ((op, (x, 1)) for op in (aten.sym_size.int, aten.sym_stride.int))
        yield from ((op, (x[1],)) for op in (aten.sym_numel.default, aten.sym_storage_offset.default))
        yield from ((op, (x, torch.randn(8))) for op in (aten.max.other, aten.min.other))
    yield aten.flatten.using_ints, (torch.tensor(1.0),)
    row = torch.randn(1, 8)
    yield aten.view_as.default, (row, torch.randn(2, 4))
    yield aten.expand_as.default, (row, torch.randn(2, 3, 8))
    yield aten.broadcast_to.default, (row, [3, 8])


def gpu_calls() -> Iterator[tuple[Any, Any]]:
    """On tensors without memory: torch states their results in Python."""
    aten = torch.ops.aten
    query = torch.empty(2, 4, 8, 16, device="cuda:0", dtype=torch.float16)
    key = torch.empty(2, 4, 12, 16, device="cuda:0", dtype=torch.float16)
    value = torch.empty(2, 4, 12, 32, device="cuda:0", dtype=torch.float16)
    bias = torch.empty(2, 4, 8, 12, device="cuda:0", dtype=torch.float16)
    sums, state = torch.empty(2, 4, 8, device="cuda:0"), torch.empty((), device="cuda:0", dtype=torch.int64)
    for q in (query, query.transpose(1, 2).contiguous().transpose(1, 2)):
        tensors = q, key, value
        yield aten._scaled_dot_product_cudnn_attention.default, (*tensors, None, True)
        yield aten._scaled_dot_product_flash_attention_backward.default, (
            q, *tensors, q, sums, None, None, 8, 12, 0.0, False, state, state,
        )  # fmt: skip
        yield aten._scaled_dot_product_cudnn_attention_backward.default, (
            q, *tensors, q, sums, state, state, bias, None, None, 8, 12, 0.0, False,
        )  # fmt: skip
        for mask in ([True, True, True, False], [True, True, True, True]):
            yield aten._scaled_dot_product_efficient_attention_backward.default, (
                q, *tensors, bias, q, sums, state, state, 0.0, mask,
            )  # fmt: skip
        yield aten._scaled_dot_product_efficient_attention.default, (*tensors, None, True)
    for dtype in (torch.float32, torch.float16):
        yield from gpu_calls_on_images(torch.empty(2, 4, 8, 8, device="cuda:0", dtype=dtype))


def gpu_calls_on_images(plain: torch.Tensor) -> Iterator[tuple[Any, Any]]:
    aten, last = torch.ops.aten, plain.to(memory_format=torch.channels_last)
    channels, weight = torch.empty(4, device="cuda:0"), plain.new_empty(6, 4, 3, 3)
    labels = torch.zeros(2, 8, 8, device="cuda:0", dtype=torch.int64)
    steps = [1, 1], [1, 1], [1, 1], False, [0, 0], 1
    for y in (plain, last, plain.transpose(2, 3)):
        yield aten.convolution.default, (y, weight, None, *steps)
        yield aten.native_layer_norm.default, (y, [8], y.new_empty(8), None, 1e-5)
        yield aten.max_pool2d_with_indices.default, (y, [2, 2])
        yield aten.avg_pool2d.default, (y, [2, 2])
        yield aten._adaptive_avg_pool2d.default, (y, [2, 2])
        yield aten.upsample_nearest2d.default, (y, [16, 16])
        yield aten.native_dropout.default, (y, 0.5, True)
        yield aten._softmax.default, (y, 1, False)
        yield aten.roll.default, (y, [1], [1])
        yield aten.constant_pad_nd.default, (y, [1, 1], 0.0)
        yield aten.log_sigmoid_forward.default, (y,)
        yield aten.cat.default, ([y, y], 1)
        yield aten.nll_loss2d_forward.default, (y, labels, None, 1, -100)
        for training in (False, True):
            yield aten.native_batch_norm.default, (y, *[channels] * 4, training, 0.1, 1e-5)
    # Of other strides torch's meta functions state what its kernels do not.
    yield aten.native_group_norm.default, (plain, plain.new_empty(4), None, 2, 4, 64, 2, 1e-5)
    for y in (plain, last):
        yield aten.native_batch_norm_backward.default, (y, y, *[channels] * 5, True, 1e-5, [True] * 3)
        yield aten.cudnn_batch_norm.default, (y, *[channels] * 4, False, 0.1, 1e-5)


def swept(samples: int) -> Sweep:
    sweep = Sweep()
    for function, args, *kwargs in composite_calls():
        with contextlib.suppress(RuntimeError):
            sweep.call(function, args, *kwargs or [{}])
    with FakeTensorMode():
        for function, args in gpu_calls():
            sweep.call(function, args, {})
    for call in further_calls():
        with Recorder(sweep), contextlib.suppress(RuntimeError):
            call()
    logging.disable(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in operators().values():
            for dtype, backward, change in kinds(op):
                try:
                    for arguments in sampled(op, dtype, samples, backward):
                        run(sweep, op, change(arguments) if change else arguments, backward)
                except (RuntimeError, ValueError, NotImplementedError, TypeError, IndexError, ImportError, AssertionError):
                    continue  # what eager does not run, or has no samples of
    logging.disable(logging.NOTSET)
    return sweep


def report(sweep: Sweep) -> str:
    lines = [f"{len(sweep.compared)} overloads, {sweep.compared.total()} calls compared; {len(sweep.without_rule)} overloads without a rule"]
    for name, texts in sorted(sweep.failures.items()):
        lines.append(f"--- {name}: {len(texts)} of {sweep.compared[name]}")
        lines.append(texts[0])
    return "\n".join(lines)


def test_rules_are_of_ops_that_torch_has():
    torch_names = set(torch._C._dispatch_get_all_op_names())
    assert [name for name in _C.inferred_ops() if name not in torch_names] == []


# By their reasons. A call of one of these ends what a recorder can follow.
WITHOUT_RULE = {
    "aten::_local_scalar_dense": "gives a number that is data",
    "aten::nonzero": "its sizes are data",
    "aten::_fft_c2r": "the FFT library that torch is built with decides its strides",
    "aten::_fft_r2c": "the FFT library that torch is built with decides its strides",
    "aten::atan2.out": "its result is an argument, which eager may resize",
    "aten::sym_is_contiguous": "gives a truth value",
}


def test_core_ops_and_those_of_the_importer_have_rules():
    names = {name.removeprefix("aten::").split(".")[0] for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")}
    packets = [getattr(torch.ops.aten, name) for name in sorted(names) if hasattr(torch.ops.aten, name)]
    overloads = [getattr(packet, name) for packet in packets for name in packet.overloads()]
    core = {op.name() for op in overloads if torch.Tag.core in op.tags}
    assert len(core) > 180
    names = core | set(_C.overloads_imported_whole())
    missing = {name for name in names if not _C.has_infer_rule(*(name + ".").split(".")[:2])}
    assert missing == set(WITHOUT_RULE)


def test_results_of_op_db_calls():
    sweep = swept(1)
    print(report(sweep))
    if sweep.failures:
        pytest.fail(report(sweep), pytrace=False)
    assert len(sweep.compared) >= 550


if __name__ == "__main__":
    done = swept(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
    print(report(done))
    print("without a rule:", *sorted(done.without_rule))
    print("not with symbols:", *sorted(set(done.without_symbols) - set(done.without_rule)))
