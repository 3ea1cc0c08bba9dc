"""Small programs for torch.export, one for each thing that an exported program may hold; exported_ops.py has more, family by family of ops.

test_pt2_programs.py runs some of them, model_zoo.py all.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.invoke_subgraph import mark_compile_region
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch._library.effects import EffectType
from torch.export import Dim
from torch.utils._pytree import _register_namedtuple

PROGRAMS: dict[str, Callable[[], Program]] = {}


@dataclasses.dataclass
class Program:
    """A module with arguments for its export, and further ones of other sizes and contents to run it on."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    dynamic_shapes: Any = None
    others: list[tuple[Any, ...]] = dataclasses.field(default_factory=list)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Words of the reasons why it runs through ATen as a whole; "": it does not.
    falls_back: str = ""
    train: bool = False  # in training mode
    strict: bool = False


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    PROGRAMS[make.__name__] = make
    return make


class Function(nn.Module):
    """A function of tensors and parameters p0, p1 ... as a module."""

    def __init__(self, function: Callable[..., Any], *parameters: nn.Module):
        super().__init__()
        self.function = function
        self.layers = nn.ModuleList(parameters)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*self.layers, *args, **kwargs)


def batches(*sizes: int) -> list[tuple[torch.Tensor, ...]]:
    return [(torch.randn(size, 6),) for size in sizes]


# ---- Control flow ------------------------------------------------------------------------------------------------------


@program
def cond() -> Program:
    def function(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: layer(x).relu() + 1, lambda x: x * 2 - x.shape[0], (x,)) * 2

    x = torch.rand(3, 6)
    return Program(Function(function, nn.Linear(6, 6)), (x,), others=[(-x,)])


@program
def cond_of_sizes() -> Program:
    """The predicate is an expression of sizes; branches read a size that no operand of theirs shows alone."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        n = x.shape[0]
        twice = torch.cat([x, x])
        a = torch.cond(n > 4, lambda y: y * n, lambda y: y.sin() + n, (twice,))
        b = torch.cond(x.sum() > 0, lambda y: y[:n] + 1, lambda y: y[n:].cos(), (twice,))
        return a, b

    return Program(Function(function), (torch.rand(3, 6),), dynamic_shapes=(({0: Dim("b", min=2, max=64)},),), others=batches(2, 4, 5, 9))


@program
def nested_cond() -> Program:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.max() > 2, lambda u: u.cos() + u, lambda u: u * u, (x,))

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, inner, lambda t: t.tanh() * t, (x,)) + 1

    return Program(Function(function), (torch.ones(4) * 3,), others=[(torch.ones(4),), (-torch.ones(4),)])


@program
def loop() -> Program:
    def function(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        count, y = while_loop(lambda i, y: (i < 5) & (y.sum() < 100), lambda i, y: (i + 1, layer(y).tanh() + y), (torch.tensor(0), x.exp()))
        return y * count

    return Program(Function(function, nn.Linear(6, 6)), (torch.randn(3, 6),), others=[(torch.randn(3, 6) + 9,)])


@program
def loop_of_dynamic_rows() -> Program:
    def function(x: torch.Tensor) -> torch.Tensor:
        return while_loop(lambda i, y: i < y.shape[0], lambda i, y: (i + 1, y * 1.5 - y.mean(0)), (torch.tensor(0), x))[1].relu()

    return Program(Function(function), (torch.randn(3, 6),), dynamic_shapes=(({0: Dim("b", min=2, max=64)},),), others=batches(2, 7))


@program
def scan_rows() -> Program:
    def function(first: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return scan(lambda c, x: (c * 0.5 + x, (c * x).sin()), first, rows.exp(), dim=0)

    args = (torch.randn(6), torch.randn(5, 6))
    return Program(Function(function), args, dynamic_shapes=((None, {0: Dim("t", min=2, max=64)}),), others=[(torch.randn(6), torch.randn(8, 6))])


@program
def scan_columns_backwards() -> Program:
    def function(first: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return scan(lambda c, x: (c + x, c.tanh()), first, rows, dim=1, reverse=True)

    return Program(Function(function), (torch.randn(6), torch.randn(6, 4)))


@program
def scan_cells() -> Program:
    def function(cell: nn.Module, state: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def step(state: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            new = cell(torch.cat([state, x], -1)).tanh()
            return new, new * 2

        return scan(step, state, rows)

    return Program(Function(function, nn.Linear(10, 6)), (torch.randn(2, 6), torch.randn(5, 2, 4)))


@program
def mapped_rows() -> Program:
    def function(layer: nn.Module, rows: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return map_rows(lambda x, y: layer(x).sin() + y, rows, y).relu()

    return Program(Function(function, nn.Linear(6, 6)), (torch.randn(3, 6), torch.randn(6)))


@program
def region() -> Program:
    @mark_compile_region
    def block(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    return Program(Function(lambda x: block(block(x))), (torch.randn(3, 6),))


# ---- Modes ---------------------------------------------------------------------------------------------------------------


@program
def autocast() -> Program:
    def function(a: nn.Module, b: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast("cpu", torch.bfloat16):
            y = a(x)
            z = F.softmax(y, -1) @ y.t()
            with torch.autocast("cpu", enabled=False):
                w = b(x) + y
        return b(y.float()) + w, z

    return Program(Function(function, nn.Linear(6, 6), nn.Linear(6, 6)), (torch.randn(4, 6),))


@program
def autocast_attention() -> Program:
    def function(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return block(x)

    return Program(Function(function, nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)), (torch.randn(2, 5, 16),))


@program
def autocast_of_another_device() -> Program:
    def function(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", torch.float16):
            return layer(x).exp()

    return Program(Function(function, nn.Linear(6, 6)), (torch.randn(4, 6),))


@program
def no_grad() -> Program:
    def function(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = layer(x).sigmoid()
            with torch.enable_grad():
                z = y * 2
        return y + z + x

    return Program(Function(function, nn.Linear(6, 6)), (torch.randn(4, 6),))


# ---- Sizes ---------------------------------------------------------------------------------------------------------------


@program
def derived_sizes() -> Program:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.repeat_interleave(2, 0) + y * x.shape[0]

    b = Dim("b", min=2, max=32)
    others = [(torch.randn(n, 6), torch.randn(2 * n, 6)) for n in (2, 9)]
    return Program(Function(function), (torch.randn(3, 6), torch.randn(6, 6)), dynamic_shapes=(({0: b}, {0: 2 * b}),), others=others)


@program
def divided_sizes() -> Program:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.view(x.shape[0] // 4, 4, 6).mean(1), x[: x.shape[0] // 2].chunk(2)[0]

    return Program(Function(function), (torch.randn(8, 6),), dynamic_shapes=(({0: 4 * Dim("q", min=2, max=16)},),), others=batches(12, 64))


@program
def two_dynamic_sizes() -> Program:
    def function(layer: nn.Module, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        heads = layer(x).view(batch, length, 2, 3).transpose(1, 2)
        return F.scaled_dot_product_attention(heads, heads, heads, mask[:, None, None]).transpose(1, 2).reshape(batch, length, 6)

    def arguments(batch: int, length: int) -> tuple[torch.Tensor, ...]:
        return torch.randn(batch, length, 6), torch.arange(length)[None] < torch.randint(1, length + 1, (batch, 1))

    shapes = {0: Dim("b", min=2, max=64), 1: Dim("t", min=2, max=64)}
    others = [arguments(2, 2), arguments(4, 9)]
    return Program(Function(function, nn.Linear(6, 6)), arguments(3, 5), dynamic_shapes=((shapes, shapes),), others=others)


@program
def sizes_from_zero() -> Program:
    """Neither 0 nor 1 is excluded, and what layers do depends on them."""

    def function(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return F.adaptive_avg_pool1d(layer(x).t().unsqueeze(0), 3).squeeze(0).softmax(-1)

    return Program(Function(function, nn.Linear(6, 6)), (torch.randn(5, 6),), dynamic_shapes=(({0: Dim.AUTO},),), others=batches(4, 8))


@program
def sizes_that_decide() -> Program:
    """A condition on sizes that ATen asks, and the export's ranges leave open."""

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, y.unsqueeze(-1)).squeeze(-1) + F.interpolate(x[:, None], scale_factor=2, mode="nearest")[:, 0, :, 0].sum()

    def arguments(batch: int, rows: int) -> tuple[torch.Tensor, ...]:
        return torch.randn(batch, rows, 6), torch.randn(batch, 6)

    b, r = Dim("b", min=1, max=64), Dim("r", min=1, max=64)
    return Program(
        Function(function), arguments(3, 5), dynamic_shapes=(({0: b, 1: r}, {0: b}),), others=[arguments(2, 1), arguments(1, 4), arguments(7, 7)]
    )


@program
def sizes_that_are_data() -> Program:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[x > 0].exp(), torch.nonzero(x).float().sum(0)

    return Program(Function(function), (torch.randn(3, 6),), others=batches(3, 3))


@program
def integers_from_tensors() -> Program:
    def function(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        k = n.item()
        torch._check(k >= 1)
        torch._check(k <= 5)
        return x.new_full((k, 6), 2.0).sum(0) + x

    return Program(Function(function), (torch.randn(6), torch.tensor(3)), others=[(torch.randn(6), torch.tensor(5))])


@program
def integer_argument() -> Program:
    def function(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * n + x.narrow(0, 0, 1)

    return Program(Function(function), (torch.randn(3, 6), 4), dynamic_shapes=((None, Dim.DYNAMIC),), others=[(torch.randn(3, 6), 7)])


@program
def results_that_are_numbers() -> Program:
    def function(x: torch.Tensor) -> tuple[Any, ...]:
        return x.sum(), x.shape[0], x.shape[0] * 2 + 1, x.shape[0] > 4, 2.5, 3, True

    return Program(Function(function), (torch.randn(3, 6),), dynamic_shapes=(({0: Dim("b", min=2, max=64)},),), others=batches(5))


# ---- State ---------------------------------------------------------------------------------------------------------------


@program
def buffer_updates() -> Program:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
            self.register_buffer("cache", torch.zeros(4, 6))
            self.register_buffer("scratch", torch.zeros(6), persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.steps += 1
            self.cache[1:3].add_(x[:2])
            self.scratch.copy_(x.sum(0))
            return self.cache * self.steps + self.scratch

    return Program(Counter(), (torch.randn(3, 6),), others=batches(3, 3))


@program
def batch_norm_training() -> Program:
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.BatchNorm2d(4, affine=False))
    return Program(layers, (torch.randn(2, 3, 8, 8),), others=[(torch.randn(2, 3, 8, 8),)], train=True)


@program
def argument_updates() -> Program:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y[0].mul_(2)
        x += y.sum(0)
        return x @ y.t()

    return Program(Function(function), (torch.randn(3, 6), torch.randn(4, 6)), others=[(torch.randn(3, 6), torch.randn(4, 6))])


@program
def kv_cache() -> Program:
    class Cache(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("keys", torch.zeros(1, 2, 8, 3))
            self.proj = nn.Linear(6, 6)

        def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
            k = self.proj(x).view(1, 1, 2, 3).transpose(1, 2)
            self.keys.index_copy_(2, position, k)
            mask = torch.arange(8) <= position
            return F.scaled_dot_product_attention(k, self.keys, self.keys, mask[None, None, None])

    others = [(torch.randn(1, 1, 6), torch.tensor([i])) for i in (1, 2)]
    return Program(Cache(), (torch.randn(1, 1, 6), torch.tensor([0])), others=others)


@program
def tied_weights() -> Program:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(11, 6)
            self.head = nn.Linear(6, 11, bias=False)
            self.head.weight = self.embed.weight
            self.register_buffer("row", self.embed.weight.detach()[3])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(x) + self.row)

    return Program(Tied(), (torch.randint(0, 11, (2, 5)),))


@program
def constants() -> Program:
    table = torch.randn(6)

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * table + torch.tensor([1.0, 2, 3, 4, 5, 6]) - torch.tensor(2)

    return Program(Function(function), (torch.randn(3, 6),))


# ---- Arguments -------------------------------------------------------------------------------------------------------------


Pair = namedtuple("Pair", "first second")
_register_namedtuple(Pair, serialized_type_name="exported_programs.Pair")


@program
def nested_arguments() -> Program:
    def function(x: dict[str, Any], pair: Pair, scale: float, flag: bool, mode: str, nothing: None, *, more: Any) -> dict[str, Any]:
        y = x["a"] + x["b"][0] * scale if flag else x["a"]
        return OrderedDict(sum=y + pair.first - pair.second, parts=[y, (more["z"] * 2,)], mode=mode)

    x = [torch.randn(3, 6) for _ in range(5)]
    args = ({"a": x[0], "b": [x[1]]}, Pair(x[2], x[3]), 2.0, True, "up", None)
    return Program(Function(function), args, {"more": {"z": x[4]}})


@program
def dtypes() -> Program:
    def function(x: torch.Tensor, half: torch.Tensor, index: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.to(torch.float64) + half.to(torch.float32)
        return y.to(torch.int32), torch.zeros(3, dtype=torch.uint8) + index.to(torch.uint8), mask.to(torch.bfloat16), (y > 0) & mask

    return Program(Function(function), (torch.randn(3), torch.randn(3).half(), torch.arange(3), torch.tensor([True, False, True])))


@program
def complex_numbers() -> Program:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = torch.complex(x, y) * (1 + 2j)
        return z, z.conj() * z, z.abs().sum(0), torch.fft.ifft(torch.fft.fft(z)).real, torch.view_as_real(z.exp())

    return Program(Function(function), (torch.randn(3, 6), torch.randn(3, 6)))


@program
def rotary_of_complex() -> Program:
    def function(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.float().reshape(2, 4, 3, 2))
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(2).type_as(x)

    return Program(Function(function), (torch.randn(2, 4, 6), torch.randn(4, 3)))


@program
def complex_argument() -> Program:
    return Program(Function(lambda z: (z.conj() @ z.t()).abs() + z.imag.sum()), (torch.randn(3, 6, dtype=torch.complex64),))


# ---- Custom ops ----------------------------------------------------------------------------------------------------------


@torch.library.custom_op("exported_programs::scale", mutates_args=())
def scale(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


@scale.register_fake
def _(x: torch.Tensor, by: float) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("exported_programs::accumulate", mutates_args={"out"})
def accumulate(x: torch.Tensor, out: torch.Tensor) -> None:
    out.add_(x)


@torch.library.custom_op("exported_programs::accumulate_sum", mutates_args={"out"})
def accumulate_sum(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    out.add_(x)
    return x.sum()


@accumulate_sum.register_fake
def _(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return x.new_empty(())


NOTES: list[tuple[int, float]] = []
torch.library.define("exported_programs::note", "(Tensor x, int number) -> ()")
torch.library.impl("exported_programs::note", "cpu", lambda x, number: NOTES.append((number, x.sum().item())))
torch.library.register_fake("exported_programs::note", lambda x, number: None)
torch.library._register_effectful_op("exported_programs::note", EffectType.ORDERED)


@program
def effects() -> Program:
    """Ops that have an order and no results: NOTES tells what they did."""

    def function(x: torch.Tensor) -> torch.Tensor:
        note = torch.ops.exported_programs.note
        note(x, 1)
        y = x.sin()
        note(y, 2)
        note(x, 3)
        return y + 1

    return Program(Function(function), (torch.randn(3, 6),), options={"allow_ops": "exported_programs"})


def custom_in_a_branch(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: scale(x, 2.0) + 1, lambda x: x.sin(), (x,))


@program
def custom_op() -> Program:
    def function(x: torch.Tensor) -> torch.Tensor:
        return scale(x.exp(), 2.0) + 1

    return Program(Function(function), (torch.randn(3, 6),), options={"allow_ops": "exported_programs"})


@program
def custom_op_that_writes() -> Program:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        total = torch.zeros_like(x)
        accumulate(x, total)
        row = total[1]
        accumulate(x[0], row)
        found = accumulate_sum(x[:, :2], total[:, 1:3])
        return total * 2, row + 1, found

    return Program(Function(function), (torch.randn(3, 6),), options={"allow_ops": "exported_programs"})


@program
def custom_op_that_writes_an_argument() -> Program:
    def function(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        accumulate(x, out)
        return out.sin() + x

    args = [(torch.randn(3, 6), torch.randn(3, 6)) for _ in range(2)]
    return Program(Function(function), args[0], others=args[1:], options={"allow_ops": "exported_programs"})
