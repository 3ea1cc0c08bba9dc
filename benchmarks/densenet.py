"""DenseNet in training on a CUDA device, with kernels that differ in sizes alone merged (option generalize_kernels) or not: compile
time with a cold cache and two compile threads, and time of a step, of several modes in turn. Prints a line of JSON for each mode, and
writes them to densenet.json.
"""

import json
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn

import cxxinductor
from timing import argument_parser, interleaved, parse_for_cuda, write_json

STEP_SLEEP_CYCLES = 80_000_000  # about 40 ms: longer than a step takes to queue


class Layer(nn.Module):
    def __init__(self, channels, growth):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(channels), nn.Conv2d(channels, 4 * growth, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(4 * growth), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, found):
        x = self.conv1(F.relu(self.norm1(torch.cat(found, 1))))
        return self.conv2(F.relu(self.norm2(x)))


class DenseNet(nn.Module):
    def __init__(self, blocks, growth=32):
        super().__init__()
        channels = 64
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks, self.transitions = nn.ModuleList(), nn.ModuleList()
        for number, layers in enumerate(blocks):
            self.blocks.append(nn.ModuleList(Layer(channels + i * growth, growth) for i in range(layers)))
            channels += layers * growth
            if number + 1 < len(blocks):
                self.transitions.append(
                    nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2))
                )
                channels //= 2
        self.last, self.head = nn.BatchNorm2d(channels), nn.Linear(channels, 1000)

    def forward(self, x):
        x = self.stem(x)
        for number, block in enumerate(self.blocks):
            found = [x]
            for layer in block:
                found.append(layer(found))
            x = torch.cat(found, 1)
            if number < len(self.transitions):
                x = self.transitions[number](x)
        return self.head(F.relu(self.last(x)).mean((2, 3)))


def compiled(model, x, mode, cache):
    """The first step with kernels of the mode: the compiled model and what it took."""
    options = {"cache_dir": cache, "compile_threads": 2, "generalize_kernels": mode}
    run = torch.compile(model, backend="cxxinductor", options=options)
    torch.cuda.reset_peak_memory_stats()
    with cxxinductor.reports.collect() as graphs:
        start = time.perf_counter()
        step(run, model, x)
        torch.cuda.synchronize()
        first = time.perf_counter() - start
    cxxinductor.wait_for_compiles()
    stages = {}
    for graph in graphs:
        for stage, seconds in graph.details["times"]:
            stages[stage] = stages.get(stage, 0) + seconds
    return run, {
        "generalize_kernels": mode,
        "kernels": sum(len(g.details["kernels"]) for g in graphs),
        "launches": sum(k["launches"] for g in graphs for k in g.details["kernels"]),
        "in_background": sum(len(k["specializations"]) for g in graphs for k in g.details["kernels"]),
        "first_step_s": round(first, 1),
        "compile_kernels_s": round(stages.get("compile kernels", 0), 1),
        "fuse_and_plan_s": round(sum(stages.get(s, 0) for s in ("lower", "fuse", "select-kernels", "place-memory", "merge-kernels")), 1),
        "peak_mb": round(torch.cuda.max_memory_allocated() / 1e6),
    }


def step(run, model, x):
    model.zero_grad(set_to_none=True)
    run(x).float().square().mean().backward()


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--blocks", default="6,12,24,16", help="layers of each block: densenet121; 6,12,64,48 is densenet264")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--modes", default="auto", help="values of generalize_kernels, with commas: auto,off")
    arguments = parse_for_cuda(parser)
    blocks, dtype = [int(n) for n in arguments.blocks.split(",")], getattr(torch, arguments.dtype)
    torch.manual_seed(0)
    model = DenseNet(blocks).to("cuda", dtype).train()
    x = torch.randn(arguments.batch, 3, 224, 224, device="cuda", dtype=dtype)
    runs, lines = {}, []
    for mode in arguments.modes.split(","):
        with tempfile.TemporaryDirectory() as cache:
            runs[mode], figures = compiled(model, x, mode, cache)
        lines.append({"blocks": blocks, "dtype": arguments.dtype, "batch": arguments.batch, **figures})
    # Hundreds of small launches keep the host busier than the device, whose time is what the kernels decide.
    candidates = {mode: lambda run=run: step(run, model, x) for mode, run in runs.items()}
    device = interleaved(candidates, device_only=True, sleep_cycles=STEP_SLEEP_CYCLES)
    whole = interleaved(candidates)
    for line in lines:
        mode = line["generalize_kernels"]
        line |= {"device_ms": round(device[mode], 3), "step_ms": round(whole[mode], 3)}
        print(json.dumps(line))
    write_json("densenet", lines, arguments.out)


if __name__ == "__main__":
    main()
