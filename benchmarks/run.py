"""Runs every benchmark, one process each, and writes JSON to benchmarks/results. Usage: run.py [--out DIR]"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=str(HERE / "results"))
    args = parser.parse_args()
    failed = [s for s in ("kernels", "models", "training", "training_kernels", "dynamic", "optimizers", "host", "compile_time", "matmul_template") if subprocess.call([sys.executable, str(HERE / f"{s}.py"), "--out", args.out])]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
