"""Memory-bound kernels against the copy bandwidth of the same run: eager, Inductor, cxxinductor. Usage: kernels.py [--out DIR]"""


import torch
import torch.nn.functional as F
from timing import add_no_inductor, argument_parser, copy_bandwidth, interleaved, parse_for_cuda, save

ELEMENTS = 64 * 2**20


def cases():
    """(name, function, input maker, bytes moved at least)."""
    for dtype in (torch.bfloat16, torch.float32):
        size = torch.finfo(dtype).bits // 8
        label = "bf16" if dtype == torch.bfloat16 else "f32"
        flat = 256 * 2**20 // size
        make = lambda n=flat, d=dtype: [torch.randn(n, device="cuda", dtype=d) for _ in range(2)]  # noqa: E731
        yield f"gelu(x+1)*y {label} 256MB", lambda x, y: F.gelu(x + 1) * y, make, 3 * flat * size
        for n in (512, 1024, 2048, 4096, 8192, 16384):
            rows = ELEMENTS // n
            one = lambda r=rows, c=n, d=dtype: [torch.randn(r, c, device="cuda", dtype=d)]  # noqa: E731
            with_weights = lambda r=rows, c=n, d=dtype: [  # noqa: E731
                torch.randn(r, c, device="cuda", dtype=d), *(torch.randn(c, device="cuda", dtype=d) for _ in range(2))
            ]
            moved = 2 * ELEMENTS * size
            yield f"softmax {label} {n}", lambda x: torch.softmax(x, -1), one, moved
            yield f"layer_norm {label} {n}", lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b), with_weights, moved
            yield f"rms_norm {label} {n}", lambda x, w, b: F.rms_norm(x, (x.shape[-1],), w), with_weights, moved


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--only", default="", help="run cases whose name contains this")
    add_no_inductor(parser)
    args = parse_for_cuda(parser)
    ceiling = copy_bandwidth()
    print(f"copy {ceiling / 1e12:.2f} TB/s")
    rows = []
    for name, fn, make, moved in cases():
        if args.only not in name:
            continue
        torch._dynamo.reset()
        inputs = make()
        backends = {"eager": fn, "cxxinductor": torch.compile(fn, backend="cxxinductor", dynamic=False)}
        if not args.no_inductor:
            backends["inductor"] = torch.compile(fn, backend="inductor", dynamic=False)
        with torch.no_grad():
            times = interleaved({k: (lambda f=f: f(*inputs)) for k, f in backends.items()}, repeats=20, device_only=True)
        percent = {k: 100 * moved / (t / 1e3) / ceiling for k, t in times.items()}
        rows.append({"case": name, "milliseconds": times, "percent_of_copy": percent})
        print(f"{name:<28}" + "  ".join(f"{k} {p:5.1f}%" for k, p in percent.items()), flush=True)
    save("kernels", {"copy_bytes_per_second": ceiling, "rows": rows}, args.out)


if __name__ == "__main__":
    main()
