"""Where the second process of a run spends the start of it: DistilGPT2, inference or a training step, caches on disk filled by a first process.

Usage: second_process.py [--device cpu|cuda] [--rounds N] [--out DIR]

first_call: seconds of the first call of the compiled model (training: forward, backward and the gradients' copies), everything included.
dynamo: tracing, that is all but the backend. aot: AOTAutograd, or the reading of its result. own: from the graph that AOTAutograd hands over
to loaded kernels, or what loads them where AOTAutograd's result was read; its stages are below it.
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
backend, kind, device = sys.argv[1:]
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
    from cxxinductor import backend as ours
    ours.compile_dynamo_graph = spans.around("aot", ours.compile_dynamo_graph)
    ours.compile_aot_graph = spans.around("own", ours.compile_aot_graph)
    ours._load_aot_graph = spans.around("own", ours._load_aot_graph)
    listening = cxxinductor.reports.collect()
    found = listening.__enter__()
    run = cxxinductor.backend.cxxinductor
else:
    run = torch._dynamo.lookup_backend(backend)
    run = spans.around("aot", run)
compiled = torch.compile(model, backend=run, dynamic=False)
start = time.perf_counter()
step(compiled)
result["first_call"] = time.perf_counter() - start
result.update(spans.seconds)
result["dynamo"] = result["first_call"] - sum(spans.seconds.values())
if backend == "cxxinductor":
    for report in found:
        for stage, seconds in report.details["times"]:
            result["stages"][stage] = result["stages"].get(stage, 0.0) + seconds
print("RESULT " + json.dumps(result))
"""


def first_call(backend, kind, device, cache):
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor", "TRITON_CACHE_DIR": f"{cache}/triton",
                   "CXXINDUCTOR_CACHE_DIR": f"{cache}/cxxinductor"}
    done = subprocess.run([sys.executable, "-c", CHILD, backend, kind, device], env=environment, capture_output=True, text=True, check=False)
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
    own = f", aot {row['aot'] * 1e3:.0f}, own {row['own'] * 1e3:.1f}" if "own" in row else ""
    print(f"{row['backend']:<12} {row['kind']:<9} {row['cache']}: first call {row['first_call']:.3f} s (ms: dynamo {row['dynamo'] * 1e3:.0f}{own})", flush=True)
    for stage, seconds in row["stages"].items():
        print(f"    {stage:<24} {seconds * 1e3:8.2f} ms")


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--backends", nargs="*", default=["inductor", "cxxinductor"])
    parser.add_argument("--rounds", type=int, default=3, help="warm processes per row; medians are shown")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for kind in ("inference", "training"):
            for backend in args.backends:
                for state, rounds in (("cold", 1), ("warm", args.rounds)):
                    found = median_of([first_call(backend, kind, args.device, cache) for _ in range(rounds)])
                    rows.append({"backend": backend, "kind": kind, "cache": state, **found})
                    show(rows[-1])
    machine = None if args.device == "cuda" else {"cpus": os.cpu_count(), "torch": torch.__version__}
    save("second_process", {"unit": "seconds", "model": f"DistilGPT2 on {args.device}", "rows": rows}, args.out, machine)


if __name__ == "__main__":
    main()
