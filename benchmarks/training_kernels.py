"""Memory-bound kernels of training against the copy bandwidth of the same run: eager, Inductor, cxxinductor. Usage: training_kernels.py [--out DIR]

What counts as moved is what a perfect kernel would move: for a backward its two large inputs and its result, for a loss with its
gradient the logits twice and the gradient once, for dropout input and result (and a mask of one byte an element where it is kept).
"""


import torch
import torch.nn.functional as F
from timing import BACKWARD_SLEEP_CYCLES, argument_parser, copy_bandwidth, interleaved, parse_for_cuda, save

ELEMENTS = 64 * 2**20
BACKENDS = ("eager", "inductor", "cxxinductor")


def randn(*sizes, grad=False):
    return torch.randn(*sizes, device="cuda", dtype=torch.bfloat16, requires_grad=grad)


def compiled(fn, backend):
    return fn if backend == "eager" else torch.compile(fn, backend=backend, dynamic=False)


def forwards(fn, *inputs):
    return {b: (lambda f=compiled(fn, b): f(*inputs)) for b in BACKENDS}


def backwards(fn, gradient, *inputs):
    results = {b: compiled(fn, b)(*inputs) for b in BACKENDS}
    leaves = [x for x in inputs if x.requires_grad]
    return {b: (lambda o=o: torch.autograd.grad(o, leaves, gradient, retain_graph=True)) for b, o in results.items()}


def cases():
    """(name, candidates, bytes moved at least)."""
    x = randn(ELEMENTS)
    yield "dropout", forwards(torch.no_grad()(lambda x: F.dropout(x, 0.1, True)), x), 2 * 2 * ELEMENTS
    for name, noise in (("uniform", torch.rand_like), ("normal", torch.randn_like)):
        yield f"{name} noise", forwards(torch.no_grad()(lambda x, noise=noise: x + noise(x)), x), 2 * 2 * ELEMENTS
    for n in (1024, 4096):
        a, b, w, c = randn(ELEMENTS // n, n), randn(ELEMENTS // n, n), randn(n), randn(n)
        fn = torch.no_grad()(lambda a, b, w, c: F.layer_norm(F.dropout(a, 0.1, True) + b, (a.shape[-1],), w, c))
        yield f"dropout+residual+layer_norm {n}", forwards(fn, a, b, w, c), 3 * 2 * ELEMENTS
    for n in (1024, 2048, 4096, 8192, 16384):
        a, w, c, g = randn(ELEMENTS // n, n, grad=True), randn(n, grad=True), randn(n, grad=True), randn(ELEMENTS // n, n)
        yield f"layer_norm backward {n}", backwards(lambda a, w, c: F.layer_norm(a, (a.shape[-1],), w, c), g, a, w, c), 3 * 2 * ELEMENTS
        yield f"softmax backward {n}", backwards(lambda a: torch.softmax(a, -1), g, a), 3 * 2 * ELEMENTS
    for vocabulary in (32768, 131072):
        rows = 4 * ELEMENTS // vocabulary
        a, y = randn(rows, vocabulary, grad=True), torch.randint(0, vocabulary, (rows,), device="cuda")
        losses = {b: compiled(lambda a, y: F.cross_entropy(a.float(), y), b) for b in BACKENDS}
        yield f"cross_entropy forward+backward {vocabulary}", {
            b: (lambda f=f: torch.autograd.grad(f(a, y), a)) for b, f in losses.items()}, 3 * 2 * 4 * ELEMENTS


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--only", default="", help="run cases whose name contains this")
    args = parse_for_cuda(parser)
    ceiling = copy_bandwidth()
    x, y = randn(ELEMENTS), randn(ELEMENTS)
    copy = interleaved({"copy": lambda: y.copy_(x)}, device_only=True)["copy"]
    print(f"copy {ceiling / 1e12:.2f} TB/s; of {ELEMENTS} bf16 {copy:.4f} ms", flush=True)
    del x, y
    rows = []
    for name, candidates, moved in cases():
        if args.only not in name:
            continue
        times = interleaved(candidates, repeats=15, device_only=True, sleep_cycles=BACKWARD_SLEEP_CYCLES)
        percent = {k: 100 * moved / (t / 1e3) / ceiling for k, t in times.items()}
        rows.append({"case": name, "milliseconds": times, "percent_of_copy": percent})
        print(f"{name:<42}" + "  ".join(f"{k} {p:5.1f}% ({times[k]:.4f} ms)" for k, p in percent.items()), flush=True)
        torch._dynamo.reset()
    save("training_kernels", {"copy_bytes_per_second": ceiling, "copy_of_elements_milliseconds": copy, "rows": rows}, args.out)


if __name__ == "__main__":
    main()
