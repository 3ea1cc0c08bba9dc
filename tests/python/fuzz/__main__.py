"""Runs random programs: `python -m fuzz --kind all --programs 1000 --seed 7 --device cpu`, from tests/python. Failures are printed, reduced."""

import argparse
import sys
import time

from .generate import KINDS, generate
from .report import failure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="all", choices=["all", *KINDS])
    parser.add_argument("--programs", type=int, default=1000, help="how many, over all kinds")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--shrink", type=float, default=60, help="seconds to make a failing program smaller")
    parser.add_argument("--show", action="store_true", help="print every program before it runs")
    given = parser.parse_args()
    kinds = list(KINDS) if given.kind == "all" else [given.kind]
    failed, done, start = 0, 0, time.monotonic()
    for number in range(given.programs):
        if time.monotonic() - start > given.seconds:
            break
        kind, seed = kinds[number % len(kinds)], given.seed + number // len(kinds)
        print(f"{kind} {seed}", end="\n", flush=True)
        program = generate(seed, kind)
        if given.show:
            print(program.source(), flush=True)
        if report := failure(program, given.device, given.shrink):
            failed += 1
            print(report, flush=True)
        done += 1
    print(f"{done} programs, {failed} failures, {time.monotonic() - start:.0f} s")
    return failed > 0


sys.exit(main())
