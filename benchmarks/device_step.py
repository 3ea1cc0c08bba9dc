"""Training steps of a transformer (6 layers, width 768) with AdamW on the recorded device, beside eager and torch.compile.

Usage: device_step.py [--out DIR] [--only NAME] [--small]

Ways: eager, compiled (model and optimizer by torch.compile) and device from Python; cpp_eager and cpp_device from C++, by the program
build/release/tests/training_step, which `cmake --build build/release --target training_step` makes; recording: what recording an op costs,
by the program record_ops beside it. Each way to run is a process of its
own: PyTorch's engine takes the registered device for the accelerator of the process. Prints the step's time, the peak of the memory over the
first and the tenth step, compilations, and ops through ATen; on a CPU (--small) times alone.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from timing import argument_parser, write_json
from torch import nn

STEPS = 30
SHAPES = {"16x512": (16, 512), "2x128": (2, 128)}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
WAYS = ("eager", "compiled", "device", "cpp_eager", "cpp_device", "recording")
PROGRAMS = Path(__file__).resolve().parent.parent / "build" / "release" / "tests"
RECORDING_RUNS = 5


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.attention(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, layers=6, width=768, heads=12, words=8192, longest=512):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, tokens):
        x = self.words(tokens) + self.positions.weight[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def measure(way, dtype, batch, length, small):
    import cxxinductor

    has_gpu = torch.cuda.is_available()
    backing = "cuda" if has_gpu else "cpu"
    if way == "device":
        cxxinductor.register_device(backing=backing, options={"wait": True})
    where = "cxxi" if way == "device" else backing
    torch.manual_seed(0)
    sizes = {"layers": 2, "width": 64, "heads": 4, "words": 128} if small else {}
    model = Transformer(**sizes).to(where, DTYPES[dtype])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    words = model.head.out_features
    batches = [torch.randint(0, words, (batch, length), device="cpu").to(where) for _ in range(4)]
    run, update = model, optimizer.step
    if way == "compiled":
        run = torch.compile(model, backend="cxxinductor", dynamic=False)
        update = torch.compile(optimizer.step, backend="cxxinductor", dynamic=False)

    def step(number):
        tokens = batches[number % len(batches)]
        optimizer.zero_grad()
        loss = F.cross_entropy(run(tokens).flatten(0, 1).float(), tokens.flatten())
        loss.backward()
        update()
        return loss.item()

    row = {"way": way, "dtype": dtype, "shape": f"{batch}x{length}", "losses": [], "milliseconds": [], "peak_megabytes": {}}
    for number in range(STEPS):
        if has_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        row["losses"].append(step(number))  # reads the loss, and so waits for the device
        row["milliseconds"].append(1e3 * (time.perf_counter() - start))
        if has_gpu and number in (0, 9):
            row["peak_megabytes"][f"step {number + 1}"] = torch.cuda.max_memory_allocated() / 2**20
    row["first_step_seconds"] = row["milliseconds"][0] / 1e3
    row["step_milliseconds"] = statistics.median(row.pop("milliseconds")[10:])
    if way == "device":
        row["counters"] = cxxinductor.device_counters()
    return row


def measure_recording():
    """Microseconds per op, medians over processes."""
    runs = [json.loads(subprocess.run([PROGRAMS / "record_ops"], check=True, capture_output=True, text=True).stdout) for _ in range(RECORDING_RUNS)]
    return {way: statistics.median(run[way] for run in runs) for way in runs[0]}


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--only", default="", help="comma-separated ways: " + ", ".join(WAYS))
    parser.add_argument("--small", action="store_true", help="a model for a CPU, to see that everything runs")
    parser.add_argument("--one", nargs=4, help="way, dtype, batch, length: measures in this process, prints JSON")
    args = parser.parse_args()
    ways = args.only.split(",") if args.only else WAYS
    if unknown := sorted(set(ways) - set(WAYS)):
        parser.error(f"--only: unknown ways {', '.join(unknown)}")
    if args.one:
        way, dtype, batch, length = args.one
        print(json.dumps(measure(way, dtype, int(batch), int(length), args.small)))
        return
    results = {"environment": {"gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU", "torch": torch.__version__}}
    if "recording" in ways:
        results["recording_microseconds"] = measure_recording()
        print(f"microseconds per op: {results['recording_microseconds']}", flush=True)
    rows = results["rows"] = []
    for shape, (batch, length) in SHAPES.items():
        for dtype in DTYPES:
            for way in ways:
                if way == "recording":
                    continue
                command = [sys.executable, __file__, "--one", way, dtype, str(batch), str(length)]
                if way.startswith("cpp_"):
                    command = [PROGRAMS / "training_step", way.removeprefix("cpp_"), "--dtype", dtype, "--batch", str(batch), "--length", str(length), "--steps", str(STEPS)]
                if args.small:
                    command.append("--small")
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:  # one failure must not hide the others' figures
                    print(f"{shape} {dtype} {way}: FAILED {done.stderr[-2000:]}", flush=True)
                    rows.append({"way": way, "dtype": dtype, "shape": shape, "error_message": done.stderr[-2000:]})
                    continue
                rows.append(row := json.loads(done.stdout.splitlines()[-1]) | {"way": way, "shape": shape})
                peaks = ", ".join(f"{name} {peak:.0f} MB" for name, peak in row["peak_megabytes"].items())
                print(f"{shape} {dtype:<4} {way:<10} {row['step_milliseconds']:8.2f} ms per step, first {row['first_step_seconds']:.1f} s; {peaks}; "
                      f"losses {row['losses'][0]:.4f} .. {row['losses'][-1]:.4f}; {row.get('counters', '')}", flush=True)
    write_json("device_step", results, args.out)


if __name__ == "__main__":
    main()
