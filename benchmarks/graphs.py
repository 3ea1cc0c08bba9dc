"""CUDA graphs: this backend with option cuda_graphs beside Inductor's reduce-overhead, in one process, interleaved.

Usage: graphs.py [--out DIR] [--parts host,decode,inference,training] [--only NAME,...] [--backends NAME,...] [--keep] [--kernels N]

host: time of the host per call of the compiled callable alone. "unchanged" and "moving": one call on an idle GPU, when the host's caches are
cold from waiting; in "moving" the two inputs and the result have other addresses in each call. "in a row": one of 16 such calls without a wait
between them. "patched per call": nodes that the host gave other addresses (counter graph_patched_nodes; those that a recording updates itself
are not counted). "replay alone": torch.cuda.CUDAGraph.replay of the same kernels, the lower bound on a quiet host. decode: tokens per second of a Llama-1B
shape, one token at a time, with a static cache. peak: of torch's allocator. --backends: of decode, inference and training.
--kernels: print where each model's GPU time goes, by kernel and backend.
--keep: models and parts that are not measured stay as an earlier run on such a GPU has written them, so that a run can be made in pieces; so do the
peaks of backends that are not measured.
Models are timed in three interleaved runs in one process; their medians count, and the least ratio of all runs is told.
"""

import collections
import itertools
import math
import statistics
import time

import timm
import torch
import transformers as tf
from host import call_microseconds, per_call
from models import MODELS, language, peak_memory
from timing import argument_parser, interleaved, load, parse_for_cuda, save
from training import MODELS as TRAINING
from training import language as training_language
from training import vision as training_vision

import cxxinductor

BACKENDS = {
    "inductor": {"backend": "inductor"},
    "reduce-overhead": {"backend": "inductor", "mode": "reduce-overhead"},
    "cxxinductor": {"backend": "cxxinductor"},
    "cxxinductor graphs": {"backend": "cxxinductor", "options": {"cuda_graphs": "on"}},
    "cxxinductor graphs with branches": {"backend": "cxxinductor", "options": {"cuda_graphs": "on", "graph_branches": True}},
}


def llama():
    return tf.LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
                          vocab_size=128256, max_position_embeddings=4096)


def image(name, batch, size=224):
    return timm.create_model(name), {"x": torch.randn(batch, 3, size, size, device="cuda", dtype=torch.bfloat16)}


INFERENCE = {
    **MODELS,
    "gpt2_8x1024": lambda: language(tf.GPT2LMHeadModel, tf.GPT2Config(), 8, 1024),
    "plbart_4x1024": lambda: language(tf.PLBartForCausalLM, tf.PLBartConfig(is_decoder=True), 4, 1024),
    "camembert_16x512": lambda: language(tf.CamembertForMaskedLM, tf.CamembertConfig(), 16, 510),
    "trocr_32x256": lambda: language(tf.TrOCRForCausalLM, tf.TrOCRConfig(), 32, 256),
    "llama_1x2048": lambda: language(tf.LlamaForCausalLM, llama(), 1, 2048),
    "swin_base": lambda: image("swin_base_patch4_window7_224", 32),
    "efficientnet_b0": lambda: image("efficientnet_b0", 64),
    "mobilenetv3_large": lambda: image("mobilenetv3_large_100", 64),
    "inception_v3": lambda: image("inception_v3", 8, 299),  # branches
}


def t5_training():
    model = tf.T5ForConditionalGeneration(tf.T5Config(decoder_start_token_id=0))
    tokens = torch.randint(0, 32128, (8, 512), device="cuda")
    return model, lambda run: run(input_ids=tokens, labels=tokens, use_cache=False).loss


TRAINING_MODELS = {
    "t5_small": t5_training,
    "distilgpt2": TRAINING["distilgpt2"],
    "llama_1x2048": lambda: training_language(tf.LlamaForCausalLM, llama(), 1, 2048),
    "efficientnet_b0": lambda: training_vision("efficientnet_b0", 64),
    "swin_base": lambda: training_vision("swin_base_patch4_window7_224", 32),
    "bert_base": TRAINING["bert_base"],
    "convnext_base": lambda: training_vision("convnext_base", 32),
    "resnet50": TRAINING["resnet50"],
}


def chain(count):
    """count kernels that cannot be fused: each reduces over the other dimension."""

    def fn(x, y):
        for step in range(count - 1):
            x = x + x.sum(step % 2, keepdim=True)
        return x + y

    return fn


def patched_per_call(fn, calls=20):
    before = graph_counters()["graph_patched_nodes"]
    for _ in range(calls):
        fn()
    return (graph_counters()["graph_patched_nodes"] - before) / calls


CALLS_IN_A_ROW = 16  # fewer than fill the queue of 1024 launches


def host_rows():
    rows = []
    sets = [(torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")) for _ in range(2)]
    with torch.no_grad():
        for count in (1, 10, 50):
            row = {"case": f"chain of {count}"}
            for name, setting in (("cxxinductor", "off"), ("cxxinductor graphs", "on")):
                torch._dynamo.reset()
                with cxxinductor.reports.collect() as found:
                    torch.compile(chain(count), backend="cxxinductor", dynamic=False, options={"cuda_graphs": setting})(*sets[0])
                callable_, details = found[0].compiled, found[0].details
                row["kernels"] = sum(k["launches"] for k in details["kernels"])
                unchanged = lambda: callable_(list(sets[0]))  # noqa: E731
                row[name] = {"unchanged": call_microseconds(unchanged)}
                patched = {"unchanged": patched_per_call(unchanged)}
                turn, held = itertools.cycle(sets), [None, None]

                def moving():
                    held[0], held[1] = held[1], callable_(list(next(turn)))  # a result is held while the next one is made

                for _ in range(20):
                    moving()
                cxxinductor.wait_for_compiles()  # of the kernel that updates addresses
                row[name]["moving"] = call_microseconds(moving)
                row[name]["in a row"] = per_call(moving, CALLS_IN_A_ROW)
                patched["moving"] = patched_per_call(moving)
            row["patched per call"] = patched  # of the setting "on", which is the last
            replay = captured(unchanged).replay
            row["replay alone"] = {"unchanged": call_microseconds(replay), "in a row": per_call(replay, CALLS_IN_A_ROW)}
            rows.append(row)
            print(row, flush=True)
    return rows


def captured(fn):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fn()
    return graph


def graph_counters():
    return {k: v for k, v in cxxinductor.counters().items() if k.startswith("graph_")}


def compiled(model, name):
    torch._dynamo.reset()
    return torch.compile(model, dynamic=False, **BACKENDS[name])


def tell_ready(model, backend, start):
    print(f"  {model}, {backend}: ready after {time.perf_counter() - start:.1f} s", flush=True)


def decode_rate(model, name, length, steps):
    """Tokens per second."""
    cache = tf.StaticCache(config=model.config, max_batch_size=1, max_cache_len=length, device="cuda", dtype=torch.bfloat16)
    # Its tensors else come into being in the first call, which is compiled: a counter on the CPU that Inductor's kernels take for a pointer.
    cache.early_initialization(1, model.config.num_key_value_heads, model.config.head_dim, torch.bfloat16, torch.device("cuda"))
    forward = compiled(model, name)
    token = torch.zeros(1, 1, dtype=torch.long, device="cuda")

    def step(position):
        nonlocal token
        torch.compiler.cudagraph_mark_step_begin()
        logits = forward(input_ids=token, past_key_values=cache, cache_position=position, use_cache=True).logits
        token = logits[:, -1:].argmax(-1).clone()

    positions = [torch.tensor([i], device="cuda") for i in range(length)]
    with torch.no_grad():
        for i in range(24):
            step(positions[i])
        cxxinductor.wait_for_compiles()
        rates = []
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for i in range(24, 24 + steps):
                step(positions[i])
            torch.cuda.synchronize()
            rates.append(steps / (time.perf_counter() - start))
    return statistics.median(rates)


def decode_row(length=1024, steps=64):
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = tf.LlamaForCausalLM(llama()).to("cuda", torch.bfloat16).eval().requires_grad_(False)
    row = {"model": "Llama-1B shape", "tokens_per_second": {}, "failed": {}}
    for name in BACKENDS:
        cxxinductor.reset_counters()
        try:
            row["tokens_per_second"][name] = decode_rate(model, name, length, steps)
        except Exception as error:  # one broken backend must not hide the others' figures
            row["failed"][name] = str(error)[:2000]
            print(f"decode, {name}: FAILED {str(error)[:600]}", flush=True)
            continue
        print(f"decode, {name}: {row['tokens_per_second'][name]:.1f} tokens/s", flush=True)
        if name == "cxxinductor graphs":
            row["counters"] = graph_counters()
    print(row, flush=True)
    return row


def print_kernels(candidates, count, calls=3):
    """The kernels with the most GPU time, of a call of each: microseconds, launches, name; and what is left."""
    for backend, fn in candidates.items():
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            for _ in range(calls):
                fn()
            torch.cuda.synchronize()
        microseconds, launches = collections.Counter(), collections.Counter()
        for event in profiler.events():
            if event.device_type == torch.autograd.DeviceType.CUDA:
                microseconds[event.name] += event.device_time / calls
                launches[event.name] += 1 / calls
        top = microseconds.most_common(count)
        print(f"  {backend}: {microseconds.total():.0f} us in {launches.total():.0f} kernels, {microseconds.total() - sum(time for _, time in top):.0f} us beside these")
        for kernel, time_of_it in top:
            print(f"    {time_of_it:9.1f} {launches[kernel]:6.1f} {kernel[:150]}", flush=True)


RUNS = 3


def timed(candidates, **settings):
    """Milliseconds of interleaved runs, one after the other, and the median of each candidate's."""
    runs = [interleaved(candidates, repeats=20, **settings) for _ in range(RUNS)]
    return {"milliseconds": {name: statistics.median(run[name] for run in runs) for name in candidates}, "runs": runs}


def inference_row(name, kernels):
    torch.manual_seed(0)
    model, inputs = INFERENCE[name]()
    model = model.to("cuda", torch.bfloat16).eval().requires_grad_(False)
    row = {"model": name}
    candidates, wanted = {}, None
    with torch.no_grad():
        for backend in BACKENDS:
            start = time.perf_counter()
            run = compiled(model, backend)

            def fn(run=run):
                torch.compiler.cudagraph_mark_step_begin()
                out = run(**inputs)
                return out if isinstance(out, torch.Tensor) else out[0]

            if backend == "cxxinductor":
                wanted = fn().clone()
            cxxinductor.reset_counters()
            for _ in range(6):
                out = fn()
            cxxinductor.wait_for_compiles()
            for _ in range(4):
                out = fn()
            if backend == "cxxinductor graphs":
                row["counters"] = graph_counters()
                row["equal_without_graphs"] = wanted is None or bool(torch.equal(out, wanted))
            candidates[backend] = fn
            tell_ready(name, backend, start)
        row.update(timed(candidates))
        row["peak_bytes"] = {k: peak_memory(fn) for k, fn in candidates.items()}
        if kernels:
            print_kernels(candidates, kernels)
    return row


def training_row(name, kernels):
    torch.manual_seed(0)
    model, loss_of = TRAINING_MODELS[name]()
    model = model.cuda().train()
    row = {"model": name}
    steps = {}
    for backend in BACKENDS:
        start = time.perf_counter()
        run = compiled(model, backend)

        def step(run=run):
            torch.compiler.cudagraph_mark_step_begin()
            with torch.autocast("cuda", torch.bfloat16):
                loss = loss_of(run)
            loss.backward()
            model.zero_grad(set_to_none=True)
            return loss.detach()

        cxxinductor.reset_counters()
        for _ in range(6):
            step()
        cxxinductor.wait_for_compiles()
        for _ in range(4):
            step()
        if backend == "cxxinductor graphs":
            row["counters"] = graph_counters()
        steps[backend] = step
        tell_ready(name, backend, start)
    # Memory lies elsewhere when backends take turns: recordings are made for that, too, before time is taken.
    row.update(timed(steps, warmup=20))
    row["peak_bytes"] = {k: peak_memory(step) for k, step in steps.items()}
    if kernels:
        print_kernels(steps, kernels)
    return row


def measured_rows(names, measure, kernels):
    for name in names:
        try:
            row = measure(name, kernels)
        except Exception as error:  # one broken model must not hide the others' figures
            row = {"model": name, "error_message": str(error)[:2000]}
        else:
            t = row["milliseconds"]
            ratio = t["reduce-overhead"] / t["cxxinductor graphs"] if {"reduce-overhead", "cxxinductor graphs"} <= set(t) else math.nan
            least = min(run["reduce-overhead"] / run["cxxinductor graphs"] for run in row["runs"]) if ratio == ratio else math.nan
            print(f"{name:<20} " + "  ".join(f"{k} {v:.2f}" for k, v in t.items()) + f" ms; graphs vs reduce-overhead "
                  f"{ratio:.2f}x, least of {RUNS} runs {least:.2f}x; {row.get('counters')}; {row.get('equal_without_graphs', '')} peak MB "
                  f"{ {k: v >> 20 for k, v in row['peak_bytes'].items()} }", flush=True)
        if "error_message" in row:
            print(f"{name}: FAILED {row['error_message'][:600]}", flush=True)
        yield row


def geomean(rows):
    ratios = [r["milliseconds"]["reduce-overhead"] / r["milliseconds"]["cxxinductor graphs"] for r in rows
              if {"reduce-overhead", "cxxinductor graphs"} <= set(r.get("milliseconds", {}))]
    return statistics.geometric_mean(ratios) if ratios else math.nan


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--parts", default="host,decode,inference,training")
    parser.add_argument("--only", default="", help="comma-separated names of models")
    parser.add_argument("--backends", default=",".join(BACKENDS), help="comma-separated; the geometric means need reduce-overhead")
    parser.add_argument("--kernels", type=int, default=0, help="kernels to print of each model and backend")
    parser.add_argument("--keep", action="store_true", help="beside what is measured, keep what the JSON has")
    args = parse_for_cuda(parser)
    backends = args.backends.split(",")
    if unknown := set(backends) - set(BACKENDS):
        parser.error(f"--backends: expected some of {', '.join(BACKENDS)}, found {', '.join(sorted(unknown))}")
    for name in set(BACKENDS) - set(backends):
        del BACKENDS[name]
    parts, only = args.parts.split(","), [name for name in args.only.split(",") if name]
    results = load("graphs", args.out) if args.keep else {}
    if "host" in parts:
        results["host"] = host_rows()
    if "decode" in parts:
        results["decode"] = decode_row()
    for part, models, measure in (("inference", INFERENCE, inference_row), ("training", TRAINING_MODELS, training_row)):
        if part not in parts:
            continue
        rows = results.get(part, {}).get("rows", [])
        found = {row["model"]: row for row in rows}
        for row in measured_rows([name for name in models if not only or name in only], measure, args.kernels):
            if "peak_bytes" in row:  # bytes do not depend on what else ran
                row["peak_bytes"] = {**found.get(row["model"], {}).get("peak_bytes", {}), **row["peak_bytes"]}
            found[row["model"]] = row
            rows = [found[name] for name in models if name in found]
            results[part] = {"rows": rows, "geomean_vs_reduce_overhead": geomean(rows)}
            save("graphs", results, args.out)  # this takes long, and may be cut short
        print(f"{part}: geomean against reduce-overhead {geomean(rows):.3f}x", flush=True)
    save("graphs", results, args.out)


if __name__ == "__main__":
    main()
