"""Compile time of DistilGPT2 in fresh processes: cold caches, then warm. Usage: compile_time.py [--out DIR] [--warm N]

first_call: seconds of the first call of the compiled model, everything included. own: our share, from the graph that
AOTAutograd hands over to the loaded kernels. `runs` has all processes of a row; the row itself is the one whose own share, for Inductor
whose first call, is smallest.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import add_no_inductor, argument_parser, chosen_backends, parse_for_cuda, save

CHILD = """
import json, sys, time, torch, transformers as tf
backend = sys.argv[1]
torch.manual_seed(0)
model = tf.GPT2LMHeadModel(tf.GPT2Config(n_layer=6)).to("cuda", torch.bfloat16).eval().requires_grad_(False)
tokens = torch.randint(0, 50257, (16, 512), device="cuda")
result = {"own": None, "stages": None}
with torch.no_grad():
    model(tokens, use_cache=False)
    if backend == "cxxinductor":
        import cxxinductor
        listening = cxxinductor.reports.collect()
        found = listening.__enter__()
    compiled = torch.compile(model, backend=backend, dynamic=False)
    torch.cuda.synchronize()
    start = time.perf_counter()
    compiled(tokens, use_cache=False)
    torch.cuda.synchronize()
    result["first_call"] = time.perf_counter() - start
if backend == "cxxinductor":
    result["stages"] = [list(stage) for report in found for stage in report.details["times"]]
    result["own"] = sum(seconds for _, seconds in result["stages"])
print("RESULT " + json.dumps(result))
"""


def first_call(backend, cache):
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor", "TRITON_CACHE_DIR": f"{cache}/triton",
                   "CXXINDUCTOR_CACHE_DIR": f"{cache}/cxxinductor"}
    done = subprocess.run([sys.executable, "-c", CHILD, backend], env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise RuntimeError(f"{backend}: {done.stderr[-2000:]}")
    return json.loads(lines[-1][len("RESULT "):])


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--warm", type=int, default=1, help="warm processes of each backend")
    add_no_inductor(parser)
    args = parse_for_cuda(parser)
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for state in ("cold", "warm"):
            for backend in chosen_backends(args, ("inductor", "cxxinductor")):
                runs = [first_call(backend, cache) for _ in range(args.warm if state == "warm" else 1)]
                rows.append({"backend": backend, "cache": state, **min(runs, key=lambda run: run["own"] or run["first_call"]), "runs": runs})
                own = "" if rows[-1]["own"] is None else f", our share after AOTAutograd {rows[-1]['own'] * 1e3:.2f} ms"
                print(f"{backend:<12} {state}: first call {rows[-1]['first_call']:.2f} s{own}", flush=True)
    save("compile_time", {"unit": "seconds", "model": "DistilGPT2 16x512 bf16", "rows": rows}, args.out)


if __name__ == "__main__":
    main()
