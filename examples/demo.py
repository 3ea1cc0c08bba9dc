"""Compiles a real transformer with torch.compile(backend="cxxinductor") and shows speed against eager, the error, the kernels;
then trains it for a few steps and plots loss and time of a step beside eager's, to demo_training.png and to the terminal.

On a GPU: full-size DistilGPT2 in bf16, batch 16 x 512 tokens. Without one: the same model in f32, batch 1 x 128 tokens.
The weights are random: nothing is downloaded. Usage: demo.py [--device cpu|cuda]
"""

import argparse
import copy
import statistics
import time

import torch
import transformers

import cxxinductor


def interleaved_milliseconds(functions, device, repeats):
    """The median of each, called in turn, so that clocks and other work on the machine affect all alike."""
    finish = torch.cuda.synchronize if device == "cuda" else lambda: None
    times = [[] for _ in functions]
    for _ in range(repeats):
        for fn, found in zip(functions, times):
            finish()
            start = time.perf_counter()
            fn()
            finish()
            found.append((time.perf_counter() - start) * 1e3)
    return [statistics.median(found) for found in times]


def training_steps(model, tokens, run):
    """Yields (loss, milliseconds) of each step of a training without end; the first compiles."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    device = tokens.device.type
    while True:
        start = time.perf_counter()
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = run(model, tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item(), (time.perf_counter() - start) * 1e3


def show_training(config, device, batch, length, steps=12):
    torch.manual_seed(0)
    # Without dropout both runs are the same computation, so that their losses can be compared.
    config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0.0
    model = transformers.GPT2LMHeadModel(config).to(device)
    tokens = torch.randint(0, config.vocab_size, (batch, length), device=device)
    loss_of = lambda m, ids: m(ids, labels=ids, use_cache=False).loss  # noqa: E731
    print(f"\ntraining {steps} steps, batch {batch} x {length} ...", flush=True)
    runs = {"eager": loss_of, "cxxinductor": torch.compile(loss_of, backend="cxxinductor")}
    # From the same weights, a step of each in turn.
    trainings = [training_steps(copy.deepcopy(model), tokens, run) for run in runs.values()]
    found = dict(zip(runs, zip(*([next(training) for training in trainings] for _ in range(steps)))))
    print("step   " + "".join(f"{name:>24}" for name in found))
    for step in range(steps):
        print(f"{step:4}   " + "".join(f"{f'{h[step][0]:.4f} in {h[step][1]:.0f} ms':>24}" for h in found.values()))
    later = {name: statistics.median(ms for _, ms in history[2:]) for name, history in found.items()}
    print(f"a step takes {later['eager']:.1f} ms in eager, {later['cxxinductor']:.1f} ms compiled: {later['eager'] / later['cxxinductor']:.2f}x")
    plot(found)


def plot(found):
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("for a plot, pip install matplotlib")
        return
    figure, (losses, times) = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for (name, history), style in zip(found.items(), ("-", "--")):
        losses.plot([loss for loss, _ in history], style, label=name)
        times.plot(range(1, len(history)), [ms for _, ms in history[1:]], style, label=name)
    for axes, title in ((losses, "loss"), (times, "milliseconds a step, without the first")):
        axes.set(xlabel="step", title=title)
        axes.legend()
    times.set_ylim(bottom=0)
    figure.savefig("demo_training.png", dpi=120)
    print("wrote demo_training.png")


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
        eager_ms, our_ms = interleaved_milliseconds([lambda: run(model), lambda: compiled(model)], device, repeats)
        print(f"eager {eager_ms:.2f} ms, cxxinductor {our_ms:.2f} ms: {eager_ms / our_ms:.2f}x")
    del model, ours, eager, reference, compiled
    show_training(config, device, *((batch, length) if gpu else (1, 64)))


if __name__ == "__main__":
    main()
