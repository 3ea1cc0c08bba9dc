#!/usr/bin/env bash
# Installs each wheel into a fresh environment with PyTorch 2.11 and uses it: torch.compile, an exported model, the program, a C++ program that
# is built against the wheel. Usage: tools/test_wheel.sh [WHEEL ...]   default: dist/*.whl
#
# The interpreter of a wheel is python3.X of the PATH or of pyenv. PyTorch comes from pip's index, its CUDA build; PIP_EXTRA_INDEX_URL and TORCH (a
# requirement, torch==2.11.0+cpu for example) choose another. The environments need 5 GB each with the CUDA build, and are removed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
wheels=("$@")
[ ${#wheels[@]} -gt 0 ] || wheels=(dist/cxxinductor-*.whl)

interpreter_of() {  # cp312 -> python3.12
  local version=3.${1#cp3} found
  found=$(ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version."*/bin/python 2>/dev/null | sort -V | tail -1)
  echo "${found:-python$version}"
}

for wheel in "${wheels[@]}"; do
  wheel=$(realpath "$wheel")
  tag=$(basename "$wheel" | cut -d- -f3)
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  "$(interpreter_of "$tag")" -m venv "$folder/venv"
  python=$folder/venv/bin/python
  "$python" -m pip install -q --disable-pip-version-check "${TORCH:-torch==2.11.*}" numpy
  begin=$(date +%s.%N)
  "$python" -m pip install -q --disable-pip-version-check --no-deps --no-index "$wheel"
  echo "$tag: installed in $(echo "$(date +%s.%N) - $begin" | bc) s"
  export CXXINDUCTOR_CACHE_DIR=$folder/cache
  (cd "$folder" && "$python" "$root/tools/check_installed.py")
  package=$(cd "$folder" && "$python" -c 'import cxxinductor; print(*cxxinductor.__path__)')
  libtorch=$("$python" -c 'import torch; print(torch.utils.cmake_prefix_path)')
  cmake -S examples -B "$folder/examples" -DCMAKE_PREFIX_PATH="$package;$libtorch" > "$folder/log" || { cat "$folder/log"; exit 1; }
  cmake --build "$folder/examples" --target run_model > "$folder/log" || { cat "$folder/log"; exit 1; }
  "$python" -c "import torch; torch.save([torch.ones(3, 2)], '$folder/inputs.pt')"
  "$folder/examples/run_model" tests/data/pt2/mlp.pt2 "$folder/inputs.pt" | grep -q 'output CPUFloatType\[3, 2\]'
  echo "$tag: torch.compile, load, the program and a C++ program work"
  rm -rf "$folder"
done
