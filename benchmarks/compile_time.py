"""Compile time of DistilGPT2 in fresh processes: cold caches, then warm.

Usage: compile_time.py [--out DIR] [--cold N] [--warm N] [--device cuda|cpu] [--no-inductor | --against FOLDER]

first_call: seconds of the first call of the compiled model, everything included. own: our share, from the graph that
AOTAutograd hands over to the loaded kernels. `runs` has all processes of a row; the row itself is the one whose own share, for Inductor
whose first call, is smallest.

--against: compares with another build, whose package cxxinductor FOLDER has; without Inductor. On many machines one process is nearly twice as slow as the
next, PyTorch's own part included, so a process of each build runs at the same time, on one half of the cores each, and the halves are swapped from pair to
pair: what counts is the ratio of our shares, as the median of many pairs (--cold 20 --warm 20). They go into compile_time_against.json, which no table shows.
--device cpu: the same graph of tiny sizes, into compile_time_cpu.json, which no table shows. Warm, it takes the same steps but for loading the kernels.
"""

import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import add_no_inductor, argument_parser, chosen_backends, parse_for_cuda, save

# On `device`.
MODEL = """
import torch, transformers as tf
torch.manual_seed(0)
cuda = device == "cuda"
shape, config = ((16, 512), {}) if cuda else ((2, 64), {"n_embd": 64, "n_head": 4, "vocab_size": 500, "bos_token_id": 0, "eos_token_id": 0})
model = tf.GPT2LMHeadModel(tf.GPT2Config(n_layer=6, **config)).to(device, torch.bfloat16 if cuda else torch.float32).eval().requires_grad_(False)
tokens = torch.randint(0, model.config.vocab_size, shape, device=device)
"""

CHILD = (
    """
import json, os, sys, time
backend, device, package, cpus = sys.argv[1:]
os.sched_setaffinity(0, json.loads(cpus))
if package:
    sys.path.insert(0, package)
"""
    + MODEL
    + """
wait = torch.cuda.synchronize if cuda else lambda: None
result = {"own": None, "stages": None}
with torch.no_grad():
    model(tokens, use_cache=False)
    if backend == "cxxinductor":
        import cxxinductor
        result["package"] = cxxinductor.__file__
        listening = cxxinductor.reports.collect()
        found = listening.__enter__()
    compiled = torch.compile(model, backend=backend, dynamic=False)
    wait()
    start = time.perf_counter()
    compiled(tokens, use_cache=False)
    wait()
    result["first_call"] = time.perf_counter() - start
if backend == "cxxinductor":
    result["stages"] = [list(stage) for report in found for stage in report.details["times"]]
    result["own"] = sum(seconds for _, seconds in result["stages"])
print("RESULT " + json.dumps(result))
"""
)


def add_against(parser):
    parser.add_argument("--against", metavar="FOLDER", default="", help="where another build's package lies")


def package_of(parser, arguments):
    """Where the package of --against is found."""
    if not os.path.isdir(os.path.join(arguments.against, "cxxinductor")):
        parser.error(f"--against: no folder cxxinductor in {arguments.against}")
    return os.path.abspath(arguments.against)


def first_call(candidate, cache, device, package, cpus):
    folder = os.path.join(cache, candidate)
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "TRITON_CACHE_DIR": f"{folder}/triton",
                   "CXXINDUCTOR_CACHE_DIR": f"{folder}/cxxinductor"}
    backend = "inductor" if candidate == "inductor" else "cxxinductor"
    done = subprocess.run([sys.executable, "-c", CHILD, backend, device, package, json.dumps(cpus)], env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise RuntimeError(f"{candidate}: {done.stderr[-2000:]}")
    return json.loads(lines[-1][len("RESULT "):])


def halves(cpus):
    """Hardware threads of one core stay together. Without the middle core where their number is odd."""
    cores = {}
    for cpu in cpus:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(siblings.read_text() if siblings.exists() else cpu, []).append(cpu)
    half = len(cores) // 2
    ordered = list(cores.values())
    return (sum(ordered[:half], []), sum(ordered[-half:], [])) if half else (cpus, cpus)


def run_pair(packages, turn, cache, device):
    """A process of each of two builds, at the same time."""
    with concurrent.futures.ThreadPoolExecutor() as threads:
        started = {candidate: threads.submit(first_call, candidate, cache, device, package, cpus)
                   for (candidate, package), cpus in zip(packages.items(), halves(all_cpus())[:: 1 if turn % 2 == 0 else -1])}
    return {candidate: process.result() for candidate, process in started.items()}


def all_cpus():
    return sorted(os.sched_getaffinity(0))


def ratio_of(runs):
    """Of our share in `cxxinductor` to that in `against`, pair by pair."""
    return statistics.median(ours["own"] / other["own"] for ours, other in zip(runs["cxxinductor"], runs["against"]))


def row_of(candidate, state, runs):
    return {"backend": candidate, "cache": state, **min(runs, key=lambda run: run["own"] or run["first_call"]), "runs": runs}


def share_of(runs):
    own = [run["own"] * 1e3 for run in runs if run["own"] is not None]
    if len(own) == 1:
        return f", our share after AOTAutograd {own[0]:.2f} ms"
    return f", our share after AOTAutograd {min(own):.2f} ms at least, median {statistics.median(own):.2f} ms" if own else ""


def print_runs(candidate, state, runs, which=""):
    first_call = min(run["first_call"] for run in runs)
    print(f"{candidate:<12} {state}{which}: first call {first_call:.2f} s{share_of(runs)}", flush=True)


def at_least_one(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected at least 1")
    return number


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--cold", type=at_least_one, default=1, help="cold processes of each backend")
    parser.add_argument("--warm", type=at_least_one, default=1, help="warm processes of each backend")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    add_against(parser)
    add_no_inductor(parser)
    args = parse_for_cuda(parser)
    if args.against:
        packages = {"cxxinductor": "", "against": package_of(parser, args)}
    else:
        packages = {backend: "" for backend in chosen_backends(args, ("inductor", "cxxinductor"))}
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for state, times in (("cold", args.cold), ("warm", args.warm)):
            runs = {candidate: [] for candidate in packages}
            for turn in range(times):
                folder = os.path.join(cache, str(turn if state == "cold" else 0))
                if args.against:
                    found = run_pair(packages, turn, folder, args.device)
                else:
                    found = {candidate: first_call(candidate, folder, args.device, package, all_cpus()) for candidate, package in packages.items()}
                for candidate, run in found.items():
                    runs[candidate].append(run)
                    print_runs(candidate, state, [run], f" {turn + 1}/{times}")
            if times > 1:
                for candidate, found in runs.items():
                    print_runs(candidate, state, found)
            if args.against:
                print(f"our share / against {state}: {ratio_of(runs):.3f}, median of {times} pairs", flush=True)
            rows += [row_of(candidate, state, found) for candidate, found in runs.items()]
    results = {"unit": "seconds", "model": "DistilGPT2 16x512 bf16" if args.device == "cuda" else "DistilGPT2, tiny", "rows": rows}
    name = "compile_time" + ("_cpu" if args.device == "cpu" else "") + ("_against" if args.against else "")
    save(name, results, args.out, {"cpus": os.cpu_count()} if args.device == "cpu" else None)


if __name__ == "__main__":
    main()
