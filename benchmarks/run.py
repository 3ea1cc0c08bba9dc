"""Runs every benchmark that this machine can run, one process each, and writes JSON to build/benchmarks.

Usage: run.py [--out DIR]. What is to be published goes to benchmarks/results, which report.py reads: run.py --out benchmarks/results
"""

import shutil
import subprocess
import sys
from pathlib import Path

import torch
from timing import argument_parser

CPU = ("cpu",)
VALGRIND = ("compile_instructions",)
CUDA = ("kernels", "models", "training", "training_kernels", "dynamic", "optimizers", "host", "compile_time", "matmul_template",
        "matmul_padding", "row_sums", "densenet", "libtorch", "device_step", "graphs", "second_process", "distributed")  # fmt: skip


def main():
    args = argument_parser(__doc__).parse_args()
    names = CPU
    for found, group, missing in ((torch.cuda.is_available(), CUDA, "CUDA device"), (shutil.which("valgrind"), VALGRIND, "valgrind")):
        if found:
            names += group
        else:
            print(f"no {missing}: left out are {', '.join(group)}", flush=True)
    here = Path(__file__).resolve().parent
    failed = [name for name in names if subprocess.call([sys.executable, str(here / f"{name}.py"), "--out", args.out])]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
