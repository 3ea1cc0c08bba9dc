"""Where the second process of a run spends the start of it: DistilGPT2, inference or a training step, caches on disk filled by a first process.

Usage: second_process.py [--device cpu|cuda] [--rounds N] [--out DIR]

first_call: seconds of the first call of the compiled model (training: forward, backward and the gradients' copies), everything included.
dynamo: tracing, guards and the run itself, that is all but the backend. backend_seconds: the rest; of cxxinductor aot: AOTAutograd, prepare: what is
done to Dynamo's graph before it, look_up: the key of AOTAutograd's result and the reading of it, own: from the graphs that AOTAutograd hands
over, or their calls, to loaded kernels. Stages of own are below it; those of the backward graph run on another thread, for which own waits.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import torch
from timing import argument_parser, save

CHILD = """
import json, sys, time, torch, transformers as tf
backend, kind, device, stages = sys.argv[1:]
torch.manual_seed(0)
size = {"n_layer": 6} if device == "cuda" else {"n_layer": 6, "n_embd": 96, "n_head": 4, "vocab_size": 512, "bos_token_id": 0, "eos_token_id": 0}
dtype = torch.bfloat16 if device == "cuda" else torch.float32
config = tf.GPT2Config(**size)
model = tf.GPT2LMHeadModel(config).to(device, dtype).requires_grad_(kind == "training").train(False)
tokens = torch.randint(0, config.vocab_size, (16, 512) if device == "cuda" else (2, 32), device=device)
synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None

def step(module):
    with torch.set_grad_enabled(kind == "training"):
        out = module(tokens, use_cache=False, labels=tokens)
    if kind == "training":
        out.loss.backward()
    synchronize()

class Spans:  # seconds by name, without what is inside of another name's
    def __init__(self):
        self.seconds, self.open = {}, 0.0
    def around(self, name, run):
        def timed(*args, **kwargs):
            outer, self.open = self.open, 0.0
            start = time.perf_counter()
            try:
                return run(*args, **kwargs)
            finally:
                total = time.perf_counter() - start
                self.seconds[name] = self.seconds.get(name, 0.0) + total - self.open
                self.open = outer + total
        return timed

step(model)
result, spans = {"stages": {}}, Spans()
if backend == "cxxinductor":
    import cxxinductor
    from cxxinductor import attention, backend as ours, config as settings, graph_cache, input_versions
    for name, owner, function in (
        ("look_up", graph_cache, "_load"), ("own", ours, "compile_aot_graph"), ("own", ours, "load_aot_graph"), ("own", ours, "_finish"),
        ("prepare", attention, "make_masks_contiguous"), ("prepare", input_versions, "mark"), ("prepare", settings, "resolve"),
    ):
        setattr(owner, function, spans.around(name, getattr(owner, function)))
    found = []
    if stages:
        listening = cxxinductor.reports.collect()
        found = listening.__enter__()
    run = ours.cxxinductor
else:
    run = torch._dynamo.lookup_backend(backend)
run = spans.around("aot", run)
compiled = torch.compile(model, backend=run, dynamic=False)
start = time.perf_counter()
step(compiled)
result["first_call"] = time.perf_counter() - start
result.update(spans.seconds)
result["backend_seconds"] = sum(spans.seconds.values())
result["dynamo"] = result["first_call"] - result["backend_seconds"]
if backend == "cxxinductor":
    for report in found:
        for stage, seconds in report.details["times"]:
            result["stages"][stage] = result["stages"].get(stage, 0.0) + seconds
print("RESULT " + json.dumps(result))
"""


def first_call(backend, kind, device, cache, stages=False):
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor", "TRITON_CACHE_DIR": f"{cache}/triton",
                   "CXXINDUCTOR_CACHE_DIR": f"{cache}/cxxinductor"}
    done = subprocess.run([sys.executable, "-c", CHILD, backend, kind, device, "stages" if stages else ""], env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise RuntimeError(f"{backend}: {done.stderr[-2000:]}")
    return json.loads(lines[-1][len("RESULT "):])


def median_of(runs):
    """Of each number by itself; the runs have the same stages."""
    return {
        key: median_of([run.get(key, {}) for run in runs]) if isinstance(value, dict) else statistics.median(run.get(key, 0.0) for run in runs)
        for key, value in runs[0].items()
    }


def show(row):
    parts = ", ".join(f"{name} {row[name] * 1e3:.1f}" for name in ("dynamo", "backend_seconds", "aot", "prepare", "look_up", "own") if name in row)
    print(f"{row['backend']:<12} {row['kind']:<9} {row['cache']}: first call {row['first_call']:.3f} s (ms: {parts})", flush=True)
    for stage, seconds in row["stages"].items():
        print(f"    {stage:<24} {seconds * 1e3:8.2f} ms")


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--backends", nargs="*", default=["inductor", "cxxinductor"])
    parser.add_argument("--rounds", type=int, default=3, help="warm processes per row; medians are shown")
    args = parser.parse_args()
    rows = []
    machine = None if args.device == "cuda" else {"cpus": os.cpu_count(), "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as cache:
        for kind in ("inference", "training"):
            for backend in args.backends:
                for state, rounds in (("cold", 1), ("warm", args.rounds)):
                    found = median_of([first_call(backend, kind, args.device, cache) for _ in range(rounds)])
                    if state == "warm" and backend == "cxxinductor":  # in a process of its own, because reports take time
                        found["stages"] = first_call(backend, kind, args.device, cache, stages=True)["stages"]
                    rows.append({"backend": backend, "kind": kind, "cache": state, **found})
                    show(rows[-1])
                    save("second_process", {"unit": "seconds", "model": f"DistilGPT2 on {args.device}", "rows": rows}, args.out, machine)


if __name__ == "__main__":
    main()
