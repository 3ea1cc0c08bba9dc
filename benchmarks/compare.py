"""What a change costs: cxxinductor's figures of two trees, as ratios. Usage: compare.py --before DIR [DIR ...] --after DIR [DIR ...]

Each folder has JSON files that the benchmarks wrote; all of them on the same kind of device, best in turn on the same one. A row's ratio is after /
before of its smallest time, and of its smallest time relative to eager's in the same run where the row has one. Above 1 is slower.
"""

import argparse
import json
import math
import statistics
from pathlib import Path

FIGURES = {  # file -> what names a row; path of the time; path of the peer's
    "kernels": (("case",), ("milliseconds", "cxxinductor"), ("milliseconds", "eager")),
    "models": (("model",), ("milliseconds", "cxxinductor"), ("milliseconds", "eager")),
    "training": (("model",), ("milliseconds", "cxxinductor"), ("milliseconds", "eager")),
    "compile_time": (("backend", "cache"), ("own",), None),
}


def at(row, path):
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row


def smallest(folders, benchmark):
    """name of a row -> (its smallest time, its smallest time relative to the peer's)."""
    names, time, peer = FIGURES[benchmark]
    found = {}
    for folder in folders:
        path = Path(folder) / f"{benchmark}.json"
        for row in json.loads(path.read_text())["rows"] if path.exists() else ():
            value = at(row, time)
            if value is None:
                continue
            relative = value / at(row, peer) if peer else value
            name = " ".join(row[key] for key in names)
            before = found.get(name, (math.inf, math.inf))
            found[name] = (min(before[0], value), min(before[1], relative))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", nargs="+", required=True)
    parser.add_argument("--after", nargs="+", required=True)
    args = parser.parse_args()
    for benchmark in FIGURES:
        before, after = smallest(args.before, benchmark), smallest(args.after, benchmark)
        rows = {name: [new / old for new, old in zip(after[name], before[name])] for name in before if name in after}
        if not rows:
            continue
        print(f"{benchmark}: after / before of the time, and relative to eager's")
        for name, ratios in rows.items():
            print(f"  {name:<40}" + "".join(f"{ratio:8.3f}" for ratio in ratios))
        means = [statistics.geometric_mean(column) for column in zip(*rows.values())]
        print(f"  {f'geometric mean of {len(rows)}':<40}" + "".join(f"{mean:8.3f}" for mean in means))
        for name in sorted(before.keys() ^ after.keys()):
            print(f"  {name}: only {'before' if name in before else 'after'}")


if __name__ == "__main__":
    main()
