"""Sweeps over torch's operators: `python -m op_db --operators 'nn.functional.*' --dtypes float32,bfloat16`, from tests/python.

Runs in processes of their own, so that one that dies costs one unit. Prints what fails and is not in expected_failures.py, and entries of
it that fail no more; --table prints which operators run as calls into ATen. OP_DB_SEED=n: other elements.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import functools
import json
import pathlib
import queue
import sys
import threading
import time
from typing import Any, Callable

from . import worker
from .calls import DTYPES, FORMS, dtypes, forms, operators
from .expected_failures import EXPECTED_FAILURES


def main() -> int:
    given = _arguments()
    if given.worker:
        worker.serve(functools.partial(worker.results, device=given.device, samples=given.samples, dynamic=given.dynamic))
        return 0
    if given.table and not given.run:
        return _print_table(_read(given.results))
    found = _sweep(given)
    _print_summary(found, given.device)
    if given.table:
        _print_table(found)
    return any(r["kind"] and not r["expected"] and not r["kind"].startswith("torch") for r in found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", default="*", help="names with wildcards, comma-separated")
    parser.add_argument("--dtypes", default=",".join(str(d).removeprefix("torch.") for d in DTYPES))
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--samples", type=int, default=8, help="of an operator, dtype and form; they are one graph")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dynamic", action="store_true", help="compile with dynamic=True")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time; --results goes on where it stopped")
    parser.add_argument("--shard", default="0/1", help="i/n: every n-th unit, from the i-th on")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", help="a file of JSON lines: units in it are not run again")
    parser.add_argument("--table", action="store_true", help="print operators that run through ATen; with --results and without --run, of that file")
    parser.add_argument("--run", action="store_true", help="run units, also with --table")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.run = given.run or not given.table or not given.results
    return given


def _units(given: argparse.Namespace) -> list[worker.Unit]:
    patterns, wanted, kinds = given.operators.split(","), given.dtypes.split(","), given.forms.split(",")
    found = []
    for name, op in operators().items():
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            continue
        for dtype in dtypes(op, given.device):
            text = str(dtype).removeprefix("torch.")
            found += [(name, text, form) for form in forms(op, dtype, given.device) if text in wanted and form in kinds]
    index, count = map(int, given.shard.split("/"))
    return found[index::count]


def _read(path: str | None) -> list[dict[str, Any]]:
    file = pathlib.Path(path) if path else None
    return [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []


def _sweep(given: argparse.Namespace) -> list[dict[str, Any]]:
    found = _read(given.results)
    done = {tuple(r["done"]) for r in found if "done" in r}
    waiting: queue.SimpleQueue[worker.Unit] = queue.SimpleQueue()
    units = [unit for unit in _units(given) if unit not in done]
    for unit in units:
        waiting.put(unit)
    end = time.monotonic() + given.seconds
    lock = threading.Lock()

    def tell(result: dict[str, Any]) -> None:
        with lock:
            found.append(result)
            if given.results:
                with open(given.results, "a") as file:
                    file.write(json.dumps(result) + "\n")
            if result.get("kind") and not result["expected"] and not result["kind"].startswith("torch"):
                print(_line(result), flush=True)

    command = [sys.executable, "-W", "ignore", "-m", "op_db", "--worker", "--device", given.device, "--samples", str(given.samples)]
    arguments = (command + ["--dynamic"] * given.dynamic, waiting, tell, functools.partial(_died, tell=tell), end)
    threads = [threading.Thread(target=worker.drive, args=arguments) for _ in range(given.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(units) - waiting.qsize()} of {len(units)} units run now, {len(done)} before")
    return [r for r in found if "kind" in r]


def _died(unit: worker.Unit, text: str, tell: Callable[[dict[str, Any]], None]) -> None:
    name, dtype, form = unit
    tell({"operator": name, "dtype": dtype, "form": form, "calls": 1, "samples": [], "kind": "crash", "text": text, "expected": "", "externs": {}, "kernels": 0})
    tell({"done": list(unit), "seconds": 0})


def _line(result: dict[str, Any]) -> str:
    return f"{result['kind']}: {result['operator']} {result['dtype']} {result['form']} {','.join(result['samples'])}: {result['text'][:400]}"


def _print_summary(found: list[dict[str, Any]], device: str) -> None:
    kinds = collections.Counter((r["kind"] or "right") + (", known" if r["expected"] else "") for r in found for _ in range(r["calls"]))
    units = {(r["operator"], r["dtype"]) for r in found}
    print(f"{len({name for name, _ in units})} operators, {len(units)} with dtypes: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
    failed = {(r["operator"], r["expected"]) for r in found if r["expected"]}
    for entry in EXPECTED_FAILURES:
        ran = {r["operator"] for r in found if entry.covers(r["operator"], r["dtype"], r["form"], device)}
        for name in entry.operators:
            if name in ran and (name, entry.reason) not in failed:
                print(f"fails no more: {name} ({entry.kind}: {entry.reason})")


def _print_table(found: list[dict[str, Any]]) -> int:
    """Operators, with the calls into ATen that stand in their graphs; and those that fail whichever backend runs them."""
    calls: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for r in found:
        if "kind" in r:
            calls[r["operator"]].update(r["externs"])
    without = sum(not counts for counts in calls.values())
    print(f"{without} of {len(calls)} operators run without calls into ATen. Of the others:")
    totals = collections.Counter(r["operator"] for r in found if "kind" in r for _ in range(r["calls"]))
    for name, counts in sorted(calls.items()):
        if counts:
            print(f"  {name}, {totals[name]} calls: " + ", ".join(f"{n} x {callee}" for callee, n in sorted(counts.items())))
    traced: dict[str, dict[str, None]] = collections.defaultdict(dict)
    for r in found:
        if r.get("kind", "").startswith("torch"):
            traced[r["operator"]].setdefault(f"{r['kind']}: {r['text'].splitlines()[0][:120]}")
    print(f"{len(traced)} operators fail in calls that fail alike in torch's own tracing, run in eager:")
    for name, texts in sorted(traced.items()):
        print(f"  {name}: " + "; ".join(list(texts)[:2]))
    return 0


sys.exit(main())
