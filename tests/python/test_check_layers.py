"""tools/check_layers.py finds what it is there for: wrong includes, files and functions that are too long, retired names."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(root):
    return subprocess.run([sys.executable, ROOT / "tools/check_layers.py", "--root", root], capture_output=True, text=True)


@pytest.mark.parametrize(
    "path, text, message",
    [
        ("csrc/ir/a.h", '#include "schedule/schedule.h"\n', "csrc/ir/a.h:1: layer ir may not include schedule/schedule.h"),
        ("csrc/ir/a.cpp", "#include <ATen/ATen.h>\n", "csrc/ir/a.cpp:1: only torch_bridge, api, cli may include ATen/ATen.h"),
        ("csrc/api/a.cpp", "#include <CLI/CLI.hpp>\n", "csrc/api/a.cpp:1: only cli may include CLI/CLI.hpp"),
        ("csrc/kernels/rows/a.cpp", '#include "kernels/tiles/a.h"\n', "csrc/kernels/rows/a.cpp:1: the family rows may not include kernels/tiles/a.h of another"),
        ("csrc/schedule/a.cpp", "int cuda = 1;\n", "layer schedule names the target 'cuda'"),
        ("csrc/schedule/a.cpp", "bool b = d == DeviceType::Cuda;\n", "layer schedule names the target 'DeviceType::Cuda'"),
        ("csrc/ir/a.h", "\n" * 401, "csrc/ir/a.h: 401 lines, the limit is 400"),
        ("tests/python/a.py", "\n" * 601, "tests/python/a.py: 601 lines, the limit is 600"),
        ("csrc/ir/a.cpp", "\nint f() {\n" + "  a();\n" * 79 + "}\n", "csrc/ir/a.cpp:2: a function of 81 lines, the limit is 80"),
        ("csrc/ir/a.h", "class A {\n  A()\n      : a_(0) {\n" + "    a();\n" * 79 + "  }\n};\n", "csrc/ir/a.h:3: a function of 81 lines"),
        ("tests/a.cpp", 'TEST_CASE("a") {\n  R"(\n}\n)";\n' + "  a();\n" * 77 + "}\n", "tests/a.cpp:1: a function of 82 lines"),
        ("kernels_templates/cuda/a.cuh", 'int a;\nasm("");\n', "kernels_templates/cuda/a.cuh:2: 'asm' is for a function in kernels_templates/intrinsics/cuda"),
        ("kernels_templates/cuda/a.cuh", "__syncthreads();\n", "kernels_templates/cuda/a.cuh:1: '__syncthreads' is for a function"),
        ("kernels_templates/cuda/a.cuh", "atomicAdd(p, 1);\n", "kernels_templates/cuda/a.cuh:1: 'atomicAdd' is for a function"),
        ("kernels_templates/shared/a.h", "float f = rsqrtf(a);\n", "kernels_templates/shared/a.h:1: 'rsqrtf' is for a function"),
        ("csrc/ir/a.cpp", "int a;\nbool is_throughput_device();\n", "csrc/ir/a.cpp:2: 'is_throughput_device' is retired: write 'is_simt'"),
        ("docs/a.md", "`walk_rows`\n", "docs/a.md:1: 'walk_rows' is retired: write 'fuse_mixed_order_reductions'"),
        ("README.md", "counters: graph_fallback\n", "README.md:1: 'graph_fallback' is retired: write 'aten_fallback'"),
    ],
)
def test_each_kind_of_problem_is_an_error(path, text, message, tmp_path):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    result = check(tmp_path)
    assert result.returncode == 1 and message in result.stdout, result.stdout + result.stderr


def test_other_words_and_limits_reached_pass(tmp_path):
    (tmp_path / "csrc/ir").mkdir(parents=True)
    (tmp_path / "csrc/ir/a.h").write_text('#include "sym/expr.h"\nint my_walk_rows_like_name, home;\n' + "\n" * 398)
    full = "  int f() const {\n" + "    g([] {\n      a();\n    });\n" * 26 + "  }\n"
    (tmp_path / "csrc/ir/a.cpp").write_text("namespace n {\nstruct A {\n" + full * 3 + "};\n}\nint rows[] = {\n" + "    1,\n" * 90 + "};\n")
    result = check(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_intrinsics_and_words_of_cuda_pass(tmp_path):
    words = "__global__ void __launch_bounds__(32) f(const __grid_constant__ T t, int* __restrict__ p) { __shared__ int s; }  // not __shfl_sync\n__device__ int n;\n"
    for path, text in {"cuda/a.cuh": words, "intrinsics/cuda/a.cuh": 'asm("");\n__syncthreads();\n', "cpu/a.h": "__builtin_fma(a, b, c);\n"}.items():
        file = tmp_path / "kernels_templates" / path
        file.parent.mkdir(parents=True)
        file.write_text(text)
    result = check(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_project_passes():
    result = check(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
