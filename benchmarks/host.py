"""Host cost of a call: CPU time until the compiled callable returns, queue empty, median of 1,000. Usage: host.py [--out DIR]

The bound: 6 us + (cuLaunchKernel's own time in this run + 0.7 us) per kernel + 1.5 us per allocated tensor.
"""

import ctypes
import statistics
import time

import torch
from timing import argument_parser, parse_for_cuda, save

import cxxinductor

BASE, LAUNCH_EXTRA, ALLOCATION = 6.0, 0.7, 1.5  # microseconds


def call_microseconds(fn, repeats=1000):
    for _ in range(50):
        fn()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        fn()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(times)


def per_call(fn, count, repeats=200):
    """Microseconds of one of `count` calls in a row, from an empty queue."""

    def run():
        for _ in range(count):
            fn()

    return call_microseconds(run, repeats) / count


def launch_microseconds(count):
    """One of `count` calls of cuLaunchKernel alone, from an empty queue: ctypes calls of it, less ctypes calls with the same arguments of a function that does nothing."""
    driver = ctypes.CDLL("libcuda.so.1")
    kernel = torch.cuda._compile_kernel('extern "C" __global__ void empty(float* x) {}', "empty")
    x = torch.zeros(1, device="cuda")
    pointer = ctypes.c_void_p(x.data_ptr())
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    arguments = (kernel.func, 1, 1, 1, 32, 1, 1, 0, stream, parameters, None)
    nothing = ctypes.CDLL(None).abs
    nothing.argtypes = None
    assert driver.cuLaunchKernel(*arguments) == 0
    return per_call(lambda: driver.cuLaunchKernel(*arguments), count) - per_call(lambda: nothing(0, *arguments[1:]), count)


def chain(count):
    """count kernels that cannot be fused: each reduces over the other dimension."""

    def fn(x):
        for step in range(count):
            x = x + x.sum(step % 2, keepdim=True)
        return x

    return fn


def main():
    parser = argument_parser(__doc__)
    args = parse_for_cuda(parser)
    x = torch.randn(64, 64, device="cuda")
    rows = []
    with torch.no_grad():
        for name, fn in {"one kernel": lambda x: x.sin() + 1, "chain of 10": chain(10), "chain of 50": chain(50)}.items():
            row = {"case": name}
            for backend in ("eager", "inductor", "cxxinductor"):
                torch._dynamo.reset()
                compiled = fn if backend == "eager" else torch.compile(fn, backend=backend, dynamic=False)
                row[backend] = call_microseconds(lambda: compiled(x))
            with cxxinductor.reports.collect() as found:
                torch._dynamo.reset()
                torch.compile(fn, backend="cxxinductor", dynamic=False)(x)
            callable_, details = found[0].compiled, found[0].details
            row["kernels"] = sum(k["launches"] for k in details["kernels"])
            row["allocations"] = details["allocations"]
            row["callable alone"] = call_microseconds(lambda: callable_([x]))
            # A launch costs more the fuller the queue is: measured for as many as this case has, beside it.
            row["cuLaunchKernel"] = launch = launch_microseconds(row["kernels"])
            row["bound"] = BASE + (launch + LAUNCH_EXTRA) * row["kernels"] + ALLOCATION * row["allocations"]
            rows.append(row)
            print(row, flush=True)
    save("host", {"unit": "microseconds", "rows": rows}, args.out)


if __name__ == "__main__":
    main()
