"""Instructions of a compile of DistilGPT2 at tiny sizes on the CPU, from AOTAutograd's graph to loaded kernels, counted by valgrind.

Usage: compile_instructions.py [--out DIR] [--against FOLDER]

Times of single processes cannot tell two builds apart that differ by a few percent; these counts repeat within 0.1 %. The host compiler is a process of its
own and is not counted. Each backend runs twice, with the caches of the first run in the second. Needs valgrind and a C compiler; takes about four
minutes a backend.

--against: FOLDER has the package cxxinductor of another build.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch.utils.benchmark
from compile_time import MODEL, add_against, package_of
from timing import argument_parser, save

# Client requests of callgrind's. PyTorch's own bindings switch counting for the calling thread alone; ours compiles with several.
SWITCH = """
#include "callgrind.h"
void start(void) { CALLGRIND_START_INSTRUMENTATION; }
void stop(void) { CALLGRIND_STOP_INSTRUMENTATION; }
"""

CHILD = (
    """
import ctypes, functools, sys
switch, package = sys.argv[1:]
counting = ctypes.CDLL(switch)
if package:
    sys.path.insert(0, package)
device = "cpu"
"""
    + MODEL
    + """
from cxxinductor import backend

def counted(function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        counting.start()
        try:
            return function(*args, **kwargs)
        finally:
            counting.stop()
    return run

backend.read_aot_graph = counted(backend.read_aot_graph)
backend._compile = counted(backend._compile)
with torch.no_grad():
    torch.compile(model, backend="cxxinductor", dynamic=False)(tokens, use_cache=False)
"""
)


def instructions(switch, package, cache):
    """Counted in one fresh process."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor", "CXXINDUCTOR_CACHE_DIR": f"{cache}/cxxinductor"}
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null", sys.executable, "-c", CHILD, switch, package]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not counted:
        raise RuntimeError(f"{' '.join(command[:5])}: {done.stderr[-2000:]}")
    return int(counted[1])


def main():
    parser = argument_parser(__doc__)
    add_against(parser)
    args = parser.parse_args()
    for program in ("valgrind", "cc"):
        if not shutil.which(program):
            parser.error(f"expected the program {program}, found none; install valgrind and a C compiler")
    packages = {"cxxinductor": ""}
    if args.against:
        packages["against"] = package_of(parser, args)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        switch = f"{folder}/switch.so"
        headers = Path(torch.utils.benchmark.__file__).parent / "utils" / "valgrind_wrapper"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-w", f"-I{headers}", "-x", "c", "-", "-o", switch], input=SWITCH, text=True, check=True)
        for backend, package in packages.items():
            for state in ("cold", "warm"):
                rows.append({"backend": backend, "cache": state, "instructions": instructions(switch, package, f"{folder}/{backend}")})
                print(f"{backend:<12} {state}: {rows[-1]['instructions'] / 1e6:.2f} million instructions", flush=True)
    save("compile_instructions", {"unit": "instructions", "model": "DistilGPT2, tiny", "rows": rows}, args.out, {"torch": torch.__version__})


if __name__ == "__main__":
    main()
