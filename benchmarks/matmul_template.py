"""Products of bf16 matrices with epilogues: the library alone, with our kernel behind it, our template, what is chosen.

Usage: matmul_template.py [--out DIR] [--sizes 512x512x512,8192x768x3072] (m x n x k). Device times of calls that are queued one behind
another.
"""


import torch
import torch.nn.functional as F
from cxxinductor import reports
from timing import argument_parser, interleaved, parse_for_cuda, save

SQUARES = (512, 768, 1024, 1536, 2048, 3072, 4096)
OF_TRANSFORMERS = ((8192, 768, 768), (8192, 2304, 768), (8192, 3072, 768), (8192, 768, 3072), (8192, 50257, 768))
SIZES = tuple((size, size, size) for size in SQUARES) + OF_TRANSFORMERS
CASES = {
    "plain": lambda x, w, b, r: F.linear(x, w),
    "bias+GELU": lambda x, w, b, r: F.gelu(F.linear(x, w, b)),
    "bias+residual": lambda x, w, b, r: F.linear(x, w, b) + r,
}
CALLS = 16  # a measurement
SLEEP_CYCLES = 2_500_000  # more than a millisecond: all calls are queued before the first one runs


def inputs_of(m, n, k):
    def matrix(*shape, scale=1.0):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * scale

    return matrix(m, k), matrix(n, k, scale=k**-0.5), matrix(n), matrix(m, n)


def repeated(fn, inputs):
    def run():
        for i in range(CALLS):
            fn(*inputs[i % len(inputs)])

    return run


def compiled(fn, how, inputs):
    """The compiled function, and whether the product is a kernel of ours."""
    torch._dynamo.reset()
    run = torch.compile(fn, backend="cxxinductor", dynamic=False, options={"epilogue_fusion": how})
    with reports.collect() as graphs:
        run(*inputs)
    return run, not any("mm" in callee for graph in graphs for callee in graph.details["externs"])


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--sizes", default=",".join("x".join(map(str, size)) for size in SIZES))
    args = parse_for_cuda(parser)
    rows = []
    print(f"{'us per call':<14}{'m x n x k':>18}{'library':>10}{'+ kernel':>10}{'template':>10}{'chosen':>10}  {'choice':<10}{'slowdown vs best':>18}")
    for size in args.sizes.split(","):
        m, n, k = map(int, size.split("x"))
        # Inputs rotate, so that they do not stay in the L2 cache where they would not in a model either.
        inputs = [inputs_of(m, n, k) for _ in range(min(CALLS, max(2, 2**27 // (2 * (m * n + m * k + n * k)))))]
        for name, fn in CASES.items():
            runs = {"library": lambda x, w, b, r: F.linear(x, w)}
            chosen = False
            for label, how in (("library + kernel", "never"), ("template", "always"), ("chosen", "auto")):
                runs[label], ours = compiled(fn, how, inputs[0])
                chosen = ours if how == "auto" else chosen
            with torch.no_grad():
                times = interleaved({k: repeated(f, inputs) for k, f in runs.items()}, repeats=15, warmup=2, device_only=True, sleep_cycles=SLEEP_CYCLES)
            times = {k: 1e3 * t / CALLS for k, t in times.items()}
            behind = times["chosen"] / min(times["library + kernel"], times["template"]) - 1
            rows.append({"case": name, "size": size, "microseconds": times, "choice": "template" if chosen else "library", "behind": behind})
            print(f"{name:<14}{size:>18}" + "".join(f"{t:>10.1f}" for t in times.values()) + f"  {rows[-1]['choice']:<10}{behind:>+18.1%}", flush=True)
    save("matmul_template", {"rows": rows}, args.out)


if __name__ == "__main__":
    main()
