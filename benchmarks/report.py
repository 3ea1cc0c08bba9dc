"""Writes docs/benchmarks.md, its plots and the README's table from benchmarks/results/*.json. Usage: report.py [--root DIR]"""

import argparse
import json
from pathlib import Path
from statistics import geometric_mean


def table(columns, rows):
    """Lines of a table; columns are separated by bars."""
    yield f"| {columns} |"
    yield "|" + "---|" * (columns.count("|") + 1)
    for cells in rows:
        yield f"| {' | '.join(map(str, cells))} |"


def against_inductor(row):
    return row["milliseconds"]["inductor"] / row["milliseconds"]["cxxinductor"]


def compared(columns, rows, name, digits, more):
    """A table of times of eager, Inductor and cxxinductor with both ratios; more(row): further cells. Rows that failed say why."""

    def cells(row):
        if "milliseconds" not in row:
            return [row[name], f"failed: {row['error_message'][:60]}"]
        t = row["milliseconds"]
        times = [f"{t[backend]:.{digits}f}" for backend in COLOURS]
        return [row[name], *times, f"{against_inductor(row):.2f}x", f"{t['eager'] / t['cxxinductor']:.2f}x", *more(row)]

    return table(columns, map(cells, rows))


def first_calls(row):
    return f"{row['first_call_seconds']['inductor']:.1f} / {row['first_call_seconds']['cxxinductor']:.1f}"


def mean_of(rows):
    return geometric_mean([against_inductor(row) for row in rows if "milliseconds" in row])


def models(results):
    def more(row):
        t, own = row["milliseconds"], row["own_kernels"]
        frozen = f"{t['cxxinductor frozen']:.2f}" if "cxxinductor frozen" in t else ""
        return f"{own['inductor']} / {own['cxxinductor']}", first_calls(row), f"{t['cxxinductor'] / t['cxxinductor fast'] - 1:+.1%}", frozen

    yield from compared("model | eager (ms) | Inductor | cxxinductor | vs Inductor | vs eager | own kernels, Inductor / ours | first call (s), Inductor / ours | eager numerics cost | frozen (ms)", results["rows"], "model", 2, more)
    yield f"\nGeometric mean vs Inductor: {mean_of(results['rows']):.2f}x."


def training(results):
    def more(row):
        return " / ".join(f"{row['peak_megabytes'][backend]:.0f}" for backend in COLOURS), first_calls(row)

    yield from compared("model | eager (ms) | Inductor | cxxinductor | vs Inductor | vs eager | peak memory, eager / Inductor / ours (MB) | first step (s), Inductor / ours", results["rows"], "model", 2, more)
    yield f"\nGeometric mean vs Inductor: {mean_of(results['rows']):.2f}x."


def kernels(results):
    groups = {}
    for row in results["rows"]:
        groups.setdefault(" ".join(row["case"].split()[:2]), []).append(row["percent_of_copy"])

    def cells(name, rows):
        for backend in ("cxxinductor", "inductor", "eager"):
            if backend in rows[0]:
                shares = [row[backend] for row in rows]
                yield f"{min(shares):.0f}-{max(shares):.0f}" if len(rows) > 1 else f"{shares[0]:.0f}"

    yield from table("kernel, 64M elements (pointwise: 256 MB per tensor) | cxxinductor, % of copy | Inductor | eager",
                     ([name + (", N = 512..16k" if len(rows) > 1 else ""), *cells(name, rows)] for name, rows in groups.items()))


def optimizers(results):
    def cells(r):
        t = r["device_milliseconds"]
        times = [f"{t[k]:.3f}" if k in t else "" for k in ("cxxinductor", "fused", "foreach", "inductor")]
        return r["optimizer"], r["workload"], *times, f"{r['of_fused']:.2f}x", f"{r['percent_of_copy']['cxxinductor']:.0f}", r["launches"]

    yield from table("step | tensors | ours (ms on the device) | torch fused | torch foreach | Inductor | vs fused | % of copy | launches", map(cells, results["rows"]))


def training_kernels(results):
    yield from table("kernel, bf16 | cxxinductor, % of copy | Inductor | eager",
                     ([row["case"], *(f"{row['percent_of_copy'][k]:.1f}" for k in ("cxxinductor", "inductor", "eager"))] for row in results["rows"]))
    dropout = results["rows"][0]["milliseconds"]["cxxinductor"] / results["copy_of_elements_milliseconds"]
    yield f"\nDropout takes {dropout:.2f} times as long as torch's copy of the same elements."


def dynamic(results):
    ours, theirs = (results["backends"][b]["rows"] for b in ("cxxinductor", "inductor"))

    def cells(a, b):
        return f"{a['size'][0]} x {a['size'][1]}", *(f"{row[kind][form]:.2f}" for row in (a, b) for kind in ("milliseconds", "device_milliseconds") for form in ("dynamic", "static"))

    yield from table("batch x length | cxxinductor: dynamic (ms) | static | dynamic, device | static, device | Inductor: dynamic | static | dynamic, device | static, device",
                     (cells(a, b) for a, b in zip(ours, theirs) if "static" in b["milliseconds"]))
    for kind, what in (("device_milliseconds", "On the device"), ("milliseconds", "Calls on an idle device")):
        more = sorted(row[kind]["dynamic"] / row[kind]["static"] - 1 for row in ours)
        yield (f"\n{what}, ours takes {more[-1]:+.1%} at most and {sum(more) / len(more):+.1%} on average against a compile for the size alone "
               f"({sum(m <= 0.07 for m in more)} of {len(more)} sizes within 7 %).")
    graphs = {name: found["graphs_after_all"] for name, found in results["backends"].items()}
    yield f"\nGraphs compiled for all {len(results['sizes'])} sizes: {graphs['cxxinductor']} (Inductor: {graphs['inductor']})."


def host(results):
    columns = ("callable alone", "bound", "cxxinductor", "inductor", "eager")
    yield from table("case | own kernels | cuLaunchKernel alone (us) | callable alone | bound | through torch.compile | Inductor | eager",
                     ([r["case"], r["kernels"], f"{r['cuLaunchKernel']:.2f}", *(f"{r[k]:.1f}" for k in columns)] for r in results["rows"]))


def compile_time(results):
    yield from table("DistilGPT2, fresh process | first call (s) | our share after AOTAutograd",
                     ([f"{r['backend']}, {r['cache']} caches", f"{r['first_call']:.2f}", "" if r["own"] is None else f"{r['own']:.2f}"] for r in results["rows"]))


def densenet(results):
    names = {(6, 12, 24, 16): "densenet121", (6, 12, 64, 48): "densenet264d"}

    def cells(r):
        return (f"{names[tuple(r['blocks'])]}, {r['dtype']}, batch {r['batch']}", r["generalize_kernels"], r["kernels"], r["launches"],
                f"{r['fuse_and_plan_s']:.1f}", f"{r['compile_kernels_s']:.1f}", f"{r['first_step_s']:.1f}", f"{r['device_ms']:.2f}" if "device_ms" in r else "", f"{r['step_ms']:.2f}", r["peak_mb"])

    yield from table("training | generalize_kernels | kernels | launches | fuse and plan (s) | compile kernels (s) | first step (s) | step on the device (ms) | step (ms) | peak memory (MB)", map(cells, results))


def matmul_template(results):
    def cells(r):
        t = r["microseconds"]
        return (r["case"], r["size"], f"{t['library']:.1f}", f"{t['library + kernel']:.1f}", f"{t['template']:.1f}",
                f"{t['chosen']:.1f} ({r['choice']})", f"{r['behind']:+.1%}")

    yield from table("bf16 | m x n x k | library alone (us) | library + our kernel | template | chosen | slowdown vs best", map(cells, results["rows"]))


def libtorch(results):
    rows = [row for row in results["rows"] if "calls" in row]
    loaded = [row for row in rows if "loads" in row]
    yield from table("load and first call (s) | " + " | ".join(row["model"] for row in loaded),
                     ([way, *(f"{row['loads'][way]['load']:.3f} + {row['loads'][way]['first_call']:.2f}" for row in loaded)] for way in loaded[0]["loads"]))
    yield "\nBuilt by AOTInductor before, with Python and g++: " + ", ".join(f"{row['model']} {row['build_seconds']['aoti']:.0f} s" for row in loaded) + ".\n"

    def calls(row):
        done = row["calls"]["done"]
        beside = row["beside_compile_milliseconds"]["idle"]
        return (row["model"], *(f"{1e3 * done[way]:.2f}" for way in ("eager", "aoti", "cxxinductor")), f"{done['aoti'] / done['cxxinductor']:.2f}x",
                f"{done['eager'] / done['cxxinductor']:.2f}x", f"{beside['torch.compile'] / beside['load']:.2f}x")

    models = [row for row in rows if "beside_compile_milliseconds" in row]
    yield from table("call (ms) | eager LibTorch | AOTInductor | cxxinductor | vs AOTInductor | vs eager | vs our torch.compile", map(calls, models))
    for row in models:
        strides = row["calls"].get("strides", {})
        if strides and strides["aoti"] != strides["eager"]:
            yield f"\n{row['model']}: AOTInductor's result has strides {strides['aoti']}; eager's and cxxinductor's has {strides['eager']}.\n"
    yield f"\nGeometric mean vs AOTInductor: {geometric_mean([row['calls']['done']['aoti'] / row['calls']['done']['cxxinductor'] for row in models]):.2f}x.\n"

    def host_time(row):
        returned = row["calls"]["returned"]
        return row["model"], *(f"{1e6 * returned[way]:.1f}" for way in ("eager", "aoti", "cxxinductor")), f"{returned['cxxinductor'] / returned['aoti']:.2f}x"

    chains = [row for row in rows if row not in models]
    yield from table("host time per call (us) | eager LibTorch | AOTInductor | cxxinductor | of AOTInductor's", map(host_time, chains))


def device_step(results):
    names = {"eager": "eager, Python", "compiled": "our torch.compile, Python", "device": "recorded device, Python",
             "cpp_eager": "eager, C++", "cpp_device": "recorded device, C++"}

    def cells(r):
        peaks = " / ".join(f"{peak:.0f}" for peak in r["peak_megabytes"].values())
        return r["shape"], r["dtype"], names[r["way"]], f"{r['step_milliseconds']:.2f}", f"{r['first_step_seconds']:.1f}", peaks

    yield from table("batch x length | dtype | way | step (ms) | first step (s) | peak of the first / tenth step (MB)", map(cells, results["rows"]))
    if recording := results.get("recording_microseconds"):
        yield (f"\nRecording an op that is known takes {recording['known']:.2f} us, the first time {recording['first']:.2f} us; eager's own call on "
               f"the CPU takes {recording['eager']:.2f} us (`benchmarks/record_ops.cpp`).\n")


MIB = 2**20
RECORDED = "cxxinductor graphs"


def figure(values, name, form):
    """A cell; empty where the backend was left out or failed."""
    return format(values[name], form) if name in values else ""


def quotient(values, above, below, form=".2f"):
    return f"{values[above] / values[below]:{form}}x" if above in values and below in values else ""


def graphs_models(found):
    backends = ["inductor", "reduce-overhead", "cxxinductor", RECORDED]
    backends += [name for name in ("cxxinductor graphs with branches",) if any(name in row.get("milliseconds", {}) for row in found["rows"])]
    titles = {"inductor": "Inductor (ms)", RECORDED: "with cuda_graphs", "cxxinductor graphs with branches": "and graph_branches"}

    def cells(row):
        if "milliseconds" not in row:
            return [row["model"], f"failed: {row['error_message'][:60]}"]
        t, peak = row["milliseconds"], {name: bytes / MIB for name, bytes in row["peak_bytes"].items()}
        peaks = " / ".join(figure(peak, name, ".0f") for name in ("inductor", "cxxinductor", RECORDED))
        return [row["model"], *(figure(t, name, ".2f") for name in backends), quotient(t, "reduce-overhead", RECORDED), quotient(t, "cxxinductor", RECORDED),
                peaks, quotient(peak, RECORDED, "inductor")]

    yield from table(f"model | {' | '.join(titles.get(name, name) for name in backends)} | vs reduce-overhead | vs without graphs | "
                     "peak memory, Inductor / ours / with cuda_graphs (MB) | peak, of Inductor's", map(cells, found["rows"]))
    measured = [row for row in found["rows"] if {"reduce-overhead", RECORDED} <= set(row.get("milliseconds", {}))]
    if measured:
        ratio = lambda t: t["reduce-overhead"] / t[RECORDED]  # noqa: E731
        least = min(ratio(run) for row in measured for run in row.get("runs", [row["milliseconds"]]))
        of_runs = " of all runs" if all("runs" in row for row in measured) else ""
        yield f"\nGeometric mean vs reduce-overhead: {geometric_mean([ratio(row['milliseconds']) for row in measured]):.2f}x, least{of_runs} {least:.2f}x."


def graphs(results):
    if "host" in results:
        yield ("Host time per call of the compiled callable alone. Idle: one call with an empty queue, with the same inputs in each call; moving: with inputs and a result "
               "that have moved; in a row: one of 16 moving calls. Replay alone is `torch.cuda.CUDAGraph.replay` of the same kernels, the lower bound on a quiet host, idle and in a row. "
               "Patched nodes: those that the host gave other addresses, per call.\n")
        ways = ("unchanged", "moving", "in a row")
        together = lambda values, ways: " / ".join(f"{values[way]:.1f}" for way in ways)  # noqa: E731
        yield from table("case | kernels | without graphs, idle / moving / in a row (us) | with cuda_graphs | replay alone | patched nodes, idle / moving",
                         ([r["case"], r["kernels"], together(r["cxxinductor"], ways), together(r[RECORDED], ways), together(r["replay alone"], ("unchanged", "in a row")),
                           together(r["patched per call"], ways[:2])] for r in results["host"]))
    if "decode" in results:
        rates = results["decode"]["tokens_per_second"]
        yield f"\nDecoding with a {results['decode']['model']}, bf16, batch 1, a static cache, one token per call:\n"
        yield from table("backend | tokens/s | vs reduce-overhead",
                         ([name, f"{rate:.0f}", quotient(rates, name, "reduce-overhead")] for name, rate in rates.items()))
    for part, what in (("inference", "Inference, bf16, calls on an idle device."), ("training", "Forward, loss and backward; bf16 autocast, f32 parameters.")):
        if part in results:
            yield (f"\n{what} Inductor stands for its default mode, reduce-overhead for its mode with CUDA graphs. Ratios are those of cxxinductor with `cuda_graphs`. "
                   "Peak memory is what a call allocates on top of what is allocated before it.\n")
            yield from graphs_models(results[part])


def second_process(results):
    parts = ("dynamo", "backend_seconds", "aot", "prepare", "look_up", "own")

    def cells(row):
        shown = parts if row["backend"] == "cxxinductor" else parts[:2]
        milliseconds = {part: 1e3 * row[part] for part in shown if part in row}
        return row["kind"], row["backend"], row["cache"], f"{row['first_call']:.2f}", *(figure(milliseconds, part, ".0f") for part in parts)

    yield f"{results['model']}.\n"
    yield from table("call | backend | caches | first call (s) | Dynamo and the run (ms) | backend | AOTAutograd | preparation | look-up | own", map(cells, results["rows"]))


def distributed(results):
    names = {"ddp": "DDP", "fsdp": "FSDP2"}
    backends = ("inductor", "cxxinductor", RECORDED)
    relative = results["relative_to_one_rank"]

    def steps(row):
        blocks = row.get("blocks", 1)
        head = [names[row["part"]] + (f", {blocks} blocks together" if row["part"] == "fsdp" and blocks > 1 else ""), row["ranks"]]
        if not row.get("tokens_per_second"):
            return [*head, "failed"]
        rates = row["tokens_per_second"]
        scaling = relative.get(row["part"], {}) if row["ranks"] == results["ranks"] else {}
        return [*head, *(figure(rates, name, ".0f") for name in backends), quotient(rates, "cxxinductor", "inductor"), quotient(rates, RECORDED, "inductor"),
                " / ".join(figure(scaling, name, ".1%") for name in backends) if scaling else ""]

    def first_steps(row):
        seconds = row.get("first_step_seconds", {})
        if not seconds:
            return [row["ranks"], "failed"]
        over = relative.get("cold", {}) if row["ranks"] == results["ranks"] else {}
        return [row["ranks"], *(figure(seconds, name, ".2f") for name in backends[:2]), " / ".join(figure(over, name, ".2f") + "x" * (name in over) for name in backends[:2]) if over else ""]

    yield f"One host with {results['ranks']} x {results['environment']['gpu']}. Missing figures: the backend was left out or failed.\n"
    if trained := [row for row in results["rows"] if row["part"] in names]:
        yield from table("step | GPUs | Inductor (tokens/s) | cxxinductor | with cuda_graphs | vs Inductor | with cuda_graphs, vs Inductor | scaling, Inductor / ours / with cuda_graphs", map(steps, trained))
    if cold := [row for row in results["rows"] if row["part"] == "cold"]:
        yield ("\nThe first step with empty caches that the ranks share: DistilGPT2 under DDP, from before `torch.compile` to the end of the optimizer's step, on the slowest rank. "
               "The clock starts after the processes have started, built the model and done a step in eager mode.\n")
        yield from table("GPUs | Inductor, first step (s) | cxxinductor | over one GPU's, Inductor / ours", map(first_steps, cold))


def cpu(results):
    e = results["environment"]
    yield f"{e['cpu']}, threads: {e['threads']}, {e['capability']}.\n"
    yield from compared("case | eager (ms) | Inductor | cxxinductor | vs Inductor | vs eager", results["rows"], "case", 3, lambda row: [])
    measured = [row for row in results["rows"] if "milliseconds" in row]
    for kind in dict.fromkeys(row["kind"] for row in measured):
        rows = [row for row in measured if row["kind"] == kind]
        yield f"\nGeometric mean of the {kind}s vs Inductor: {mean_of(rows):.2f}x, least {min(map(against_inductor, rows)):.2f}x."


# name of the result: (heading, how it is measured, table)
SECTIONS = {
    "models": ("Inference", "bf16, random weights, medians of 20 calls on an idle device, interleaved with eager and Inductor's default mode in one process (`benchmarks/models.py`). Own kernels are generated ones, counted in one profiler trace. Eager numerics cost is the price of rounding where eager rounds, relative to `options={\"numerics\": \"fast\"}`. Frozen: `options={\"freezing\": True}`. The logits of distilgpt2 are a product with 50257 columns: Inductor pads it, with a peak above eager's; cxxinductor, which pads within eager's peak alone, splits it into products with aligned rows.", models),
    "training": ("Training", "Forward, loss and backward; bf16 autocast, f32 parameters, dropout on (`benchmarks/training.py`).", training),
    "distributed": ("Several GPUs", "Training steps of a GPT-2-medium shape with fused AdamW, bf16, 8 sequences of 1024 tokens per GPU, on the slowest rank; medians of interleaved steps (`benchmarks/distributed.py`). Tokens/s are those of all GPUs together. Scaling is tokens/s on all GPUs over their number times tokens/s on one.", distributed),
    "kernels": ("Kernels", "Device time of one kernel, in per cent of the copy bandwidth measured in the same run (`benchmarks/kernels.py`).", kernels),
    "training_kernels": ("Training kernels", "As above (`benchmarks/training_kernels.py`).", training_kernels),
    "optimizers": ("Optimizers", "One step under torch.compile, device time (`benchmarks/optimizers.py`).", optimizers),
    "matmul_template": ("Matrix products", "bf16 with the option `epilogue_fusion` (`benchmarks/matmul_template.py`).", matmul_template),
    "dynamic": ("Dynamic sizes", "One compile of DistilGPT2 with `dynamic=True` for 40 sizes (dynamic) beside a compile for the size alone (static); every tenth size is shown (`benchmarks/dynamic.py`).", dynamic),
    "compile_time": ("Compile time", "The share after AOTAutograd covers its graph to loaded kernels (`benchmarks/compile_time.py`).", compile_time),
    "second_process": ("A second process", "The first call of a new process: cold, with empty caches on disk; warm, with those that a process before has filled; medians of the warm processes (`benchmarks/second_process.py`). Training is forward and backward. The first call is divided into the time of the backend and that of Dynamo and the run. The last four columns divide cxxinductor's time: AOTAutograd; preparation of Dynamo's graph before it; the look-up of AOTAutograd's saved result; and our own part, from AOTAutograd's graphs to loaded kernels.", second_process),
    "densenet": ("Kernels that differ in sizes alone", "DenseNet in training with a cold cache and two compile threads; batch norm and concatenations of many sizes (`benchmarks/densenet.py`).", densenet),
    "host": ("Host time", "CPU time until the compiled callable returns, with an empty queue. Bound: 6 us + cuLaunchKernel's own time + 0.7 us per kernel + 1.5 us per allocation (`benchmarks/host.py`).", host),
    "graphs": ("CUDA graphs", "Option `cuda_graphs` beside Inductor's `reduce-overhead` in one process, interleaved (`benchmarks/graphs.py`).", graphs),
    "libtorch": ("C++ without Python", "Exported models in bf16, sizes as above, in a C++ program beside AOTInductor's runtime and eager LibTorch (`benchmarks/libtorch.py`). Loads are medians over fresh processes; cold: with an empty cache, on 16 cores. The exported BERT has a mask that PyTorch's own frontend drops. AOTInductor pads the product that gives distilgpt2 its logits; cxxinductor splits it into products with aligned rows.", libtorch),
    "device_step": ("Training on the recorded device", "Steps of a transformer of 6 layers and width 768 with AdamW; the loss is read after each (`benchmarks/device_step.py`).", device_step),
    "cpu": ("CPU", "Medians of interleaved calls (`benchmarks/cpu.py`). Chains of 16-bit floats round after each op, as eager does; Inductor rounds once.", cpu),
}
PLOTS = {"inference": "models", "training": "training"}
COLOURS = {"eager": "#9e9e9e", "inductor": "#e0853d", "cxxinductor": "#2f6fb0"}
README_BEGIN, README_END = "<!-- made by benchmarks/report.py -->\n", "<!-- end -->\n"
README_ROWS = ("distilgpt2", "bert_base", "t5_small", "resnet50", "vit_base", "convnext_base")


def plot(results, title):
    """An SVG with a bar per model and backend: speed relative to eager."""
    rows = [row for row in results["rows"] if "milliseconds" in row]
    top = max(row["milliseconds"]["eager"] / row["milliseconds"][b] for row in rows for b in COLOURS)
    width, height, left, bottom = 80 + 90 * len(rows), 300, 40, 40
    scale = (height - bottom - 50) / top
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>', f'<text x="{left}" y="18" font-size="14">{title}: speed relative to eager</text>']
    for i, (name, colour) in enumerate(COLOURS.items()):
        out.append(f'<rect x="{left + 110 * i}" y="26" width="10" height="10" fill="{colour}"/><text x="{left + 110 * i + 14}" y="35">{name}</text>')
    for y in range(int(top) + 1):
        at = height - bottom - y * scale
        out.append(f'<line x1="{left}" y1="{at:.1f}" x2="{width - 10}" y2="{at:.1f}" stroke="#dddddd"/><text x="{left - 22}" y="{at + 4:.1f}">{y}x</text>')
    for r, row in enumerate(rows):
        x = left + 15 + 90 * r
        for b, (name, colour) in enumerate(COLOURS.items()):
            value = row["milliseconds"]["eager"] / row["milliseconds"][name]
            out.append(f'<rect x="{x + 22 * b}" y="{height - bottom - value * scale:.1f}" width="20" height="{value * scale:.1f}" fill="{colour}"/>')
        out.append(f'<text x="{x + 32}" y="{height - bottom + 16}" text-anchor="middle">{row["model"]}</text>')
    return "\n".join([*out, "</svg>", ""])


def page(results):
    device = results["models"]["environment"]
    yield "# Benchmarks\n"
    yield "Made by `benchmarks/report.py` from `benchmarks/results/*.json`; do not edit. `make bench` measures again, into `build/benchmarks`.\n"
    yield f"Hardware of the CUDA tables: one {device['gpu']}, torch {device['torch']}.\n"
    for name in PLOTS:
        yield f"![{name}](benchmarks-{name}.svg)\n"
    for name, (heading, how, table) in SECTIONS.items():
        if name in results:
            yield f"## {heading}\n\n{how}\n"
            yield "\n".join(table(results[name])) + "\n"


def readme_table(results):
    trained = {row["model"]: against_inductor(row) for row in results["training"]["rows"] if "milliseconds" in row}

    def cells(row):
        t, step = row["milliseconds"], trained.get(row["model"])
        return row["model"], *(f"{t[backend]:.2f}" for backend in COLOURS), f"{against_inductor(row):.2f}x", f"{step:.2f}x" if step else ""

    yield from table("model, bf16 | eager (ms) | Inductor (ms) | cxxinductor (ms) | vs Inductor | training, vs Inductor",
                     (cells(row) for row in results["models"]["rows"] if row["model"] in README_ROWS))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    results = {name: json.loads(path.read_text()) for name in SECTIONS if (path := root / f"benchmarks/results/{name}.json").exists()}
    docs = root / "docs"
    (docs / "benchmarks.md").write_text("\n".join(page(results)))
    for title, name in PLOTS.items():
        (docs / f"benchmarks-{title}.svg").write_text(plot(results[name], title.capitalize()))
    readme = (root / "README.md").read_text()
    before, rest = readme.split(README_BEGIN)
    (root / "README.md").write_text(before + README_BEGIN + "\n".join(readme_table(results)) + "\n" + README_END + rest.split(README_END)[1])


if __name__ == "__main__":
    main()
