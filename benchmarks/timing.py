"""Timing shared by the benchmarks: interleaved candidates, rotated inputs, medians of CUDA events."""

import json
import statistics
from pathlib import Path

import torch


SLEEP_CYCLES = 400_000  # about 0.2 ms: longer than any of the forward callables takes to queue its work
BACKWARD_SLEEP_CYCLES = 4_000_000  # the same for what goes through autograd


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
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"environment": machine or environment(), **results}, indent=1) + "\n")
    print(f"wrote {path}", flush=True)
