"""What a change costs: cxxinductor's figures of two trees, as ratios. Usage: compare.py --before DIR [DIR ...] --after DIR [DIR ...]

Each folder has JSON files that the benchmarks wrote; all of them on the same kind of device, best in turn on the same one. A row's ratios are after /
before of its smallest time, of its smallest time relative to eager's in the same run, and of the smallest sum of the times of its kernels and
copies on the device, where the row has them. Above 1 is slower.
"""

import argparse
import json
import math
import statistics
from pathlib import Path

FIGURES = {  # file -> what names a row; paths of the time, of the peer's and of the time on the device
    "kernels": (("case",), ("milliseconds", "cxxinductor"), ("milliseconds", "eager"), ()),
    "models": (("model",), ("milliseconds", "cxxinductor"), ("milliseconds", "eager"), ("device_milliseconds", "cxxinductor")),
    "training": (("model",), ("milliseconds", "cxxinductor"), ("milliseconds", "eager"), ("device_milliseconds", "cxxinductor")),
    "compile_time": (("backend", "cache"), ("own",), (), ()),
}
COLUMNS = ("time", "relative to eager's", "on the device")


def at(row, path):
    """The figure at the path, or None where the row has none or the path is empty."""
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row if path else None


def smallest(folders, benchmark):
    """name of a row -> the smallest of each figure of COLUMNS, NaN where no row has it."""
    names, time, peer, device = FIGURES[benchmark]
    found = {}
    for folder in folders:
        path = Path(folder) / f"{benchmark}.json"
        for row in json.loads(path.read_text())["rows"] if path.exists() else ():
            value, of_peer = at(row, time), at(row, peer)
            if value is None:
                continue
            figures = (value, value / of_peer if of_peer else None, at(row, device))
            kept = found.setdefault(" ".join(row[key] for key in names), [math.nan] * len(COLUMNS))
            for column, figure in enumerate(figures):
                if figure is not None and not figure >= kept[column]:
                    kept[column] = figure
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
        measured = [column for column in range(len(COLUMNS)) if not any(math.isnan(ratios[column]) for ratios in rows.values())]
        print(f"{benchmark}: after / before of " + ", ".join(COLUMNS[column] for column in measured))
        for name, ratios in rows.items():
            print(f"  {name:<40}" + "".join(f"{ratios[column]:8.3f}" for column in measured))
        means = [statistics.geometric_mean(ratios[column] for ratios in rows.values()) for column in measured]
        print(f"  {f'geometric mean of {len(rows)}':<40}" + "".join(f"{mean:8.3f}" for mean in means))
        for name in sorted(before.keys() ^ after.keys()):
            print(f"  {name}: only {'before' if name in before else 'after'}")


if __name__ == "__main__":
    main()
