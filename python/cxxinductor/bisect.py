"""Finds what makes a graph wrong, slow or impossible to compile: ``python -m cxxinductor.bisect FOLDER``.

FOLDER is what cxxinductor wrote for a graph: after an error of its own, or with option dump=all. The guilty stage of the compiler is found
first, then the application of a pass or the fusion, by halving the options pass_limit and fusion_limit; where all stages agree, the kernel.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import torch

from . import _C, config
from .errors import UserError
from .time_kernel import seconds_of

_OPTIONS_LINE = re.compile(r"^options: (.*)$", re.MULTILINE)
_PASS_LINE = re.compile(r"^registered pass: (.*) \(after \S+\)$", re.MULTILINE)
_TARGET_LINE = re.compile(r"^target: (\S+) (\S+)$", re.MULTILINE)
_GPU = re.compile(r"\bcuda:\d+\b")
_UNKNOWN_OP = "no schema of that name is registered"  # says the stage import
_CONTENTS = ("calls.txt", "01-import.txt")


@dataclass(frozen=True)
class Culprit:
    """An application of a pass, a fusion, or a pass that was registered.

    Attributes:
        kind: "pass", "fusion" or "registered pass".
        name: of the pass, or the regions that are fused; "" where it fails before it says.
        number: of the application among all of the compile: what pass_limit or fusion_limit has to allow for the graph to be bad; 0: of a registered pass.
        stage: the first one whose form it changes.
        before, after: that form without it and with it; "" where the stage fails.
        avoided_by: the option, as name=value, with which all is well.
    """

    kind: str
    name: str
    number: int
    stage: str
    before: str
    after: str
    avoided_by: str


@dataclass(frozen=True)
class Report:
    """What was found. ``print(report)`` says it for people.

    Attributes:
        symptom: "none", "differs" (the form after ``stage`` means something else), "fails" (``stage`` does), "kernel differs" (``detail``
            names it) or "judged" (slow, or what a command says).
        culprit: None where no single pass or fusion is guilty.
        notes: what was not looked at, and why.
    """

    symptom: str
    stage: str
    detail: str
    culprit: Culprit | None
    notes: list[str]
    text: str

    def __str__(self) -> str:
        return self.text


Judge = Callable[[dict[str, Any]], str]


def bisect(
    folder: str | Path,
    *,
    against: str = "interp",
    options: dict[str, Any] | None = None,
    device: str | None = None,
    sizes: dict[str, int] | None = None,
    seed: int = 0,
    run_kernels: bool = True,
    judge: Judge | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Bisects the graph of ``folder``.

    Args:
        against: the reference: "interp", what the first form means, or "eager", what ATen makes of the calls on the same inputs.
        options: as of ``torch.compile(options=...)``, over those that the folder states.
        device: "cpu" moves a graph of a GPU to the CPU.
        sizes: values of symbols; the others get small ones. Inputs are random but for those that ``inputs.pt`` in the folder holds, a list
            that ``torch.save`` wrote.
        run_kernels: False: look at the compiler's forms alone. So it is, too, where the graph is for a GPU that is not there.
        judge: takes the place of the comparisons: is given options, says what is bad about the graph with them ("": nothing).
        progress: is given a line before each step.

    Raises:
        UserError: the folder holds no graph, or an option, a device or a size is wrong.
    """
    if against not in ("interp", "eager"):
        raise UserError(f"against: expected interp or eager, found {against!r}")
    reproducer = _Reproducer(Path(folder), device, options or {})
    judged = None
    if judge is not None:

        def judged(pass_limit: int, fusion_limit: int, skip_passes: str) -> str:
            return judge({**reproducer.options, "pass_limit": pass_limit, "fusion_limit": fusion_limit, "skip_passes": skip_passes})

    row = _C.bisect(
        reproducer.text, config.resolve(reproducer.options), reproducer.inputs(sizes or {}, seed), against == "eager",
        run_kernels and not reproducer.targets, reproducer.targets, judged, progress,
    )  # fmt: skip
    culprit = row.pop("culprit")
    return Report(culprit=Culprit(**culprit) if culprit else None, **row)


def slower_than(folder: str | Path, ratio: float, baseline: dict[str, Any], **reproducer: Any) -> Judge:
    """A judge for :func:`bisect`: the graph is bad if a call takes more than ``ratio`` times as long as with the options ``baseline``.

    Takes ``device``, ``options``, ``sizes`` and ``seed`` as :func:`bisect` does.
    """
    sizes, seed = reproducer.pop("sizes", None) or {}, reproducer.pop("seed", 0)
    graph = _Reproducer(Path(folder), reproducer.pop("device", None), reproducer.pop("options", None) or {})
    if graph.targets:
        raise UserError("times need the device of the graph: run where it is, or move the graph with device cpu")
    inputs = graph.inputs(sizes, seed)

    def seconds(options: dict[str, Any]) -> float:
        run = _C.compile_reproducer(graph.text, config.resolve(options))
        on_gpu = any(isinstance(x, torch.Tensor) and x.is_cuda for x in inputs)
        return seconds_of(lambda: run(list(inputs)), on_gpu, repeat=20)

    wanted = seconds({**graph.options, **baseline})

    def judge(options: dict[str, Any]) -> str:
        found = seconds(options)
        return f"a call takes {found * 1e6:.1f} us; with the baseline {wanted * 1e6:.1f} us" if found > ratio * wanted else ""

    return judge


def fails_command(command: str) -> Judge:
    """A judge for :func:`bisect`: the graph is bad if the shell command, run with options as environment variables, does not end with 0."""

    def judge(options: dict[str, Any]) -> str:
        limits = {name: str(options[name]) for name in ("pass_limit", "fusion_limit", "skip_passes") if options[name] not in (-1, "")}
        environment = {**os.environ, **{f"CXXINDUCTOR_{name.upper()}": value for name, value in limits.items()}}
        status = subprocess.run(command, shell=True, env=environment, check=False, stdout=subprocess.DEVNULL).returncode
        return f"the command ends with status {status}" if status else ""

    return judge


class _Reproducer:
    """What a folder holds: the text of the graph, the options that it was compiled with, the devices that it was for."""

    def __init__(self, folder: Path, device: str | None, options: dict[str, Any]) -> None:
        self.folder = folder
        found = [folder / name for name in _CONTENTS if (folder / name).exists()]
        if not found:
            raise UserError(f"{folder} has neither {' nor '.join(_CONTENTS)}: expected a folder that cxxinductor wrote, as with option dump=all")
        self.text = found[0].read_text(errors="replace")  # the parser says where it is wrong
        settings = (folder / "settings.txt").read_text(errors="replace") if (folder / "settings.txt").exists() else ""
        self.options = {"dump": "", **_options_of(settings), **options}
        missing = [name for name in _PASS_LINE.findall(settings) if name not in _C.text_passes()]
        if missing:
            raise UserError(f"the graph was compiled with the pass {missing[0]}, which is not registered: name the module that registers it, --import "
                            f"MODULE; to look without it, delete its line from {folder / 'settings.txt'}")  # fmt: skip
        if device not in (None, "cpu"):
            raise UserError(f"device: expected cpu, found {device!r}")
        if device == "cpu":
            self.text = _GPU.sub("cpu", self.text)
        self.targets: list[tuple[str, str]] = []
        if _GPU.search(self.text) and not torch.cuda.is_available():
            self.targets = [(row[1], row[2]) for row in _TARGET_LINE.finditer(settings)]
            if not self.targets:
                raise UserError(f"the graph is for a GPU, which is not there, and {folder} does not say which: move the graph with device cpu")

    def inputs(self, sizes: dict[str, int], seed: int) -> list[Any]:
        saved = self.folder / "inputs.pt"
        if saved.exists():
            try:
                inputs = torch.load(saved, weights_only=True)
            except Exception as error:  # torch's reader raises whatever it meets
                raise UserError(f"{saved} is nothing that torch.save wrote: {error}") from error
            if not isinstance(inputs, (list, tuple)) or not all(isinstance(value, (torch.Tensor, int)) for value in inputs):
                raise UserError(f"{saved}: expected a list of tensors and integers")
            return list(inputs)
        # Of a GPU that is not there, tensors of the same sizes on the CPU do for the interpreter.
        text = self.text if not self.targets else _GPU.sub("cpu", self.text)
        return _C.reproducer_inputs(text, sizes, seed)


def _options_of(settings: str) -> dict[str, str]:
    """Those that are not the defaults and that decide what is compiled."""
    line = _OPTIONS_LINE.search(settings)
    if line is None:
        return {}
    rows = {row["name"]: row for row in _C.option_table()}
    pairs = re.split(rf", (?=(?:{'|'.join(rows)})=)", line[1])
    given = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    decisive = {name: row["default"] for name, row in rows.items() if row["decides_what_is_compiled"] and name != "dump"}
    return {name: value for name, value in given.items() if name in decisive and value != decisive[name]}


def _pairs(items: list[str], what: str) -> dict[str, str]:
    for item in items:
        if "=" not in item:
            raise UserError(f"{what}: expected name=value, found {item!r}")
    return dict(item.split("=", 1) for item in items)


def _natural(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**63:
        raise ValueError(f"expected a number from 0 to 2^63 - 1, found {text}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cxxinductor.bisect", description=__doc__.splitlines()[0],
        epilog="Exit status: 0 what is wrong was found, 1 nothing is wrong, 2 it could not be looked for, or --slow or --command finds the graph bad "
        "without any pass and fusion, too.",
    )  # fmt: skip
    parser.add_argument("folder", type=Path, help="what cxxinductor wrote after an error, or CXXINDUCTOR_DUMP=all for a graph")
    parser.add_argument("--import", action="append", default=[], dest="modules", metavar="MODULE",
                        help="import this first: what registers the graph's custom operators, or its extensions; may be repeated")  # fmt: skip
    parser.add_argument("--against", choices=["interp", "eager"], default="interp", help="the reference for results (default: interp)")
    parser.add_argument("--device", choices=["cpu"], help="move a graph of a GPU to the CPU")
    parser.add_argument("--forms", action="store_true", help="compile and run no kernels: look at the compiler's forms alone")
    parser.add_argument("--size", action="append", default=[], metavar="s0=128", help="value of a symbol; may be repeated")
    parser.add_argument("--seed", type=_natural, default=0, help="of the random inputs (default: 0)")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the compile; may be repeated")
    slow = parser.add_mutually_exclusive_group()
    slow.add_argument("--slow", type=float, metavar="RATIO", help="find what makes a call take more than RATIO times as long as with --than")
    slow.add_argument("--command", help="find what makes this shell command fail; it gets the options as environment variables")
    parser.add_argument("--than", action="append", default=[], metavar="NAME=VALUE", help="the options that --slow compares with (default: fusion=false)")
    return parser


def _judge(parsed: argparse.Namespace, given: dict[str, Any]) -> Judge | None:
    if parsed.slow is not None:
        return slower_than(parsed.folder, parsed.slow, _pairs(parsed.than, "--than") or {"fusion": "false"}, **given)
    return fails_command(parsed.command) if parsed.command else None


def _show(line: str) -> None:
    print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    in_terminal = sys.stderr.isatty()
    try:
        for module in parsed.modules:
            importlib.import_module(module)
        sizes = {name: _natural(value) for name, value in _pairs(parsed.size, "--size").items()}
        given = {"device": parsed.device, "options": _pairs(parsed.option, "--option"), "sizes": sizes, "seed": parsed.seed}
        judge = _judge(parsed, given)
        report = bisect(
            parsed.folder, against=parsed.against, run_kernels=not parsed.forms, judge=judge, progress=_show if in_terminal else None, **given
        )
    except (RuntimeError, ValueError, OSError, ImportError) as error:
        print(f"bisect: {error}", file=sys.stderr)
        return 2
    finally:
        if in_terminal:
            _show("")
    print(report, end="")
    if report.symptom == "fails" and _UNKNOWN_OP in report.detail:
        print("bisect: name the module that registers the op: --import MODULE", file=sys.stderr)
        return 2
    if report.symptom == "judged" and report.culprit is None:
        return 2
    return 1 if report.symptom == "none" else 0


if __name__ == "__main__":
    sys.exit(main())
