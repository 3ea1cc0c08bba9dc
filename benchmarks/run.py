"""Runs every benchmark, one process each, and writes JSON to build/benchmarks. Without a CUDA device: those of the CPU.

Usage: run.py [--out DIR]. What is to be published goes to benchmarks/results, which report.py reads: run.py --out benchmarks/results
"""

import subprocess
import sys
from pathlib import Path

import torch
from timing import argument_parser

CPU = ("cpu",)
CUDA = ("kernels", "models", "training", "training_kernels", "dynamic", "optimizers", "host", "compile_time", "matmul_template",
        "matmul_padding", "row_sums", "densenet", "libtorch", "device_step", "graphs", "second_process", "distributed")  # fmt: skip


def main():
    args = argument_parser(__doc__).parse_args()
    names = CPU + (CUDA if torch.cuda.is_available() else ())
    if names == CPU:
        print(f"no CUDA device: left out are {', '.join(CUDA)}", flush=True)
    here = Path(__file__).resolve().parent
    failed = [name for name in names if subprocess.call([sys.executable, str(here / f"{name}.py"), "--out", args.out])]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
