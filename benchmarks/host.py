"""Host cost of a call: CPU time until the compiled callable returns, queue empty, median of 1,000. Usage: host.py [--out DIR]"""

import argparse
import statistics
import time

import torch
from timing import save

import cxxinductor


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


def chain(count):
    """count kernels that cannot be fused: each reduces over the other dimension."""

    def fn(x):
        for step in range(count):
            x = x + x.sum(step % 2, keepdim=True)
        return x

    return fn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args()
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
            callable_ = found[0].compiled
            row["kernels"] = sum(k["launches"] for k in found[0].details["kernels"])
            row["callable alone"] = call_microseconds(lambda: callable_([x]))
            rows.append(row)
            print(row, flush=True)
    save("host", {"unit": "microseconds", "rows": rows}, args.out)


if __name__ == "__main__":
    main()
