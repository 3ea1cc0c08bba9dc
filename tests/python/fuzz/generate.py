"""Grows a random program: each step runs as soon as it is chosen, for every assignment of sizes, and stays if what it gives is tame."""

from __future__ import annotations

import dataclasses
import random
import re
from typing import Any, Iterable

import torch

from . import steps
from .program import Input, Program, Step

MOST_ELEMENTS, MOST_RANK, LARGEST = 6000, 5, 500.0

# What of the tables each kind of program draws, by weight; and which of its inputs ask for gradients.
COMMON = {"pointwise": 5, "joined": 4, "rows": 3, "reductions": 2, "views": 4, "parts": 2, "splits": 1, "indexing": 2, "products": 2, "integers": 1}
KINDS: dict[str, dict[str, Any]] = {
    "inference": {},
    "layouts": {"layouts": 0.8, "weights": {"views": 5}},
    "mutation": {"layouts": 0.4, "aliases": 0.25, "weights": {"writes": 12, "views": 6}},
    "dynamic": {"variants": 3, "layouts": 0.2},
    "dynamic_mutation": {"variants": 3, "weights": {"writes": 8}},
    "backward": {"leaves": 0.7, "layouts": 0.2},
    "backward_dynamic": {"leaves": 0.7, "variants": 3},
    "backward_mutation": {"leaves": 0.7, "layouts": 0.2, "weights": {"writes": 8}},
    "autocast": {"leaves": 0.7, "autocast": True, "weights": {"products": 8}},
    "data": {"weights": {"data": 6}, "layouts": 0.2},
    "data_backward": {"leaves": 0.7, "weights": {"data": 6}},
    "random": {"leaves": 0.4, "weights": {"random": 6}},
}
TABLES = {
    "pointwise": steps.POINTWISE,
    "joined": steps.JOINED,
    "rows": steps.ROWS,
    "reductions": steps.REDUCTIONS,
    "views": steps.VIEWS,
    "parts": steps.PARTS,
    "splits": steps.SPLITS,
    "indexing": steps.INDEXING,
    "products": steps.PRODUCTS,
    "integers": steps.INTEGERS,
    "writes": steps.WRITES,
    "data": steps.DATA,
    "random": steps.RANDOM,
}

# How an input of these sizes may lie in memory; {shape} is a tuple.
ANY_RANK = ["F.pad(numbers(*{shape}).flatten(), (1, 0), value=9.0)[1:].view({shape})"]  # misaligned
RANK_1 = [
    "F.pad(numbers(*{shape}), (1, 2), value=9.0)[..., 1:-2]",
    "numbers(*{shape}).repeat_interleave(2, -1)[..., ::2]",
    "numbers(*{shape}).repeat_interleave(2, 0)[1::2]",
    "numbers(*{shape})[:1].expand({shape})",
    "numbers(*{shape})[..., :1].expand({shape})",
]
RANK_2 = [
    "numbers(*{shape}).transpose(-1, -2).contiguous().transpose(-1, -2)",
    "numbers(*{shape}).movedim(0, -1).contiguous().movedim(-1, 0)",
    "F.pad(numbers(*{shape}).transpose(0, -1), (0, 3), value=9.0)[..., :-3].transpose(0, -1)",
]
WINDOWS = "numbers({shape}[0] + {shape}[1] - 1).unfold(0, {shape}[1], 1)"
CHANNELS_LAST = "numbers(*{shape}).contiguous(memory_format=torch.channels_last)"
ALIASES = ["{0}", "{0}[1:]", "{0}[:-1]", "{0}.transpose(0, -1)", "{0}[..., ::2]", "{0}[None]"]


class _Unfit(Exception):
    """Nothing there that a template asks for."""


def generate(seed: int, kind: str) -> Program:
    """The program of that seed: valid in eager, where its results are finite."""
    from .run import is_telling  # which needs programs, not generators

    rng = random.Random(f"{kind} {seed}")
    while True:
        program = _Growth(rng, seed, kind).grow()
        program = _without_bad_writes(program)
        if program is not None and is_telling(program):
            return program


def _without_bad_writes(program: Program) -> Program | None:
    """Less the writes that autograd refuses: they change what a backward needs."""
    from .run import runs_in_eager
    from .shrink import without_step

    for position in reversed(range(len(program.steps))):
        if runs_in_eager(program):
            return program
        if not program.steps[position].results:
            program = without_step(program, position) or program
    return program if runs_in_eager(program) else None


class _Growth:
    def __init__(self, rng: random.Random, seed: int, kind: str):
        self.rng, self.kind, self.traits = rng, kind, KINDS[kind]
        self.variants = self.traits.get("variants", 1)
        autocast = torch.bfloat16 if self.traits.get("autocast") else None
        dtypes = [torch.float32] if autocast else [torch.float32, torch.float32, torch.float32, torch.float64, torch.bfloat16]
        self.program = Program((), (), (), seed, rng.choice(dtypes), self.variants, kind, autocast)
        self.scopes: list[dict[str, Any]] = []
        self.types: dict[str, tuple[Any, torch.dtype]] = {}
        self.dims = [self.sizes(position) for position in range(4)]
        self.pending: list[Input] = []

    def sizes(self, position: int) -> tuple[int, ...]:
        if self.variants == 1:
            return (self.rng.choice([1, 2, 3, 4, 5, 8, 16, 17, 31, 33, 64, 70] if position else [2, 3, 4, 5, 8, 16]),)
        # The first assignment has no two equal sizes: Dynamo would take them for one.
        first = [6, 5, 16, 9][position]
        others = [self.rng.choice([[2, 4, 10, 30, 8], [2, 3, 7, 12, 33], [4, 8, 10, 64, 22], [3, 8, 11, 17, 20]][position]) for _ in range(self.variants - 1)]
        return (first, *others)

    # ---- Growing ----
    def grow(self) -> Program:
        rank = self.rng.choice([1, 2, 2, 2, 3, 3, 4])
        for _ in range(self.rng.randint(1, 3)):
            self.add_main_input(rank)
        names = list({**COMMON, **self.traits.get("weights", {})}.items())
        wanted = self.rng.randint(3, 12)
        for _ in range(wanted * 8):
            if len(self.program.steps) >= wanted:
                break
            table = self.rng.choices([n for n, _ in names], [w for _, w in names])[0]
            self.try_step(table, self.rng.choice(TABLES[table]))
        return self.with_outputs()

    def replace(self, **changes: Any) -> None:
        self.program = dataclasses.replace(self.program, **changes)

    def add_main_input(self, rank: int) -> None:
        dims = [self.rng.choice(self.dims) for _ in range(rank)]
        if rank == 4 or self.variants > 1:
            dims = self.rng.sample(self.dims, rank)
        tensors = [n for n, (_, dtype) in self.types.items() if dtype.is_floating_point]
        if tensors and self.rng.random() < 0.6:
            shapes = self.types[self.rng.choice(tensors)][0]
        else:
            shapes = tuple(zip(*dims))
        if tensors and self.rng.random() < self.traits.get("aliases", 0):
            first = self.rng.choice(tensors)
            return self.add_input(self.rng.choice(ALIASES).format(first), shapes)
        self.add_input(self.layout(shapes), shapes)
        if rank >= 1 and self.rng.random() < 0.2:
            self.add_input("integers(20, *{shape})", shapes)
        self.accept_inputs()

    def layout(self, shapes: Any) -> str:
        rank = len(shapes[0])
        if self.rng.random() >= self.traits.get("layouts", 0):
            return "numbers(*{shape})"
        choices = ANY_RANK + (RANK_1 if rank >= 1 else []) + (RANK_2 if rank >= 2 else [])
        if rank == 2:
            choices = [*choices, WINDOWS]
        return self.rng.choice([*choices, CHANNELS_LAST, CHANNELS_LAST] if rank == 4 else choices)

    def add_input(self, text: str, shapes: Any) -> str:
        """Its name; it stays if the step that asked for it does."""
        name = f"x{len(self.program.inputs) + len(self.pending)}"
        leaf = "integers" not in text and "numbers" in text and self.rng.random() < self.traits.get("leaves", 0)
        self.pending.append(Input(name, text, tuple(tuple(s) for s in shapes), leaf))
        dtype = torch.int64 if "integers" in text else self.program.dtype
        self.types[name] = (self.pending[-1].shapes, dtype)
        return name

    def accept_inputs(self) -> bool:
        """Takes over what add_input() said, and makes all values anew."""
        program = self.program
        self.replace(inputs=(*program.inputs, *self.pending))
        try:
            self.scopes = self.run_all()
            self.pending = []
            self.types = self.read_types()
            return True
        except Exception:  # a window that does not fit, an alias of a scalar
            self.program, self.pending = program, []
            self.types = self.read_types() if self.scopes else {}
            return False

    def run_all(self) -> list[dict[str, Any]]:
        scopes = []
        for variant in range(self.variants):
            scope = self.program.names(wide=False)
            scope.update(zip((x.name for x in self.program.inputs), self.program.arguments(variant)))
            with torch.autocast("cpu", torch.bfloat16, enabled=self.program.autocast is not None):
                for step in self.program.steps:
                    exec(step.line(), scope)
            scopes.append(scope)
        return scopes

    def read_types(self) -> dict[str, tuple[Any, torch.dtype]]:
        return {
            name: (tuple(tuple(scope[name].shape) for scope in self.scopes), value.dtype)
            for name, value in self.scopes[0].items()
            if isinstance(value, torch.Tensor)
        }

    def try_step(self, table: str, template: str) -> None:
        types = dict(self.types)
        try:
            text, operands = self.fill(template)
        except _Unfit:
            self.types, self.pending = types, []
            return
        count = 0 if table == "writes" else 2 if table == "splits" else 1
        first = len(self.types)
        results = tuple(f"v{first + i}" for i in range(count))
        before = self.program, self.scopes
        step = Step(text, tuple(operands), results)
        self.replace(inputs=(*self.program.inputs, *self.pending), steps=(*self.program.steps, step))
        self.pending = []
        try:
            self.scopes = self.run_all()
            self.types = self.read_types()
            fits = all(self.is_tame(name) for name in (results or operands))
        except Exception:
            fits = False
        if not fits:
            self.program, self.scopes = before
            self.types = self.read_types()

    def is_tame(self, name: str) -> bool:
        for scope in self.scopes:
            x = scope[name]
            if not isinstance(x, torch.Tensor) or x.numel() > MOST_ELEMENTS or x.dim() > MOST_RANK:
                return False
            if x.is_floating_point() and not (x.abs() < LARGEST).all():
                return False
        return True

    def with_outputs(self) -> Program:
        """The last value, and others: some read further, some inputs or views of them."""
        read = {name for step in self.program.steps for name in step.operands}
        results = [name for step in self.program.steps for name in step.results]
        inputs = [x.name for x in self.program.inputs]
        chosen = [name for name in results if name not in read or self.rng.random() < 0.15]
        chosen += [name for name in inputs if self.rng.random() < 0.05 and not any(x.leaf for x in self.program.inputs if x.name == name)]
        if not chosen:
            chosen = inputs[:1]
        used = read | set(chosen)
        self.replace(outputs=tuple(chosen), inputs=tuple(x for x in self.program.inputs if x.name in used or _is_base(x.name, self.program.inputs)))
        return self.program

    # ---- Filling templates ----
    def fill(self, template: str) -> tuple[str, list[str]]:
        operands: list[str] = []
        found: dict[str, str] = {}

        def field(match: re.Match[str]) -> str:
            key = match.group(1)
            if key not in found:
                found[key] = self.find(key, operands, found)
            return found[key]

        # The main operand first: the others depend on it.
        main = re.search(r"\{([ret]\d?|i)\}", template)
        if main is not None:
            field(main)
        return re.sub(r"\{(\w+)\}", field, template), operands

    def find(self, key: str, operands: list[str], found: dict[str, str]) -> str:
        def use(name: str) -> str:
            operands.append(name)
            return name

        if match := re.fullmatch(r"([ret])(\d?)", key):
            least = int(match.group(2) or 0)
            return use(self.pick(n for n, rank in self.floats() if (rank == least if match.group(1) == "e" else rank >= least)))
        if key == "i":
            return use(self.integer())
        main = operands[0]
        shapes, rank = self.types[main][0], len(self.types[main][0][0])
        if key in ("wide", "twide"):
            return use(self.pick(n for n, _ in self.floats() if self.broadcasts(n, shapes)))
        if key in ("same", "tsame"):
            return use(self.pick(n for n, _ in self.floats() if self.types[n] == self.types[main]))
        if key in ("dim", "tdim"):
            if rank == 0:
                raise _Unfit
            return str(self.rng.randrange(-rank, rank))
        if key in ("mask", "tmask"):
            masks = [n for n, (s, dtype) in self.types.items() if dtype == torch.bool and self.broadcasts(n, shapes)]
            if masks and self.rng.random() < 0.7:
                return use(self.rng.choice(masks))
            return f"({use(self.whole_numbers(shapes))} % {self.rng.choice([2, 3, 5])} == 1)"
        if key in ("places", "tplaces"):
            return f"({use(self.whole_numbers(shapes))} % {main}.shape[{self.dim_of(found, operands)}])"
        if match := re.fullmatch(r"t?index(\d?)", key):
            dim = match.group(1) or self.dim_of(found, operands)
            count = self.rng.choice([1, 3, 4, 9])
            return f"({use(self.vector(count))} % {main}.shape[{dim}])"
        if key == "classes":
            return f"({use(self.whole_numbers(tuple((s[0],) for s in shapes)))} % {main}.shape[1])"
        if key == "bias" and "weight" not in found:
            found["weight"] = self.find("weight", operands, found)
        return use(self.parameter(key, shapes, found))

    def dim_of(self, found: dict[str, str], operands: list[str]) -> str:
        """The dimension that the template names, now if it comes later in it."""
        key = "tdim" if "t" in found or any(k.startswith("t") for k in found) else "dim"
        if key not in found:
            found[key] = self.find(key, operands, found)
        return found[key]

    def parameter(self, key: str, shapes: Any, found: dict[str, str]) -> str:
        """A value of the sizes that a layer's parameters have, new where there is none."""
        width = self.rng.choice([2, 5, 8, 16])
        wanted = {
            "row": lambda: tuple(s[-1:] for s in shapes),
            "weight": lambda: tuple((s[-1], width) for s in shapes),
            "bias": lambda: tuple(s[-1:] for s in self.types[found["weight"]][0]),
            "filters1": lambda: tuple((4, s[1], 3) for s in shapes),
            "filters2": lambda: tuple((4, s[1], 3, 3) for s in shapes),
            "bias4": lambda: tuple((4,) for _ in shapes),
        }[key]()
        if not wanted[0]:
            raise _Unfit
        there = [n for n, _ in self.floats() if self.types[n] == (wanted, self.program.dtype)]
        if there and self.rng.random() < 0.6:
            return self.rng.choice(there)
        return self.add_input("numbers(*{shape}) * 0.3", wanted)

    def floats(self) -> Iterable[tuple[str, int]]:
        return [(n, len(shapes[0])) for n, (shapes, dtype) in self.types.items() if dtype.is_floating_point]

    def pick(self, names: Iterable[str]) -> str:
        """Late ones more often: long chains."""
        found = list(names)
        if not found:
            raise _Unfit
        return found[max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))]

    def broadcasts(self, name: str, shapes: Any) -> bool:
        mine = self.types[name][0]
        fits = lambda a, b: len(a) <= len(b) and all(x in (1, y) for x, y in zip(a[::-1], b[::-1]))  # noqa: E731
        static = lambda d: all((s[::-1] + (1,) * 9)[d] == 1 for s in mine) or all(s[::-1][d] == t[::-1][d] for s, t in zip(mine, shapes))  # noqa: E731
        return all(fits(a, b) for a, b in zip(mine, shapes)) and all(static(d) for d in range(len(mine[0])))

    def integer(self) -> str:
        there = [n for n, (_, dtype) in self.types.items() if dtype == torch.int64]
        return self.pick(there) if there and self.rng.random() < 0.8 else self.whole_numbers(self.types[self.pick(n for n, r in self.floats() if r)][0])

    def whole_numbers(self, shapes: Any) -> str:
        there = [n for n, t in self.types.items() if t == (tuple(shapes), torch.int64)]
        return self.rng.choice(there) if there and self.rng.random() < 0.8 else self.add_input("integers(20, *{shape})", shapes)

    def vector(self, count: int) -> str:
        there = [n for n, (s, dtype) in self.types.items() if dtype == torch.int64 and len(s[0]) == 1]
        return self.rng.choice(there) if there and self.rng.random() < 0.6 else self.add_input("integers(20, *{shape})", ((count,),) * self.variants)


def _is_base(name: str, inputs: tuple[Input, ...]) -> bool:
    return any(re.search(rf"\b{name}\b", x.text) for x in inputs)
