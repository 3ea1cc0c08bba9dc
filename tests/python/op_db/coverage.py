"""docs/coverage.md: what becomes of every operator of torch's op_db. `python -m op_db.coverage --write` (from tests/python) makes it.

Samples of each operator are compiled up to the plan: Dynamo, AOTAutograd, import, fusion and planning, and the text of kernels, which
nothing compiles. The graph then runs in eager mode, so that the backward graph arrives too.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import fnmatch
import functools
import json
import logging
import pathlib
import queue
import re
import sys
import warnings
from typing import Any, Callable, Iterator, Sequence
from unittest import mock

import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.opinfo.core import OpInfo
from tqdm import tqdm

from cxxinductor import InternalError, Unsupported, UserError, _C, backend, config

from . import worker
from .calls import calls, forms, operators
from .program import Program
from .run import one_graph, outcome

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "coverage.md"
SAMPLES = 4
FORMS = {"plain": "forward", "inplace": "in place", "backward": "gradient"}
PREFERRED = (torch.float32, torch.int64, torch.bool, torch.complex64)
CLASSES = {
    "generated": "Every call that reaches the compiler becomes kernels of its own, or a view that needs none.",
    "mixed": "Kernels, and calls of ATen between them. A kernel may be a copy only.",
    "call": "Calls of ATen inside of the compiled graph, and no kernel.",
    "not reached": "The compiler gets no graph of any sample: Dynamo or AOTAutograd stop before, or the graph falls back whole.",
}


@dataclasses.dataclass(frozen=True)
class Row:
    operator: str
    dtype: str
    classes: tuple[str, ...]  # of each of FORMS; "": the operator has no such form
    details: str  # calls with reasons, and why samples are not reached


@dataclasses.dataclass
class Observed:
    """What became of some samples of one form."""

    kernels: int = 0
    reasons: dict[str, set[str]] = dataclasses.field(default_factory=dict)  # of calls of ATen, by callee
    problems: list[str] = dataclasses.field(default_factory=list)  # of samples that are not reached
    reached: int = 0

    @property
    def name(self) -> str:
        if not self.reached:
            return "not reached"
        return "mixed" if self.reasons and self.kernels else "call" if self.reasons else "generated"


# ---- One operator --------------------------------------------------------------------------------------------------------
def row_of(name: str) -> Row:
    op = operators()[name]
    dtype = next((dtype for dtype in PREFERRED if dtype in op.supported_dtypes("cpu")), None)
    if dtype is None:
        others = sorted(str(dtype).removeprefix("torch.") for dtype in op.supported_dtypes("cpu"))
        return Row(name, "", ("not reached", "", ""), f"its samples on the CPU are of {', '.join(others)}" if others else "op_db has no samples on the CPU")
    found = {form: observe(op, dtype, form) for form in FORMS if form in forms(op, dtype, "cpu")}
    classes = tuple(found[form].name if form in found else "" for form in FORMS)
    return Row(name, str(dtype).removeprefix("torch."), classes, _details(found))


def observe(op: OpInfo, dtype: torch.dtype, form: str) -> Observed:
    with mock.patch.object(common_methods_invocations, "wrapper_set_seed", _without_seed):
        chosen = calls(op, dtype, "cpu", form, SAMPLES)
        if not chosen:
            return Observed(problems=["no sample of dense tensors that eager runs on the CPU"])
        found = plan(Program(tuple(chosen)))
        if not found.problems or len(chosen) == 1:
            return found
        together = Observed()
        for call in chosen:
            _add(together, plan(Program((call,))))
        return together


def _without_seed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """op_db sets seeds inside of random operators, where Dynamo would stop."""
    return function(*args, **kwargs)


def plan(program: Program) -> Observed:
    found = Observed()
    torch._dynamo.reset()
    compiler = functools.partial(backend.compile_dynamo_graph, compile_graph=functools.partial(_plan_graph, found=found))
    compiled = torch.compile(program.function(), backend=compiler, fullgraph=True)
    try:
        with one_graph(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome(program, compiled, program.arguments())
    except Exception as error:
        found.problems.append(_problem(error))
    torch._dynamo.reset()
    found.reached = 0 if found.problems else len(program.calls)
    return found


def _plan_graph(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, kind: str, found: Observed) -> Callable[[list[Any]], Any]:
    try:
        subgraph = functools.partial(_plan_graph, kind="subgraph", found=found)
        graph, _ = backend.read_aot_graph(gm, example_inputs, kind, subgraph)
        report = _C.plan(graph.builder, "", 0, 0, config.resolve(None))
        found.kernels += len(report["kernels"])
        for callee, reasons in report["extern_reasons"].items():
            found.reasons.setdefault(callee, set()).update(reasons)
    except (Unsupported, UserError, InternalError) as error:
        found.problems.append(f"the graph falls back: {_first_sentence(str(error))}")
    return backend.boxed(gm)


def _add(all_: Observed, one: Observed) -> None:
    all_.problems += one.problems
    all_.reached += one.reached
    if one.reached:
        all_.kernels += one.kernels
        for callee, reasons in one.reasons.items():
            all_.reasons.setdefault(callee, set()).update(reasons)


def _problem(error: Exception) -> str:
    text = str(error)
    if isinstance(error, torch._dynamo.exc.Unsupported):
        explained = re.search(r"Explanation: (.*)", text)
        return f"Dynamo breaks the graph: {_first_sentence(explained.group(1) if explained else text)}"
    inner = re.search(r"(\w+(?:Error|Exception|NotFound)): (.*)", text)
    name, text = inner.groups() if inner else (type(error).__name__, text)
    return f"torch's tracing fails: {name}: {_first_sentence(text)}"


def _first_sentence(text: str) -> str:
    text = re.sub(r" \([\w/.]+:\d+\)", "", text.strip().splitlines()[0])
    return re.split(r"\. |: \(|, with | \{", text)[0].rstrip(".")[:160].replace("|", "/").replace("`", "'")


def _details(found: dict[str, Observed]) -> str:
    """Calls by form and reason, and what is not reached. What an earlier form states is not repeated."""
    parts: list[str] = []
    named: set[tuple[str, str]] = set()
    problems: set[str] = set()
    for form, observed in found.items():
        by_reason: dict[str, list[str]] = collections.defaultdict(list)
        for callee, reasons in sorted(observed.reasons.items()):
            for reason in sorted(reasons):
                if (callee, reason) not in named:
                    by_reason[reason].append(callee.removeprefix("aten::"))
                    named.add((callee, reason))
        texts = [f"{', '.join(f'`{callee}`' for callee in callees)}: {reason}" for reason, callees in sorted(by_reason.items())]
        counts = collections.Counter(problem for problem in observed.problems if problem not in problems)
        total = observed.reached + len(observed.problems)
        texts += [(f"{count} of {total} samples: " if observed.reached else "") + problem for problem, count in sorted(counts.items())]
        problems.update(counts)
        where = "" if form == "plain" or not texts else f"{FORMS[form]}: "
        parts += [where + "; ".join(texts)] if texts else []
    return ". ".join(parts)


# ---- All of them ---------------------------------------------------------------------------------------------------------
def _results(unit: Any) -> Iterator[dict[str, Any]]:
    yield {"done": unit, "row": dataclasses.asdict(row_of(unit))}


def sweep(names: Sequence[str]) -> list[Row]:
    """Rows by processes of their own, so that an operator that ends its process is one row."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    rows: dict[str, Row] = {}
    with tqdm(total=len(names), unit="operators", disable=None) as progress:

        def keep(row: Row) -> None:
            rows[row.operator] = row
            progress.update()

        def tell(result: dict[str, Any]) -> None:
            found = result["row"]
            keep(Row(**{**found, "classes": tuple(found["classes"])}))

        def died(name: str, text: str) -> None:
            keep(Row(name, "", ("not reached", "", ""), text))

        worker.drive([sys.executable, "-W", "ignore", "-m", "op_db.coverage", "--worker"], waiting, tell, died)
    return [rows[name] for name in names]


# ---- The page ------------------------------------------------------------------------------------------------------------
def render(rows: Sequence[Row]) -> str:
    lines = [
        "# Coverage of torch's operators",
        "Made by `python -m op_db.coverage --write` in `tests/python`, a few minutes on one core; do not edit. A test makes a sample of the",
        "rows again.",
        "",
        f"What becomes of the {len(rows)} operators of `op_db`, torch {torch.__version__.split('+')[0]}'s list of operators with sample inputs,",
        f"on the CPU: up to {SAMPLES} samples of each form, in f32, or in the dtype that is named. CUDA differs in random numbers, which are",
        "generated there, and in products of matrices, some of which are. Edge cases count: an operator is mixed if one sample of it is.",
        "",
        *(f"* **{name}**: {text}" for name, text in CLASSES.items()),
        "",
        f"Of the operators whose forward form is mixed, {sum(map(_is_mixed_for_rank_0, rows))} are so for tensors without dimensions alone.",
        "",
        *_table(["form", *CLASSES, "all"], _counts(rows)),
    ]
    for name in CLASSES:
        chosen = [row for row in rows if row.classes[0] == name]
        lines += ["", f"## Forward {name}: {len(chosen)}", *_table(["operator", "in place", "gradient", "calls and their reasons"], map(_cells, chosen))]
    return "\n".join(lines) + "\n"


def _is_mixed_for_rank_0(row: Row) -> bool:
    return row.classes[0] == "mixed" and re.match(r"[^:;.]*: its tensor has no dimensions($|\. )", row.details) is not None


def _counts(rows: Sequence[Row]) -> Iterator[list[str]]:
    for i, form in enumerate(FORMS.values()):
        counts = collections.Counter(row.classes[i] for row in rows if row.classes[i])
        yield [form, *(str(counts[name]) for name in CLASSES), str(counts.total())]


def _cells(row: Row) -> list[str]:
    dtype = "" if row.dtype == "float32" else f" ({row.dtype or 'none'})"
    return [f"`{row.operator}`{dtype}", *row.classes[1:], row.details]


def _table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in [heads, ["---"] * len(heads), *rows]]


def parse(page: str) -> list[Row]:
    """The rows of a page."""
    found, name = [], ""
    for line in page.splitlines():
        if heading := re.fullmatch(r"## Forward (.*): \d+", line):
            name = heading.group(1)
        elif cells := re.fullmatch(r"\| `(.*?)`(?: \((\w+)\))? \| (.*?) \| (.*?) \| (.*) \|", line):
            operator, dtype, inplace, gradient, details = cells.groups()
            dtype = "" if dtype == "none" else dtype or "float32"
            found.append(Row(operator, dtype, (name, inplace, gradient), details))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/coverage.md; otherwise print what would be different in it")
    parser.add_argument("--operators", default="*", help="names with wildcards, comma-separated; other rows stay as they are in the page")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker.serve(_results)
        return 0
    chosen = [name for name in operators() if any(fnmatch.fnmatchcase(name, pattern) for pattern in given.operators.split(","))]
    rows = {row.operator: row for row in [*(parse(PAGE.read_text()) if PAGE.exists() else []), *sweep(chosen)]}
    page = render([rows[name] for name in operators() if name in rows])
    if given.write:
        PAGE.write_text(page)
        return 0
    old = set(PAGE.read_text().splitlines())
    different = [line for line in page.splitlines() if line not in old]
    print("\n".join(different) or "nothing is different")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
