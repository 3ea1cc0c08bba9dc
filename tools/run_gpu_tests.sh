#!/usr/bin/env bash
# Every suite on a CUDA device. Usage: tools/run_gpu_tests.sh BUILD_DIR
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
python=.venv/bin/python

echo "== Kernels on the device, against the interpreter"
"$build/tests/test_kernels" "[gpu]"

echo "== The C++ API on the device"
"$build/tests/test_api" "[gpu]"

echo "== Python suites on the device: all of torchvision's models, examples/, packages, the recorded device"
"$python" -m pytest tests/python --device cuda -n auto --maxprocesses 8 --dist worksteal

echo "== The same with every call replayed from a CUDA graph"
"$python" -m pytest tests/python --device cuda --graphs -n auto --maxprocesses 8 --dist worksteal

if command -v compute-sanitizer > /dev/null; then
  echo "== Memory and races of every kind of kernel, under compute-sanitizer"
  for tool in memcheck racecheck initcheck; do
    compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 5 "$build/tests/test_kernels" "every planned program on the GPU"
  done
else
  echo "== compute-sanitizer is not on the PATH: skipped (it comes with the CUDA toolkit)"
fi
