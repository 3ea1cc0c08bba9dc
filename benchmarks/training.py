"""Training steps of whole models: eager, Inductor, cxxinductor in one process, interleaved. Usage: training.py [--out DIR] [--only NAME]

A step is forward, loss and backward under bf16 autocast with f32 parameters; the optimiser is not part of it.
"""

import time

import timm
import torch
import torch.nn.functional as F
import transformers as tf
from models import add_device_work, geomean_vs_inductor, versus_inductor
from timing import add_no_inductor, argument_parser, chosen_backends, interleaved, parse_for_cuda, save

import cxxinductor

BACKENDS = ("inductor", "cxxinductor")


def language(model_class, config, batch, length):
    model = model_class(config)
    tokens = torch.randint(0, config.vocab_size, (batch, length), device="cuda")
    options = {} if isinstance(config, tf.BertConfig) else {"use_cache": False}
    return model, lambda run: run(input_ids=tokens, labels=tokens, **options).loss


def vision(name, batch):
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    return timm.create_model(name), lambda run: F.cross_entropy(run(images), labels)


MODELS = {
    "distilgpt2": lambda: language(tf.GPT2LMHeadModel, tf.GPT2Config(n_layer=6), 16, 512),
    "bert_base": lambda: language(tf.BertForMaskedLM, tf.BertConfig(), 16, 512),
    "blenderbot_small": lambda: language(tf.BlenderbotSmallForCausalLM, tf.BlenderbotSmallConfig(), 16, 128),
    "resnet50": lambda: vision("resnet50", 64),
    "vit_base": lambda: vision("vit_base_patch16_224", 32),
}


def peak_megabytes(step):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**20


def measure(name, backends):
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, loss_of = MODELS[name]()
    model = model.cuda().train()

    def stepper(run):
        def step():
            with torch.autocast("cuda", torch.bfloat16):
                loss = loss_of(run)
            loss.backward()
            model.zero_grad(set_to_none=True)
            return loss.detach()

        return step

    row = {"model": name, "first_call_seconds": {}}
    steps = {"eager": stepper(model)}
    steps["eager"]()
    for backend in backends:
        torch._dynamo.reset()
        cxxinductor.reset_counters()
        steps[backend] = stepper(torch.compile(model, backend=backend, dynamic=False))
        torch.cuda.synchronize()
        start = time.perf_counter()
        with cxxinductor.reports.collect() as reports:
            steps[backend]()
            torch.cuda.synchronize()
        row["first_call_seconds"][backend] = time.perf_counter() - start
        if backend == "cxxinductor":
            row["counters"] = cxxinductor.counters()
            row["planned_memory"] = [(g.kind, g.details["memory"]) for g in reports]
    row["milliseconds"] = interleaved(steps, repeats=10, warmup=3)
    row["peak_megabytes"] = {k: peak_megabytes(step) for k, step in steps.items()}
    row["loss"] = {k: step().item() for k, step in steps.items()}
    add_device_work(row, steps)
    return row


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--only", default="", help="comma-separated model names")
    add_no_inductor(parser)
    args = parse_for_cuda(parser)
    backends = chosen_backends(args, BACKENDS)
    rows = []
    for name in args.only.split(",") if args.only else MODELS:
        try:
            rows.append(row := measure(name, backends))
        except Exception as error:  # one broken model must not hide the others' figures
            rows.append({"model": name, "error_message": str(error)[:2000]})
            print(f"{name}: FAILED {str(error)[:500]}", flush=True)
            continue
        t, m = row["milliseconds"], row["peak_megabytes"]
        print(f"{name:<18} " + "  ".join(f"{k} {t[k]:.2f} ms {m[k]:.0f} MB" for k in t) + versus_inductor(t) + f"; own kernels {row['own_kernels']}; on the device {', '.join(f'{k} {ms:.2f} ms' for k, ms in row['device_milliseconds'].items())}; first call {row['first_call_seconds']}; loss {row['loss']}; {row['counters']}", flush=True)
    save("training", {"rows": rows, **geomean_vs_inductor(rows)}, args.out)


if __name__ == "__main__":
    main()
