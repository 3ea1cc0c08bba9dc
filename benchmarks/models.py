"""Inference of whole models: eager, Inductor, cxxinductor in one process, interleaved. Usage: models.py [--out DIR] [--only NAME]"""

import statistics
import time
from collections import Counter

import timm
import torch
import transformers as tf
from timing import add_no_inductor, argument_parser, chosen_backends, interleaved, parse_for_cuda, save

import cxxinductor


def language(model_class, config, batch, length, decoder=False):
    model = model_class(config)
    tokens = torch.randint(0, config.vocab_size, (batch, length), device="cuda")
    inputs = {"input_ids": tokens}
    if decoder:
        inputs["decoder_input_ids"] = tokens.clone()
    if not isinstance(config, tf.BertConfig):
        inputs["use_cache"] = False
    return model, inputs


def vision(name, batch=64):
    return timm.create_model(name), {"x": torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.bfloat16)}


MODELS = {
    "distilgpt2": lambda: language(tf.GPT2LMHeadModel, tf.GPT2Config(n_layer=6), 16, 512),
    "bert_base": lambda: language(tf.BertForMaskedLM, tf.BertConfig(), 16, 512),
    "bart_causal": lambda: language(tf.BartForCausalLM, tf.BartConfig(), 4, 512),
    "blenderbot_small": lambda: language(tf.BlenderbotSmallForCausalLM, tf.BlenderbotSmallConfig(), 16, 128),
    "t5_small": lambda: language(tf.T5ForConditionalGeneration, tf.T5Config(), 8, 512, decoder=True),
    "resnet50": lambda: vision("resnet50"),
    "vit_base": lambda: vision("vit_base_patch16_224", 32),
    "convnext_base": lambda: vision("convnext_base", 32),
}


LIBRARY = ("gemm", "cutlass", "cudnn", "nvjet", "fmha", "flash", "Memcpy", "Memset", "cublas", "implicit_convolve", "nchwToNhwc",
           "nhwcToNchw", "sm90_xmma", "sm80_xmma", "splitK", "conv2d", "at::native")


BACKENDS = {"inductor": None, "cxxinductor": None, "cxxinductor fast": {"numerics": "fast"},
            "cxxinductor frozen": {"freezing": True}}


def device_work(fn):
    """(own kernels, milliseconds of all kernels and copies) of one call on the device, from a profiler trace.

    Own kernels are those of no library. The time is a sum over kernels: how fast the host queues them has no part in it.
    """
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        fn()
        torch.cuda.synchronize()
    events = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    own = sum(not any(word in event.name for word in LIBRARY) for event in events)
    return own, sum(event.time_range.elapsed_us() for event in events) / 1e3


def add_device_work(row, candidates):
    """Adds own_kernels and device_milliseconds, the smallest of five calls, of each candidate."""
    traces = {name: [device_work(fn) for _ in range(5)] for name, fn in candidates.items()}
    row["own_kernels"] = {name: found[0][0] for name, found in traces.items() if name != "eager"}
    row["device_milliseconds"] = {name: min(time for _, time in found) for name, found in traces.items()}


def peak_memory(fn):
    """Bytes that torch's allocator holds at most during a call, beside what was there before."""
    fn()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    fn()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def versus_inductor(milliseconds):
    t = milliseconds
    return f"; vs inductor {t['inductor'] / t['cxxinductor']:.2f}x" if "inductor" in t else ""


def geomean_vs_inductor(rows):
    """Prints it; {"geomean_vs_inductor": ...}, or {} where Inductor was left out."""
    times = [row["milliseconds"] for row in rows if "inductor" in row.get("milliseconds", ())]
    if not times:
        return {}
    geomean = statistics.geometric_mean(t["inductor"] / t["cxxinductor"] for t in times)
    print(f"geomean against Inductor: {geomean:.3f}x over {len(times)} models")
    return {"geomean_vs_inductor": geomean}


def measure(name, backends):
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, inputs = MODELS[name]()
    model = model.to("cuda", torch.bfloat16).eval().requires_grad_(False)
    pick = lambda out: out if isinstance(out, torch.Tensor) else out[0]  # noqa: E731
    run = lambda: pick(model(**inputs))  # noqa: E731
    row = {"model": name, "first_call_seconds": {}}
    candidates = {"eager": run}
    with torch.no_grad():
        run()
        for backend, options in backends.items():
            torch._dynamo.reset()
            cxxinductor.reset_counters()
            compiled = torch.compile(model, backend=backend.split()[0], dynamic=False, options=options)
            fn = lambda c=compiled: pick(c(**inputs))  # noqa: E731
            torch.cuda.synchronize()
            start = time.perf_counter()
            fn()
            torch.cuda.synchronize()
            row["first_call_seconds"][backend] = time.perf_counter() - start
            if backend == "cxxinductor":
                row["counters"] = cxxinductor.counters()
            candidates[backend] = fn
        row["milliseconds"] = interleaved(candidates, repeats=20)
        row["peak_bytes"] = {k: peak_memory(fn) for k, fn in candidates.items()}
        eager = run().double()
        truth = pick(model.float()(**{k: v.float() if getattr(v, "is_floating_point", lambda: False)() else v for k, v in inputs.items()})).double()
        model.bfloat16()
        errors = {k: ((fn().double() - truth).norm() / truth.norm()).item() for k, fn in candidates.items()}
        row["error"] = errors
        del eager
        add_device_work(row, candidates)
        details = cxxinductor.explain(model, **inputs)
        row["externs"] = Counter(op for g in details.graphs for op in g.details["externs"])
        row["stage_seconds"] = [g.details["times"] for g in details.graphs]
    return row


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--only", default="", help="comma-separated model names")
    add_no_inductor(parser)
    args = parse_for_cuda(parser)
    backends = {name: BACKENDS[name] for name in chosen_backends(args, BACKENDS)}
    rows = []
    for name in args.only.split(",") if args.only else MODELS:
        try:
            row = measure(name, backends)
        except Exception as error:  # one broken model must not hide the others' figures
            rows.append({"model": name, "error_message": str(error)[:2000]})
            print(f"{name}: FAILED {str(error)[:500]}", flush=True)
            continue
        rows.append(row)
        t = row["milliseconds"]
        print(f"{name:<18} " + "  ".join(f"{k} {ms:.2f} ms" for k, ms in t.items()) + versus_inductor(t) + f"; eager numerics cost "
              f"{t['cxxinductor'] / t['cxxinductor fast'] - 1:+.1%}, freezing gains {t['cxxinductor'] / t['cxxinductor frozen'] - 1:+.1%}, vs eager "
              f"{t['eager'] / t['cxxinductor']:.2f}x; own kernels {row['own_kernels']}; on the device {', '.join(f'{k} {ms:.2f} ms' for k, ms in row['device_milliseconds'].items())}; peak MB {({k: v // 2**20 for k, v in row['peak_bytes'].items()})}; first call "
              f"{row['first_call_seconds']}; error {row['error']}; {row['counters']}", flush=True)
    save("models", {"rows": rows, **geomean_vs_inductor(rows)}, args.out)


if __name__ == "__main__":
    main()
