"""Compiles a real transformer with torch.compile(backend="cxxinductor") and shows speed against eager, the error, the kernels.

On a GPU: full-size DistilGPT2 in bf16, batch 16 x 512 tokens. Without one: the same model in f32, batch 1 x 128 tokens.
The weights are random: nothing is downloaded. Usage: demo.py [--device cpu|cuda]
"""

import argparse
import statistics
import time

import torch
import transformers

import cxxinductor


def median_milliseconds(fn, device, repeats):
    times = []
    for _ in range(repeats):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        fn()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    gpu = device == "cuda"
    name = torch.cuda.get_device_name() if gpu else f"the CPU ({torch.get_num_threads()} threads)"
    dtype, batch, length = (torch.bfloat16, 16, 512) if gpu else (torch.float32, 1, 128)

    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=6)  # DistilGPT2: GPT-2's width, six layers
    model = transformers.GPT2LMHeadModel(config).to(device, dtype).eval().requires_grad_(False)
    tokens = torch.randint(0, config.vocab_size, (batch, length), device=device)
    run = lambda m: m(tokens, use_cache=False).logits  # noqa: E731
    parameters = sum(p.numel() for p in model.parameters()) / 1e6
    print(f"DistilGPT2 ({parameters:.0f} M parameters, {dtype}), batch {batch} x {length} tokens, on {name}")

    with torch.no_grad():
        print("compiling ...", flush=True)
        start = time.perf_counter()
        explanation = cxxinductor.explain(run, model)
        print(f"first call took {time.perf_counter() - start:.1f} s\n\n{explanation}\n")

        compiled = torch.compile(run, backend="cxxinductor")
        ours, eager = compiled(model), run(model)
        reference = run(model.double()) if not gpu else run(model.float())
        model.to(dtype)
        error = lambda x: ((x.double() - reference.double()).norm() / reference.double().norm()).item()  # noqa: E731
        print(f"error against {'f32' if gpu else 'f64'}: compiled {error(ours):.2e}, eager {error(eager):.2e}")

        compiled(model)
        repeats = 30 if gpu else 10
        eager_ms, our_ms = (median_milliseconds(lambda f=f: f(model), device, repeats) for f in (run, compiled))
        print(f"eager {eager_ms:.2f} ms, cxxinductor {our_ms:.2f} ms: {eager_ms / our_ms:.2f}x")


if __name__ == "__main__":
    main()
