"""Targets that users register: examples/host_simt, whose kernels are threads in blocks on the host."""

import subprocess
from pathlib import Path

import pytest
import torch

import cxxinductor

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "release" / "examples" / "host_simt" / "libhost_simt.so"

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built by `make test`")


@pytest.fixture(autouse=True)
def loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("CXXINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    assert cxxinductor.load_target(LIBRARY) == "host_simt"
    torch._dynamo.reset()
    cxxinductor.reset_counters()


def compiled(function, **options):
    return torch.compile(function, backend="cxxinductor", options={"target": "host_simt", "target_options": "threads=2", **options})


def check(function, *inputs, dynamic=None, kernels=1):
    run = torch.compile(function, backend="cxxinductor", dynamic=dynamic, options={"target": "host_simt", "target_options": "threads=2"})
    torch.testing.assert_close(run(*inputs), function(*inputs), rtol=2e-5, atol=2e-5)
    counters = cxxinductor.counters()
    assert counters["kernels"] == kernels and counters["aten_fallback"] == 0, counters
    return run


def test_pointwise():
    check(lambda x, y: torch.relu(x + y) * torch.sigmoid(x), torch.randn(7, 33), torch.randn(33))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int64], ids=str)
def test_dtypes(dtype):
    check(lambda x: x * 3 - x.abs(), torch.arange(-300, 300).to(dtype))


def test_softmax():
    check(lambda x: torch.softmax(x, -1), torch.randn(5, 700))


def test_layer_norm():
    weight, bias = torch.randn(300), torch.randn(300)
    check(lambda x: torch.nn.functional.layer_norm(x, (300,), weight, bias), torch.randn(6, 300))


def test_reductions():
    check(lambda x: (x.sum(0), x.amax(0)), torch.randn(500, 48))
    cxxinductor.reset_counters()
    check(lambda x: (x.argmax(1), x.mean(1)), torch.randn(9, 400))


def test_a_transpose():
    check(lambda x: (x * 2).transpose(0, 1).contiguous(), torch.randn(96, 64))


def test_sizes_that_change():
    run = check(lambda x: torch.softmax(x * 2, -1), torch.randn(4, 100), dynamic=True)
    x = torch.randn(3, 257)
    torch.testing.assert_close(run(x), torch.softmax(x * 2, -1))


def test_inputs_at_any_address():
    run = check(lambda x: x + 1, torch.zeros(64))
    base = torch.randn(65)
    torch.testing.assert_close(run(base[1:]), base[1:] + 1)


TWO_TURNS = """
#include "simt.h"
void kernel(unsigned int* found) {
  found[threadIdx.x] = threadIdx.x + 5;
  host_simt::block->wait_for_block();
  if (threadIdx.x == 0) found[0] = found[63];
}
int main() {
  unsigned int found[64] = {};
  unsigned int* pointer = found;
  void* const arguments[] = {&pointer};
  const uint32_t grid[3] = {1, 1, 1}, threads[3] = {64, 1, 1};
  return host_simt::run(&kernel, arguments, grid, threads, int64_t{0}, uint64_t{0}, uint64_t{1}) ? static_cast<int>(found[0]) : 0;
}
"""


def test_c_libraries_that_watch_jumps(tmp_path):
    (tmp_path / "kernel.cpp").write_text(TWO_TURNS)
    words = ["c++", "-std=c++20", "-O2", "-Wp,-D_FORTIFY_SOURCE=2", f"-I{ROOT / 'examples' / 'host_simt'}", tmp_path / "kernel.cpp", "-o", tmp_path / "kernel"]
    subprocess.run(words, check=True)
    assert subprocess.run([tmp_path / "kernel"], check=False).returncode == 68


def test_training():
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.GELU(), torch.nn.LayerNorm(30), torch.nn.Linear(30, 4))
    x = torch.randn(8, 20)
    expected = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    found = torch.autograd.grad(compiled(model)(x).square().sum(), list(model.parameters()))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert cxxinductor.counters()["aten_fallback"] == 0


def test_an_index_that_is_out_of_range_raises():
    table = torch.randn(10, 4)
    run = check(lambda i: table[i] * 2, torch.tensor([1, 9, 0]))
    with pytest.raises(cxxinductor.IndexOutOfRange, match="index 10 is out of bounds"):
        run(torch.tensor([1, 10, 0]))


def test_code_is_cached_by_the_options_of_the_target():
    function, x = (lambda x: torch.cos(x) + 1), torch.randn(100)

    def writes(target_options):
        torch._dynamo.reset()
        cxxinductor.reset_counters()
        compiled(function, target_options=target_options)(x)
        return cxxinductor.counters()["cache_writes"]

    assert writes("threads=2") > 0
    assert writes("threads=2") == 0
    assert writes("threads=2,optimize=0") > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "nothing"}, r"expected a registered target \(host_simt\), found 'nothing'"),
        ({"target_options": "threads"}, r"expected name=value with options of host_simt \(threads, optimize\), found 'threads'"),
        ({"target_options": "speed=9"}, "found 'speed=9'"),
        ({"target": "", "target_options": "threads=1"}, "expected a target in option target"),
    ],
)
def test_options_that_are_wrong(options, message):
    with pytest.raises(Exception, match=message):
        compiled(lambda x: x + 1, **options)(torch.randn(3))


def test_what_the_compiler_says_is_in_the_reason():
    with pytest.warns(UserWarning, match=r"target host_simt, compiling kernel k0_add: \S"):
        compiled(lambda x: x + 1, target_options="optimize=wrong", cache="off")(torch.randn(3))


def test_libraries_that_are_wrong():
    with pytest.raises(cxxinductor.UserError, match="does not open"):
        cxxinductor.load_target("/nowhere/libnothing.so")
    with pytest.raises(cxxinductor.UserError, match="expected a function cxxinductor_target"):
        cxxinductor.load_target(cxxinductor._C.__file__)
