"""Shared by the benchmarks: interleaved candidates, rotated inputs, medians of CUDA events; arguments and the JSON that they write."""

import argparse
import json
import statistics
from pathlib import Path

import torch

MEASURED = Path(__file__).resolve().parent.parent / "build" / "benchmarks"  # not under version control

SLEEP_CYCLES = 400_000  # about 0.2 ms: longer than any of the forward callables takes to queue its work
BACKWARD_SLEEP_CYCLES = 4_000_000  # the same for what goes through autograd


def argument_parser(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=str(MEASURED), help="folder for the JSON; default build/benchmarks (report.py reads benchmarks/results)")
    return parser


def add_no_inductor(parser):
    parser.add_argument("--no-inductor", action="store_true", help="without Inductor, for comparisons of two trees (compare.py)")


def chosen_backends(arguments, names):
    """The names, without Inductor's if option --no-inductor is given."""
    return [name for name in names if name != "inductor" or not arguments.no_inductor]


def parse_for_cuda(parser):
    """The arguments; a line and exit status 3 where there is no CUDA device, unless they have another."""
    arguments = parser.parse_args()
    if getattr(arguments, "device", "cuda") == "cuda" and not torch.cuda.is_available():
        parser.exit(3, f"{parser.prog}: expected a CUDA device, found none\n")
    return arguments


def interleaved(candidates, repeats=30, warmup=5, device_only=False, sleep_cycles=SLEEP_CYCLES):
    """Median milliseconds of each callable, measured in turn so that clocks and neighbours affect all alike.

    Args:
        candidates: name -> callable without arguments that queues work on the current stream.
        device_only: keep the device busy while the work is queued, so that the host's time does not count: what a kernel
            costs inside a model. Otherwise the figure is that of a call on an idle device.
        sleep_cycles: for how long, where device_only.
    """
    for fn in candidates.values():
        for _ in range(warmup):
            fn()
    times = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, fn in candidates.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            if device_only:
                torch.cuda._sleep(sleep_cycles)
            start.record()
            fn()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end))
    return {name: statistics.median(found) for name, found in times.items()}


def copy_bandwidth(megabytes=512, repeats=30):
    """Bytes per second of a device-to-device copy, read plus written: the ceiling of memory-bound kernels."""
    source = torch.randn(megabytes * 2**18, device="cuda")
    target = torch.empty_like(source)
    milliseconds = interleaved({"copy": lambda: target.copy_(source)}, repeats, device_only=True)["copy"]
    return 2 * source.numel() * 4 / (milliseconds / 1e3)


def environment():
    return {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}


def save(name, results, folder, machine=None):
    write_json(name, {"environment": machine or environment(), **results}, folder)


def load(name, folder):
    """The results that `save` wrote, where they are of this environment; else none."""
    path = Path(folder) / f"{name}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    return {key: value for key, value in found.items() if key != "environment"} if found.get("environment") == environment() else {}


def write_json(name, value, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(value, indent=1) + "\n")
    print(f"wrote {path}", flush=True)
