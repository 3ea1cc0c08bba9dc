"""Prints the README's tables from benchmarks/results/*.json. Usage: table.py [--results DIR]"""

import argparse
import json
import math
from pathlib import Path


def geomean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def models(results):
    yield "| model | eager (ms) | Inductor | cxxinductor | against Inductor | against eager | own kernels, Inductor / ours | first call (s), Inductor / ours | eager numerics cost | frozen (ms) |"
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
    yield f"\nGeometric mean against Inductor: {geomean(ratios):.2f}x."


def training(results):
    yield "| model | eager (ms) | Inductor | cxxinductor | against Inductor | against eager | peak memory, eager / Inductor / ours (MB) | first step (s), Inductor / ours |"
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
    yield f"\nGeometric mean against Inductor: {geomean(ratios):.2f}x."


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
    yield "| step | tensors | ours (ms on the device) | torch fused | torch foreach | Inductor | ours against fused | % of copy | launches |"
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
    yield "| bf16, square | size | library alone (us) | library + our kernel | template | chosen | behind the better |"
    yield "|---|---|---|---|---|---|---|"
    for r in results["rows"]:
        t = r["microseconds"]
        yield (f"| {r['case']} | {r['size']} | {t['library']:.1f} | {t['library + kernel']:.1f} | {t['template']:.1f} | "
               f"{t['chosen']:.1f} ({r['choice']}) | {r['behind']:+.1%} |")


def cpu(results):
    e = results["environment"]
    yield f"{e['cpu']}, threads: {e['threads']}, {e['capability']}.\n"
    yield "| case | eager (ms) | Inductor | cxxinductor | against Inductor | against eager | first call (s), Inductor / ours |"
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
        yield f"\nGeometric mean of the {kind}s against Inductor: {geomean(found):.2f}x, least {min(found):.2f}x."


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", default=str(Path(__file__).resolve().parent / "results"))
    folder = Path(parser.parse_args().results)
    for name, table in {"models": models, "training": training, "optimizers": optimizers, "kernels": kernels, "host": host, "compile_time": compile_time, "matmul_template": matmul_template, "training_kernels": training_kernels, "dynamic": dynamic, "cpu": cpu}.items():
        path = folder / f"{name}.json"
        if path.exists():
            print("\n".join(table(json.loads(path.read_text()))), end="\n\n")


if __name__ == "__main__":
    main()
