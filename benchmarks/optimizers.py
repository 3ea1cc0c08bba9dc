"""Optimiser steps: ours and Inductor's under torch.compile, torch's fused and foreach ones. Usage: optimizers.py [--out DIR] [--quick]

Milliseconds of a step, on an idle device and with the device kept busy while the step is queued; the bytes that a step
must move (each of its tensors once) as a part of what a copy moves in that time; launches per step of ours.
"""

import time

import torch
from timing import argument_parser, copy_bandwidth, interleaved, parse_for_cuda, save

import cxxinductor

HOST_CYCLES = 20_000_000  # about 10 ms: guards and Python loops over hundreds of parameters take a few

# class, arguments, tensors of each parameter's size that a step reads and writes (gradient, parameter, state)
OPTIMIZERS = {
    "SGD": (torch.optim.SGD, dict(lr=1e-3), 3),
    "SGD momentum": (torch.optim.SGD, dict(lr=1e-3, momentum=0.9), 5),
    "Adam": (torch.optim.Adam, dict(lr=1e-3), 7),
    "AdamW": (torch.optim.AdamW, dict(lr=1e-3), 7),
}


def gpt2_sizes():
    """Parameters of a 124M GPT-2: few large tensors, many of 768 elements."""
    block = [(768,), (768,), (768, 2304), (2304,), (768, 768), (768,), (768,), (768,), (768, 3072), (3072,), (3072, 768), (768,)]
    return [(50257, 768), (1024, 768)] + block * 12 + [(768,), (768,)]


def workloads(quick):
    yield "100 x 1M", [(1024, 1024)] * 100
    if not quick:
        yield "GPT-2 (148 tensors)", gpt2_sizes()
        yield "300 x 1k", [(1000 + i % 3,) for i in range(300)]


def make(cls, options, sizes, **kinds):
    params = [torch.nn.Parameter(torch.randn(size, device="cuda")) for size in sizes]
    for p in params:
        p.grad = torch.randn_like(p)
    return cls(params, **options, **kinds)


def measure(name, cls, options, tensors, workload, sizes, bandwidth, quick):
    steps, seconds, launches = {}, {}, None
    for backend in ("cxxinductor", "inductor"):
        torch._dynamo.reset()
        optimizer = make(cls, options, sizes, foreach=True)

        def compiled(optimizer=optimizer):
            optimizer.step()

        steps[backend] = torch.compile(compiled, backend=backend)
        with cxxinductor.reports.collect() as found:
            start = time.perf_counter()
            for _ in range(3):
                steps[backend]()
            torch.cuda.synchronize()
            seconds[backend] = time.perf_counter() - start
        if backend == "cxxinductor":
            launches = sum(row["launches"] for row in found[-1].details["kernels"])
            kernels = len(found[-1].details["kernels"])
            externs = len(found[-1].details["externs"])
        if quick and backend == "cxxinductor":
            break
    fused, foreach = (make(cls, options, sizes, **{kind: True}) for kind in ("fused", "foreach"))
    steps |= {"fused": fused.step, "foreach": foreach.step}
    idle = interleaved(steps, 30)
    busy = interleaved(steps, 30, device_only=True, sleep_cycles=HOST_CYCLES)
    elements = sum(torch.Size(size).numel() for size in sizes)
    moved = 4 * tensors * elements
    row = {
        "optimizer": name,
        "workload": workload,
        "milliseconds": idle,
        "device_milliseconds": busy,
        "of_fused": busy["cxxinductor"] / busy["fused"],
        "percent_of_copy": {k: 100 * moved / (t / 1e3) / bandwidth for k, t in busy.items()},
        "first_steps_seconds": seconds,
        "launches": launches,
        "kernels": kernels,
        "externs": externs,
    }
    print(row, flush=True)
    return row


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="AdamW and SGD on 100 x 1M, without Inductor")
    args = parse_for_cuda(parser)
    bandwidth = copy_bandwidth()
    rows = []
    for workload, sizes in workloads(args.quick):
        for name, (cls, options, tensors) in OPTIMIZERS.items():
            if args.quick and name not in ("SGD", "AdamW"):
                continue
            rows.append(measure(name, cls, options, tensors, workload, sizes, bandwidth, args.quick))
            # After each row: a run that is stopped leaves what it measured.
            save("optimizers", {"unit": "milliseconds", "copy_bytes_per_second": bandwidth, "rows": rows}, args.out)
            torch._dynamo.reset()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
