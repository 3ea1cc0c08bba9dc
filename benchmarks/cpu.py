"""Kernels and models on the CPU: eager, Inductor and cxxinductor in one process. Usage: cpu.py [--out DIR] [--only TEXT] [--no-inductor]

Calls of the three are interleaved, so that other work on the machine affects all alike; medians and minima are kept. Results are compared with eager's before anything is timed.
"""

import gc
import platform
import statistics
import time
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from timing import argument_parser, save

BACKENDS = ("eager", "inductor", "cxxinductor")
SECONDS_PER_CASE = 2.0
FEWEST_ROUNDS, MOST_ROUNDS = 15, 400


def environment():
    name = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    return {"cpu": name, "threads": torch.get_num_threads(), "capability": torch.backends.cpu.get_cpu_capability(), "torch": torch.__version__}


def interleaved(candidates, clock):
    """Median and least milliseconds of each callable, called in turn."""
    for fn in candidates.values():
        for _ in range(3):
            fn()
    times = {name: [] for name in candidates}
    start, rounds = time.perf_counter(), 0
    while rounds < FEWEST_ROUNDS or (rounds < MOST_ROUNDS and time.perf_counter() - start < SECONDS_PER_CASE):
        for name, fn in candidates.items():
            before = clock()
            fn()
            times[name].append(1e3 * (clock() - before))
        rounds += 1
    return {name: statistics.median(found) for name, found in times.items()}, {name: min(found) for name, found in times.items()}


# ---- Kernels --------------------------------------------------------------------------------------------------------

ROWS, COLUMNS = 4096, 1024


def randn(*sizes, dtype=torch.float32):
    return torch.randn(*sizes).to(dtype)


def kernels():
    """(name, function, input maker)."""
    f32, bf16, f16 = torch.float32, torch.bfloat16, torch.float16
    for dtype, label in ((f32, "f32"), (bf16, "bf16"), (torch.int8, "int8")):
        made = (lambda: [torch.randint(-9, 9, (ROWS, COLUMNS), dtype=torch.int8)]) if dtype == torch.int8 else lambda d=dtype: [randn(ROWS, COLUMNS, dtype=d)]
        yield f"transpose + 1 {label}", lambda x: x.t().contiguous() + 1, made
        yield f"permute 0 2 1 + mul {label}", lambda x: x.view(16, 256, 1024).permute(0, 2, 1).contiguous() * 2, made
    yield "add transposed f32", lambda x, y: x + y.t(), lambda: [randn(1024, 1024), randn(1024, 1024)]
    yield "channels-last to contiguous f32", lambda x: x.contiguous() * 2, lambda: [randn(4, 64, 56, 56).to(memory_format=torch.channels_last)]
    for dtype, label in ((f32, "f32"), (bf16, "bf16"), (f16, "f16")):
        two = lambda d=dtype: [randn(ROWS, COLUMNS, dtype=d) for _ in range(2)]  # noqa: E731
        one = lambda d=dtype: [randn(ROWS, COLUMNS, dtype=d)]  # noqa: E731
        weights = lambda d=dtype: [randn(ROWS, COLUMNS, dtype=d), randn(COLUMNS, dtype=d), randn(COLUMNS, dtype=d)]  # noqa: E731
        yield f"(x * 2).sigmoid() * y {label}", lambda x, y: (x * 2).sigmoid() * y, two
        yield f"gelu(x + 1) * y {label}", lambda x, y: F.gelu(x + 1) * y, two
        yield f"silu(x) * y {label}", lambda x, y: F.silu(x) * y, two
        yield f"softmax {label}", lambda x: torch.softmax(x, -1), one
        yield f"layer_norm {label}", lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b), weights
        if dtype == f16:
            continue
        yield f"rms_norm {label}", lambda x, w, b: F.rms_norm(x, (x.shape[-1],), w), weights
        yield f"residual + layer_norm {label}", lambda x, w, b: F.layer_norm(x + x.relu(), (x.shape[-1],), w, b), weights
        yield f"column sums {label}", lambda x: x.sum(0), one
        yield f"full sum {label}", lambda x: (x * x).sum(), one
        yield f"row max and argmax {label}", lambda x: x.max(-1), one
        yield f"where {label}", lambda x, y: torch.where(x > y, x, y * 0.5), two
        yield f"masked_fill {label}", lambda x, m: x.masked_fill(m, -1e4), lambda d=dtype: [randn(ROWS, COLUMNS, dtype=d), torch.rand(ROWS, COLUMNS) > 0.5]
        yield f"cat {label}", lambda x, y: torch.cat([x * 2, y.relu()], 1), two
        yield f"slices {label}", lambda x: x[:, 100:900] + x[:, 1:801], one
        yield f"max_pool2d {label}", lambda x: F.max_pool2d(x, 3, 2, 1), lambda d=dtype: [randn(2, 64, 112, 112, dtype=d)]
        yield f"avg_pool2d {label}", lambda x: F.avg_pool2d(x, 2), lambda d=dtype: [randn(2, 64, 112, 112, dtype=d)]
        yield f"global average pool {label}", lambda x: F.adaptive_avg_pool2d(x, 1), lambda d=dtype: [randn(4, 256, 28, 28, dtype=d)]
        yield f"squeeze-excite scale {label}", lambda x, s: F.hardswish(x) * F.hardsigmoid(s), lambda d=dtype: [randn(4, 96, 28, 28, dtype=d), randn(4, 96, 1, 1, dtype=d)]
        norm = lambda d=dtype: [randn(4, 64, 56, 56, dtype=d), torch.randn(64), torch.rand(64) + 0.5, torch.randn(64), torch.randn(64)]  # noqa: E731
        yield f"batch_norm + relu {label}", lambda x, m, v, w, b: F.relu(F.batch_norm(x, m, v, w, b)), norm
    yield "bool mask logic", lambda a, b: (a & ~b) | (b ^ a), lambda: [torch.rand(ROWS, COLUMNS) > 0.5 for _ in range(2)]
    yield "int8 arithmetic", lambda a, b: (a + b).clamp(-100, 100) * 2, lambda: [torch.randint(-60, 60, (ROWS, COLUMNS), dtype=torch.int8) for _ in range(2)]
    yield "uint8 to f32, normalised", lambda a: (a.float() / 255 - 0.45) / 0.22, lambda: [torch.randint(0, 255, (ROWS, COLUMNS), dtype=torch.uint8)]
    yield "comparison to bool", lambda x, y: (x > y) & (x < 1), lambda: [randn(ROWS, COLUMNS) for _ in range(2)]
    yield "bool count per row", lambda m: m.sum(-1), lambda: [torch.rand(ROWS, COLUMNS) > 0.5]
    yield "embedding + add", lambda t, i, p: F.embedding(i, t) + p, lambda: [randn(30000, 512), torch.randint(0, 30000, (8, 512)), randn(512, 512)]
    yield "gather along rows", lambda x, i: x.gather(1, i) * 2, lambda: [randn(ROWS, COLUMNS), torch.randint(0, COLUMNS, (ROWS, 256))]
    yield "index_select of columns", lambda x, i: x[:, i], lambda: [randn(ROWS, COLUMNS), torch.randint(0, COLUMNS, (256,))]
    yield "cumsum of rows", lambda x: x.cumsum(-1), lambda: [randn(ROWS, COLUMNS)]
    yield "every second element", lambda x: x[:, ::2] * 2 + x[:, 1::2], lambda: [randn(ROWS, COLUMNS)]
    yield "rotary embedding f32", rotary, lambda: [randn(2, 8, 256, 64), randn(256, 64), randn(256, 64)]
    yield "pad and add", lambda x: F.pad(x, (1, 1, 1, 1)) + 1, lambda: [randn(8, 16, 112, 112)]
    yield "repeat along rows", lambda x: x.repeat_interleave(4, 1) + 1, lambda: [randn(ROWS, 256)]
    yield "small gelu chain", lambda x, y: F.gelu(x + 1) * y, lambda: [randn(64, 256) for _ in range(2)]
    yield "small softmax", lambda x: torch.softmax(x, -1), lambda: [randn(32, 128)]
    yield "variance of rows", lambda x: x.var(-1), lambda: [randn(ROWS, COLUMNS)]


def rotary(x, cos, sin):
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


# ---- Models ---------------------------------------------------------------------------------------------------------


def vision(name, **options):
    import timm

    size = options.pop("size", 224)
    return lambda batch: (timm.create_model(name, **options), [torch.randn(batch, 3, size, size)])


def densenet(batch):
    from timm.models.densenet import DenseNet

    return DenseNet(growth_rate=16, block_config=(2, 4, 4, 2), num_classes=100), [torch.randn(batch, 3, 128, 128)]


def language(kind, length):
    def make(batch):
        import transformers as tf

        if kind == "distilgpt2":
            config = tf.GPT2Config(n_layer=3, n_embd=384, n_head=6, vocab_size=8000, use_cache=False)
            model = tf.GPT2LMHeadModel(config)
        else:
            config = tf.BertConfig(num_hidden_layers=4, hidden_size=512, num_attention_heads=8, intermediate_size=2048)
            model = tf.BertModel(config)
        return model, [torch.randint(0, config.vocab_size, (batch, length))]

    return make


MODELS = {
    "mobilenetv3_small_100": vision("mobilenetv3_small_100"),
    "resnet18": vision("resnet18"),
    "densenet of 12 layers": densenet,
    "vit_tiny": vision("vit_tiny_patch16_224"),
    "convnext_atto": vision("convnext_atto"),
    "DistilGPT2 of 3 layers, 128 tokens": language("distilgpt2", 128),
    "BERT small, 128 tokens": language("bert", 128),
}


def models():
    for name, make in MODELS.items():
        for dtype, batch in ((torch.float32, 1), (torch.float32, 4), (torch.bfloat16, 2)):
            def made(make=make, dtype=dtype, batch=batch):
                torch.manual_seed(0)
                model, inputs = make(batch)
                model = model.eval().to(dtype).requires_grad_(False)
                return model, [x.to(dtype) if x.is_floating_point() else x for x in inputs]

            yield f"{name}, {'f32' if dtype == torch.float32 else 'bf16'}, batch {batch}", made


# ---- Measuring ------------------------------------------------------------------------------------------------------


def first(result):
    if isinstance(result, torch.Tensor):
        return result
    return first(next(iter(result.values()))) if isinstance(result, dict) else first(result[0])


@contextmanager
def fresh():
    torch._dynamo.reset()
    gc.collect()
    yield


def compare(expected, found, name):
    if not expected.is_floating_point():
        if not torch.equal(expected, found):
            raise AssertionError(f"{name}: differs from eager")
        return
    error = ((found.double() - expected.double()).norm() / expected.double().norm().clamp_min(1e-30)).item()
    if not error < (1e-4 if expected.dtype == torch.float32 else 3e-2):
        raise AssertionError(f"{name}: relative error {error:.2e} against eager")


def measure(name, kind, function, inputs, backends, clock):
    row = {"case": name, "kind": kind, "first_call_seconds": {}}
    candidates = {}
    with fresh(), torch.no_grad():
        expected = first(function(*inputs))
        for backend in backends:
            torch._dynamo.reset()
            called = function if backend == "eager" else torch.compile(function, backend=backend, dynamic=False)
            start = time.perf_counter()
            compare(expected, first(called(*inputs)), f"{name}, {backend}")
            row["first_call_seconds"][backend] = time.perf_counter() - start
            candidates[backend] = lambda c=called: c(*inputs)
        row["milliseconds"], row["least_milliseconds"] = interleaved(candidates, clock)
    return row


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--only", default="", help="run cases whose name contains one of these, separated by |")
    parser.add_argument("--kind", choices=("kernel", "model"), help="kernels or models only")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="1: the thread's own time is measured, in which other processes have little part")
    parser.add_argument("--no-inductor", action="store_true", help="eager and cxxinductor alone")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    clock = time.thread_time if args.threads == 1 else time.perf_counter
    backends = [b for b in BACKENDS if not (args.no_inductor and b == "inductor")]
    cases = [(name, "kernel", lambda fn=fn, make=make: (fn, make())) for name, fn, make in kernels()]
    cases += [(name, "model", made) for name, made in models()]
    rows = []
    for name, kind, made in cases:
        if (args.kind and kind != args.kind) or not any(word in name for word in args.only.split("|")):
            continue
        torch.manual_seed(0)
        try:
            row = measure(name, kind, *made(), backends, clock)
        except Exception as error:  # one broken case must not hide the others' figures
            rows.append({"case": name, "kind": kind, "error_message": str(error)[:500]})
            print(f"{name:<44} FAILED {str(error)[:300]}", flush=True)
            continue
        rows.append(row)
        t, least = row["milliseconds"], row["least_milliseconds"]
        versus = f"against Inductor {t['inductor'] / t['cxxinductor']:5.2f}x (least {least['inductor'] / least['cxxinductor']:5.2f}x)  " if "inductor" in t else ""
        print(f"{name:<44} " + "  ".join(f"{b} {t[b]:8.3f}" for b in backends) + f" ms  {versus}against eager {t['eager'] / t['cxxinductor']:5.2f}x", flush=True)
    if not args.only and not args.kind:
        save("cpu", {"rows": rows}, args.out, environment())


if __name__ == "__main__":
    main()
