"""One process of a sweep: reads units (operator, dtype, form) from its input, writes what became of them, a line of JSON each."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, Iterator

import torch

from .calls import calls, operators
from .expected_failures import expected_failure
from .program import programs
from .sweep import sweep

Unit = tuple[str, str, str]


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


def main(device: str, samples: int, dynamic: bool) -> None:
    logging.disable(logging.ERROR)
    # What a library prints must not come between our lines.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        for found in results(tuple(json.loads(line)), device, samples, dynamic):
            print(json.dumps(found), file=out, flush=True)
