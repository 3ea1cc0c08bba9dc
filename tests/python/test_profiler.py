"""What torch's profiler and tools of NVTX see of a compiled call."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from children import run_python
from torch import nn
from torch.profiler import ProfilerActivity, profile

# What a tool of NVTX is: a library that puts its functions into the tables of each user of NVTX. This one writes the names of
# ranges to the file that RANGES names, indented by their depth.
NVTX_TOOL = r"""
#include <cstdint>
#include <cstdio>
#include <cstdlib>

using Function = void (*)();
struct Callbacks {
  size_t size;
  int (*functions_of)(int module, Function*** table, unsigned* size);
};
namespace {
thread_local int depth = 0;
int push(const char* name) {
  static FILE* const file = fopen(getenv("RANGES"), "w");
  fprintf(file, "%*s%s\n", depth, "", name);
  fflush(file);
  return depth++;
}
int pop() { return --depth; }
}  // namespace
extern "C" int InitializeInjectionNvtx2(const void* (*table_of)(uint32_t)) {
  constexpr uint32_t callbacks = 1;
  constexpr int core = 1;
  constexpr unsigned range_push = 9, range_pop = 11;
  const auto* found = static_cast<const Callbacks*>(table_of(callbacks));
  Function** functions = nullptr;
  unsigned size = 0;
  if (found == nullptr || found->functions_of(core, &functions, &size) == 0 || size <= range_pop) return 0;
  *functions[range_push] = reinterpret_cast<Function>(push);
  *functions[range_pop] = reinterpret_cast<Function>(pop);
  return 1;
}
"""
NVTX_PROGRAM = """
import sys

sys.path.insert(0, sys.argv[2])
import torch, test_profiler

torch.manual_seed(0)
model, x = test_profiler.Model().to(sys.argv[1]), torch.randn(8, 64, device=sys.argv[1])
fails = test_profiler.Fails().to(sys.argv[1])
with torch.no_grad():
    torch.compile(model, backend="cxxinductor", fullgraph=True)(x)
    torch.compile(model, backend="cxxinductor", fullgraph=True, options={"nvtx": True})(x)
    try:
        torch.compile(fails, backend="cxxinductor", fullgraph=True, options={"nvtx": True})(x, torch.full((4,), 9, device=sys.argv[1]))
    except IndexError:
        pass
    torch.compile(model.head, backend="cxxinductor", fullgraph=True, options={"nvtx": True, "tier": "aten"})(x)
"""


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.act = nn.LayerNorm(64), nn.GELU()

    def forward(self, x):
        return self.act(self.norm(x) * 2)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(2)])
        self.head = nn.Linear(64, 64)

    def forward(self, x):
        for layer in self.layers:
            x = self.head(layer(x))
        return x


@pytest.mark.step_by_step
def test_kernels_carry_ops_and_module_paths(device):
    model, x = Model().to(device), torch.randn(8, 64, device=device)
    with torch.no_grad():
        run = torch.compile(model, backend="cxxinductor", fullgraph=True)
        run(x)
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            run(x)
    kernels = [event.name for event in seen.events() if event.name.startswith("k") and "__" in event.name]
    assert len(kernels) == 2 and all("layer_norm" in name and name.endswith("__layers_norm") for name in kernels), kernels
    torch.testing.assert_close(run(x), model(x))


class Fails(nn.Module):
    """A row that is not there."""

    def forward(self, x, index):
        return x[index].sum()


def test_nvtx_ranges_are_nested(tmp_path):
    """On the CPU: the tool stands for Nsight Systems. A call that raises ends its ranges, and one through ATen has a range too."""
    tool, ranges = tmp_path / "tool.so", tmp_path / "ranges"
    (tmp_path / "tool.cpp").write_text(NVTX_TOOL)
    compiler = shutil.which("c++") or shutil.which("g++")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tool, tmp_path / "tool.cpp"], check=True)
    environment = {"NVTX_INJECTION64_PATH": str(tool), "RANGES": str(ranges)}
    done = run_python(NVTX_PROGRAM, "cpu", Path(__file__).parent, environment=environment)
    assert done.returncode == 0, done.stderr
    lines = ranges.read_text().splitlines()
    calls = [at for at, line in enumerate(lines) if not line.startswith(" ")]
    assert len(calls) == 3 and all(lines[at].startswith("cxxinductor: graph ") for at in calls), lines
    steps = lines[1 : calls[1]]
    kernels = [step for step in steps if step.startswith(" k")]
    products = [step for step in steps if step.startswith(" aten::")]
    assert len(kernels) == 2 and all("layer_norm" in step and step.endswith("__layers_norm") for step in kernels), lines
    assert len(products) == 2 and all(step.split() == ["aten::addmm", "head"] for step in products), lines
    assert [step[1] for step in steps] == ["k", "a", "k", "a"], lines
    assert len(lines) > calls[1] + 1 and calls[2] == len(lines) - 1, lines
