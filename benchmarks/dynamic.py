"""A stream of 40 different (batch, length) pairs through one compile of DistilGPT2. Usage: dynamic.py [--out DIR]

For cxxinductor and Inductor with dynamic=True: compiles during the stream, and each size's time beside that of the same backend
compiled for it alone (Inductor's for every --every-th size, as its static compiles are slow). Twice: calls on an idle device, where what
the host does counts (Dynamo's work for symbolic sizes among it), and the time on the device alone.
"""

import random
import statistics

import torch
import transformers as tf
from timing import BACKWARD_SLEEP_CYCLES, argument_parser, interleaved, parse_for_cuda, save
from torch._dynamo.utils import counters

import cxxinductor

SIZES = 40


def stream():
    generator = random.Random(0)
    sizes = set()
    while len(sizes) < SIZES:
        sizes.add((generator.randint(2, 16), generator.randint(32, 512)))
    return sorted(sizes, key=lambda _: generator.random())


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--every", type=int, default=1, help="static compiles of Inductor for each so many sizes")
    args = parse_for_cuda(parser)
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1000  # for the static compiles
    torch.manual_seed(0)
    config = tf.GPT2Config(n_layer=6)
    model = tf.GPT2LMHeadModel(config).to("cuda", torch.bfloat16).eval().requires_grad_(False)
    tokens = {size: torch.randint(0, config.vocab_size, size, device="cuda") for size in stream()}
    run = lambda ids: model(input_ids=ids, use_cache=False).logits  # noqa: E731
    result = {"sizes": [list(size) for size in tokens], "backends": {}}
    with torch.no_grad():
        for backend in ("cxxinductor", "inductor"):
            torch._dynamo.reset()
            counters.clear()
            dynamic = torch.compile(run, backend=backend, dynamic=True)
            graphs = []
            for ids in tokens.values():
                dynamic(ids)
                graphs.append(counters["stats"]["unique_graphs"])
            cxxinductor.wait_for_compiles()
            rows = []
            for position, (size, ids) in enumerate(tokens.items()):
                runs = {"dynamic": lambda i=ids: dynamic(i)}
                if backend == "cxxinductor" or position % args.every == 0:
                    alone = torch.compile(lambda x: run(x), backend=backend, dynamic=False)
                    runs["static"] = lambda i=ids, alone=alone: alone(i)
                times = interleaved(runs, repeats=11, warmup=3)
                device = interleaved(runs, repeats=11, warmup=3, device_only=True, sleep_cycles=BACKWARD_SLEEP_CYCLES)
                rows.append({"size": list(size), "milliseconds": times, "device_milliseconds": device})
            result["backends"][backend] = {"graphs_after_first": graphs[0], "graphs_after_all": graphs[-1], "rows": rows}
            print(f"{backend}: {graphs[0]} graphs after the first size, {graphs[-1]} after {len(graphs)}", flush=True)
            for kind in ("milliseconds", "device_milliseconds"):
                slower = [row[kind]["dynamic"] / row[kind]["static"] - 1 for row in rows if "static" in row[kind]]
                print(f"  dynamic over static, {kind}: worst {max(slower):+.1%}, mean {sum(slower) / len(slower):+.1%} over {len(slower)} sizes")
    ours, theirs = (result["backends"][b]["rows"] for b in ("cxxinductor", "inductor"))
    ratios = [b["milliseconds"]["dynamic"] / a["milliseconds"]["dynamic"] for a, b in zip(ours, theirs)]
    result["geomean_vs_inductor_dynamic"] = statistics.geometric_mean(ratios)
    print(f"against Inductor dynamic=True: {result['geomean_vs_inductor_dynamic']:.2f}x (geometric mean)")
    save("dynamic", result, args.out)


if __name__ == "__main__":
    main()
