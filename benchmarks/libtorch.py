"""Models from C++ without Python: cxxinductor beside AOTInductor's runtime and eager LibTorch. Usage: libtorch.py [--out DIR] [--only NAME]

Exports each model, builds it with AOTInductor, packages it, and runs build/release/tests/libtorch_benchmark (or --program FILE), which
`cmake --build build/release --target libtorch_benchmark` makes:
- loads: each way in fresh processes, with cold and warm caches, packages trusted and not, and without waiting for the compiler;
- calls: medians in turns in one process; chains of 1, 10 and 50 kernels for the host's time of a call;
- cxxinductor.load beside torch.compile(backend="cxxinductor") in turns in this process.
"""

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import timm
import torch
import transformers as tf
from host import chain
from timing import argument_parser, interleaved, parse_for_cuda, save

import cxxinductor

PROGRAM = Path(__file__).resolve().parent.parent / "build" / "release" / "tests" / "libtorch_benchmark"
FRESH_PROCESSES = 3
LOADED = ("resnet50", "distilgpt2")  # whose loads are measured


class Logits(torch.nn.Module):
    """A model of transformers as a function of tokens to its first result."""

    def __init__(self, model, **arguments):
        super().__init__()
        self.model = model
        self.arguments = arguments

    def forward(self, tokens):
        return self.model(input_ids=tokens, return_dict=False, **self.arguments)[0]


class Chain(torch.nn.Module):
    """Kernels that cannot be fused (host.py)."""

    def __init__(self, count):
        super().__init__()
        self.run = chain(count) if count > 1 else lambda x: x.sin() + 1

    def forward(self, x):
        return self.run(x)


def tokens(batch, length, vocabulary):
    return torch.randint(0, vocabulary, (batch, length), device="cuda")


def images(batch):
    return torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.bfloat16)


MODELS = {
    "resnet50": lambda: (timm.create_model("resnet50"), images(64)),
    "distilgpt2": lambda: (Logits(tf.GPT2LMHeadModel(tf.GPT2Config(n_layer=6)), use_cache=False), tokens(16, 512, 50257)),
    "bert_base": lambda: (Logits(tf.BertForMaskedLM(tf.BertConfig())), tokens(16, 512, 30522)),
    "vit_base": lambda: (timm.create_model("vit_base_patch16_224"), images(32)),
    "1 kernel": lambda: (Chain(1), torch.randn(64, 64, device="cuda")),
    "10 kernels": lambda: (Chain(10), torch.randn(64, 64, device="cuda")),
    "50 kernels": lambda: (Chain(50), torch.randn(64, 64, device="cuda")),
}


def make_files(name, folder):
    """The model and its input; its files in the folder; seconds that AOTInductor and the package took."""
    torch.manual_seed(0)
    model, x = MODELS[name]()
    model = model.to("cuda", x.dtype if x.is_floating_point() else torch.bfloat16).eval().requires_grad_(False)
    torch.save([x], folder / "inputs.pt")
    torch.jit.trace(model, (x,), check_trace=False).save(str(folder / "traced.pt"))
    exported = torch.export.export(model, (x,), strict=False)
    torch.export.save(exported, folder / "exported.pt2")
    start = time.perf_counter()
    torch._inductor.aoti_compile_and_package(exported, package_path=str(folder / "aoti.pt2"))
    built = time.perf_counter() - start
    start = time.perf_counter()
    cxxinductor.package(exported, str(folder / "package.cxxi"))
    return model, x, {"aoti": built, "package": time.perf_counter() - start}


def run(program, command, folder, cache, environment=None, repeats=None, **files):
    arguments = [str(program), command, "--inputs", str(folder / "inputs.pt")]
    for way, file in files.items():
        arguments += [f"--{way}", str(folder / file)]
    if repeats:
        arguments += ["--repeats", str(repeats)]
    variables = {**os.environ, "CXXINDUCTOR_CACHE_DIR": str(cache), **(environment or {})}
    done = subprocess.run(arguments, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def medians(rows):
    return {key: statistics.median(row[key] for row in rows) for key in ("load", "first_call", "second_call")}


def loads(program, folder):
    """Seconds to load and of the first calls, medians over fresh processes. Only the first of a cache is cold."""

    def fresh(cache=None, environment=None, **files):
        rows = []
        for _ in range(FRESH_PROCESSES):
            with tempfile.TemporaryDirectory() as empty:
                rows.append(run(program, "first", folder, cache or empty, environment, **files))
        return medians(rows)

    with tempfile.TemporaryDirectory() as warm:
        run(program, "first", folder, warm, exported="exported.pt2")
        return {
            "cxxinductor, cold": fresh(exported="exported.pt2"),
            "cxxinductor, warm": fresh(warm, exported="exported.pt2"),
            "cxxinductor, wait off": fresh(environment={"CXXINDUCTOR_WAIT": "0"}, exported="exported.pt2"),
            "package, trusted": fresh(environment={"CXXINDUCTOR_TRUST": "1"}, exported="package.cxxi"),
            "package, untrusted": fresh(exported="package.cxxi"),
            "aoti": fresh(aoti="aoti.pt2"),
            "eager": fresh(traced="traced.pt"),
        }


def beside_compile(model, x, folder):
    """Milliseconds of calls in this process: the loaded model and torch.compile of the module."""
    torch._dynamo.reset()
    loaded = cxxinductor.load(str(folder / "exported.pt2"))
    compiled = torch.compile(model, backend="cxxinductor", dynamic=False)
    candidates = {"load": lambda: loaded.run(x), "torch.compile": lambda: compiled(x)}
    with torch.no_grad():
        return {"idle": interleaved(candidates), "device": interleaved(candidates, device_only=True)}


def measure(name, program):
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        model, x, built = make_files(name, folder)
        row = {"model": name, "build_seconds": built}
        is_chain = isinstance(model, Chain)
        if name in LOADED:
            row["loads"] = loads(program, folder)
        if not is_chain:
            row["beside_compile_milliseconds"] = beside_compile(model, x, folder)
        del model
        torch.cuda.empty_cache()
        row["calls"] = run(program, "compare", folder, folder / "cache", repeats=1000 if is_chain else 60,
                           exported="exported.pt2", aoti="aoti.pt2", traced="traced.pt")
    return row


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--only", default="", help="comma-separated model names")
    parser.add_argument("--program", type=Path, default=PROGRAM, help="libtorch_benchmark")
    args = parse_for_cuda(parser)
    rows = []
    for name in args.only.split(",") if args.only else MODELS:
        try:
            rows.append(measure(name, args.program))
        except Exception as error:  # one broken model must not hide the others' figures
            rows.append({"model": name, "error_message": str(error)[:2000]})
        print(rows[-1], flush=True)
        save("libtorch", {"rows": rows}, args.out)


if __name__ == "__main__":
    main()
