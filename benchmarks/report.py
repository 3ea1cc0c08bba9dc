"""Writes docs/benchmarks.md, its plots and the README's table from benchmarks/results/*.json. Usage: report.py [--root DIR]"""

import argparse
import json
import math
from pathlib import Path


def geomean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def models(results):
    yield "| model | eager (ms) | Inductor | cxxinductor | vs Inductor | vs eager | own kernels, Inductor / ours | first call (s), Inductor / ours | eager numerics cost | frozen (ms) |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    ratios = []
    for row in results["rows"]:
        if "milliseconds" not in row:
            yield f"| {row['model']} | failed: {row['error_message'][:60]} |"
            continue
        t, own, first = row["milliseconds"], row["own_kernels"], row["first_call_seconds"]
        ratios.append(t["inductor"] / t["cxxinductor"])
        yield (f"| {row['model']} | {t['eager']:.2f} | {t['inductor']:.2f} | {t['cxxinductor']:.2f} | {ratios[-1]:.2f}x | "
               f"{t['eager'] / t['cxxinductor']:.2f}x | {own['inductor']} / {own['cxxinductor']} | "
               f"{first['inductor']:.1f} / {first['cxxinductor']:.1f} | {t['cxxinductor'] / t['cxxinductor fast'] - 1:+.1%} | "
               + (f"{t['cxxinductor frozen']:.2f} |" if "cxxinductor frozen" in t else "|"))
    yield f"\nGeometric mean vs Inductor: {geomean(ratios):.2f}x."


def training(results):
    yield "| model | eager (ms) | Inductor | cxxinductor | vs Inductor | vs eager | peak memory, eager / Inductor / ours (MB) | first step (s), Inductor / ours |"
    yield "|---|---|---|---|---|---|---|---|"
    ratios = []
    for row in results["rows"]:
        if "milliseconds" not in row:
            yield f"| {row['model']} | failed: {row['error_message'][:60]} |"
            continue
        t, m, first = row["milliseconds"], row["peak_megabytes"], row["first_call_seconds"]
        ratios.append(t["inductor"] / t["cxxinductor"])
        yield (f"| {row['model']} | {t['eager']:.2f} | {t['inductor']:.2f} | {t['cxxinductor']:.2f} | {ratios[-1]:.2f}x | "
               f"{t['eager'] / t['cxxinductor']:.2f}x | {m['eager']:.0f} / {m['inductor']:.0f} / {m['cxxinductor']:.0f} | "
               f"{first['inductor']:.1f} / {first['cxxinductor']:.1f} |")
    yield f"\nGeometric mean vs Inductor: {geomean(ratios):.2f}x."


def kernels(results):
    yield "| kernel, 64M elements (pointwise: 256 MB a tensor) | cxxinductor, % of copy | Inductor | eager |"
    yield "|---|---|---|---|"
    groups = {}
    for row in results["rows"]:
        groups.setdefault(" ".join(row["case"].split()[:2]), []).append(row["percent_of_copy"])
    for name, rows in groups.items():
        cells = [f"{min(r[k] for r in rows):.0f}-{max(r[k] for r in rows):.0f}" if len(rows) > 1 else f"{rows[0][k]:.0f}"
                 for k in ("cxxinductor", "inductor", "eager") if k in rows[0]]
        yield f"| {name}{', N = 512..16k' if len(rows) > 1 else ''} | " + " | ".join(cells) + " |"


def optimizers(results):
    yield "| step | tensors | ours (ms on the device) | torch fused | torch foreach | Inductor | vs fused | % of copy | launches |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for r in results["rows"]:
        t = r["device_milliseconds"]
        inductor = f"{t['inductor']:.3f}" if "inductor" in t else ""
        yield (f"| {r['optimizer']} | {r['workload']} | {t['cxxinductor']:.3f} | {t['fused']:.3f} | {t['foreach']:.3f} | {inductor} | "
               f"{r['of_fused']:.2f}x | {r['percent_of_copy']['cxxinductor']:.0f} | {r['launches']} |")


def training_kernels(results):
    yield "| kernel, bf16 | cxxinductor, % of copy | Inductor | eager |"
    yield "|---|---|---|---|"
    for row in results["rows"]:
        p = row["percent_of_copy"]
        yield f"| {row['case']} | {p['cxxinductor']:.1f} | {p['inductor']:.1f} | {p['eager']:.1f} |"
    dropout = results["rows"][0]["milliseconds"]["cxxinductor"] / results["copy_of_elements_milliseconds"]
    yield f"\nDropout takes {dropout:.2f} times as long as torch's copy of the same elements."


def dynamic(results):
    yield "| batch x length | cxxinductor, dynamic=True (ms) | for the size alone | on the device | for the size alone | Inductor, dynamic=True | for the size alone | on the device | for the size alone |"
    yield "|---|---|---|---|---|---|---|---|---|"
    ours, theirs = (results["backends"][b]["rows"] for b in ("cxxinductor", "inductor"))
    for a, b in zip(ours, theirs):
        if "static" not in b["milliseconds"]:
            continue
        cells = [f"{row[kind][form]:.2f}" for row in (a, b) for kind in ("milliseconds", "device_milliseconds") for form in ("dynamic", "static")]
        yield f"| {a['size'][0]} x {a['size'][1]} | " + " | ".join(cells) + " |"
    for kind, what in (("device_milliseconds", "On the device"), ("milliseconds", "Calls on an idle device")):
        more = sorted(row[kind]["dynamic"] / row[kind]["static"] - 1 for row in ours)
        yield (f"\n{what}, ours takes {more[-1]:+.1%} at most and {sum(more) / len(more):+.1%} on average against a compile for the size alone "
               f"({sum(m <= 0.07 for m in more)} of {len(more)} sizes within 7 %).")
    graphs = {name: found["graphs_after_all"] for name, found in results["backends"].items()}
    yield f"\nGraphs compiled for all {len(results['sizes'])} sizes: {graphs['cxxinductor']} (Inductor: {graphs['inductor']})."


def host(results):
    yield "| case | own kernels | cuLaunchKernel alone (us) | callable alone | bound | through torch.compile | Inductor | eager |"
    yield "|---|---|---|---|---|---|---|---|"
    for r in results["rows"]:
        yield (f"| {r['case']} | {r['kernels']} | {r['cuLaunchKernel']:.2f} | {r['callable alone']:.1f} | {r['bound']:.1f} | {r['cxxinductor']:.1f} | "
               f"{r['inductor']:.1f} | {r['eager']:.1f} |")


def compile_time(results):
    yield "| DistilGPT2, fresh process | first call (s) | our share after AOTAutograd |"
    yield "|---|---|---|"
    for r in results["rows"]:
        yield f"| {r['backend']}, {r['cache']} caches | {r['first_call']:.2f} | {'' if r['own'] is None else format(r['own'], '.2f')} |"


def matmul_template(results):
    yield "| bf16, square | size | library alone (us) | library + our kernel | template | chosen | slowdown vs best |"
    yield "|---|---|---|---|---|---|---|"
    for r in results["rows"]:
        t = r["microseconds"]
        yield (f"| {r['case']} | {r['size']} | {t['library']:.1f} | {t['library + kernel']:.1f} | {t['template']:.1f} | "
               f"{t['chosen']:.1f} ({r['choice']}) | {r['behind']:+.1%} |")


def cpu(results):
    e = results["environment"]
    yield f"{e['cpu']}, threads: {e['threads']}, {e['capability']}.\n"
    yield "| case | eager (ms) | Inductor | cxxinductor | vs Inductor | vs eager | first call (s), Inductor / ours |"
    yield "|---|---|---|---|---|---|---|"
    ratios = {}
    for r in results["rows"]:
        if "milliseconds" not in r:
            yield f"| {r['case']} | failed: {r['error_message'][:60]} |"
            continue
        t, first = r["milliseconds"], r["first_call_seconds"]
        ratios.setdefault(r["kind"], []).append(t["inductor"] / t["cxxinductor"])
        yield (f"| {r['case']} | {t['eager']:.3f} | {t['inductor']:.3f} | {t['cxxinductor']:.3f} | {t['inductor'] / t['cxxinductor']:.2f}x | "
               f"{t['eager'] / t['cxxinductor']:.2f}x | {first['inductor']:.1f} / {first['cxxinductor']:.1f} |")
    for kind, found in ratios.items():
        yield f"\nGeometric mean of the {kind}s vs Inductor: {geomean(found):.2f}x, least {min(found):.2f}x."


# name of the result: (heading, how it is measured, table)
SECTIONS = {
    "models": ("Inference", "bf16, random weights, medians of 20 calls on an idle device, interleaved with eager and Inductor's default mode in one process (`benchmarks/models.py`). Own kernels are generated ones, counted in one profiler trace. Eager numerics cost is the price of rounding where eager rounds, relative to `options={\"numerics\": \"fast\"}`. Frozen: `options={\"freezing\": True}`.", models),
    "training": ("Training", "Forward, loss and backward; bf16 autocast, f32 parameters, dropout on (`benchmarks/training.py`).", training),
    "kernels": ("Kernels", "Device time of one kernel, in per cent of the copy bandwidth measured in the same run (`benchmarks/kernels.py`).", kernels),
    "training_kernels": ("Training kernels", "As above (`benchmarks/training_kernels.py`).", training_kernels),
    "optimizers": ("Optimizers", "One step under torch.compile, device time (`benchmarks/optimizers.py`).", optimizers),
    "matmul_template": ("Matrix products", "n x n in bf16 with the option `epilogue_fusion` (`benchmarks/matmul_template.py`).", matmul_template),
    "dynamic": ("Dynamic sizes", "One compile of DistilGPT2 for 40 sizes; every tenth size is shown (`benchmarks/dynamic.py`).", dynamic),
    "compile_time": ("Compile time", "The share after AOTAutograd covers its graph to loaded kernels (`benchmarks/compile_time.py`).", compile_time),
    "host": ("Host time", "CPU time until the compiled callable returns, with an empty queue. Bound: 6 us + cuLaunchKernel's own time + 0.7 us per kernel + 1.5 us per allocation (`benchmarks/host.py`).", host),
    "cpu": ("CPU", "Medians on an idle machine (`benchmarks/cpu.py`).", cpu),
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
    yield "Made by `benchmarks/report.py` from `benchmarks/results/*.json`; do not edit. `make bench` measures again on a CUDA device.\n"
    yield f"Hardware of the CUDA tables: one {device['gpu']}, torch {device['torch']}.\n"
    for name in PLOTS:
        yield f"![{name}](benchmarks-{name}.svg)\n"
    for name, (heading, how, table) in SECTIONS.items():
        if name in results:
            yield f"## {heading}\n\n{how}\n"
            yield "\n".join(table(results[name])) + "\n"


def readme_table(results):
    yield "| model, bf16 | eager (ms) | Inductor (ms) | cxxinductor (ms) | vs Inductor | training, vs Inductor |"
    yield "|---|---|---|---|---|---|"
    trained = {row["model"]: row["milliseconds"] for row in results["training"]["rows"]}
    for row in results["models"]["rows"]:
        if row["model"] in README_ROWS:
            t, step = row["milliseconds"], trained.get(row["model"])
            ratio = f"{step['inductor'] / step['cxxinductor']:.2f}x" if step else ""
            yield f"| {row['model']} | {t['eager']:.2f} | {t['inductor']:.2f} | {t['cxxinductor']:.2f} | {t['inductor'] / t['cxxinductor']:.2f}x | {ratio} |"


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
