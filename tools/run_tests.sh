#!/usr/bin/env bash
# Every suite that this machine can run. Usage: run_tests.sh BUILD_DIR
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
python=.venv/bin/python

step() { printf '\n== %s\n' "$*"; }

step "layering and file sizes"
"$python" tools/check_layers.py
step "C++ suites that compile kernels or need torch"
ctest --test-dir "$build" --output-on-failure --no-tests=error -j 2 -LE core
# Without its checks of null, alignment, types and sizes of objects and overflow of pointers: with them large files take half as long again
# to compile (CMakePresets.json).
step "All other C++ suites, under AddressSanitizer and UndefinedBehaviorSanitizer"
make --no-print-directory asan
step "Python suites"
# One more than there are cores: each waits for a compiler or another process a sixth of its time. They share the cores, so that kernels of one
# graph are compiled together where there are few, in fewer runs of the compiler.
workers=$(($(nproc) < 3 ? $(nproc) + 1 : 4))
CXXINDUCTOR_COMPILE_THREADS=$(($(nproc) / workers + 1)) "$python" -m pytest tests/python -n "$workers" --dist worksteal
