"""Processes of a sweep. Each reads units from its input, and writes what became of them, a line of JSON each. One that dies costs one unit."""

from __future__ import annotations

import json
import logging
import math
import queue
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Iterator

import torch

from .calls import calls, operators
from .expected_failures import expected_failure
from .program import programs
from .sweep import sweep

Unit = tuple[str, str, str]  # operator, dtype, form
SECONDS_A_UNIT = 180
UNITS_A_PROCESS = 150


def results(unit: Unit, device: str, samples: int, dynamic: bool) -> Iterator[dict[str, Any]]:
    name, dtype, form = unit
    start = time.monotonic()
    chosen = calls(operators()[name], getattr(torch, dtype), device, form, samples)
    for program in programs(chosen, samples):
        for result in sweep(program, dynamic):
            entry = expected_failure(result.calls[0], result.finding)
            yield {
                "operator": name,
                "dtype": dtype,
                "form": form,
                "calls": len(result.calls),
                "samples": [call.sample for call in result.calls],
                "kind": result.finding.kind,
                "text": result.finding.text,
                "expected": entry.reason if entry else "",
                "externs": dict(result.finding.externs),
                "kernels": result.finding.kernels,
            }
    yield {"done": list(unit), "seconds": round(time.monotonic() - start, 2)}


def serve(results: Callable[[Any], Iterator[dict[str, Any]]]) -> None:
    """What such a process does. The last line that a unit gives has a key "done"."""
    logging.disable(logging.ERROR)
    # What a library prints must not come between our lines.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        for found in results(json.loads(line)):
            print(json.dumps(found), file=out, flush=True)


def drive(
    command: list[str],
    waiting: "queue.SimpleQueue[Any]",
    tell: Callable[[dict[str, Any]], None],
    died: Callable[[Any, str], None],
    end: float = math.inf,
) -> None:
    """Feeds one process after the other with units, one at a time, until none waits or the clock passes `end`."""
    process: subprocess.Popen[str] | None = None
    count = 0
    while time.monotonic() < end:
        try:
            unit = waiting.get_nowait()
        except queue.Empty:
            break
        if process is None:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        alive = _run_unit(process, unit, tell, died)
        if not alive or (count := count + 1) % UNITS_A_PROCESS == 0:
            process.kill()
            process.wait()
            process = None
    if process is not None:
        process.kill()
        process.wait()


def _run_unit(
    process: "subprocess.Popen[str]", unit: Any, tell: Callable[[dict[str, Any]], None], died: Callable[[Any, str], None]
) -> bool:
    """False where the process died or was ended."""
    timer = threading.Timer(SECONDS_A_UNIT, process.kill)
    timer.start()
    try:
        process.stdin.write(json.dumps(unit) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            result = json.loads(line)
            tell(result)
            if "done" in result:
                return True
    except BrokenPipeError:
        pass
    finally:
        ended = timer.is_alive()
        timer.cancel()
    died(unit, f"the process died with {process.wait()}" if ended else f"took more than {SECONDS_A_UNIT} s")
    return False
