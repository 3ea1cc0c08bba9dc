"""docs/benchmarks.md, its plots and the README's table are what benchmarks/report.py makes of the committed results; tables of made-up results."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MADE = ("README.md", "docs/benchmarks.md", "docs/benchmarks-inference.svg", "docs/benchmarks-training.svg")


def report():
    spec = importlib.util.spec_from_file_location("report", ROOT / "benchmarks/report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_of(lines):
    """The cells of tables; every row of a table has as many as its head, or says that it failed."""
    rows, width = [], 0
    for line in "\n".join(lines).split("\n"):
        if not line.startswith("|"):
            width = 0
            continue
        cells = [cell.strip() for cell in line[1:-1].split("|")]
        width = width or len(cells)
        assert len(cells) == width or cells[-1].startswith("failed"), line
        rows.append(cells)
    return rows


def test_benchmark_pages_are_fresh(tmp_path):
    shutil.copytree(ROOT / "benchmarks/results", tmp_path / "benchmarks/results")
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "README.md", tmp_path / "README.md")
    subprocess.run([sys.executable, ROOT / "benchmarks/report.py", "--root", tmp_path], check=True)
    for name in MADE:
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), f"{name}: run benchmarks/report.py"


GRAPHS = {
    "host": [{"case": "chain of 10", "kernels": 10, "cxxinductor": {"unchanged": 35.2, "moving": 36.1, "in a row": 30.0},
              "cxxinductor graphs": {"unchanged": 9.04, "moving": 11.5, "in a row": 5.0}, "patched per call": {"unchanged": 0.0, "moving": 1.5},
              "replay alone": {"unchanged": 7.25, "in a row": 4.0}}],
    "decode": {"model": "Llama-1B shape", "tokens_per_second": {"reduce-overhead": 300.0, "cxxinductor graphs": 330.0}, "failed": {"inductor": "no"}},
    "inference": {"rows": [
        {"model": "one", "milliseconds": {"inductor": 4.0, "reduce-overhead": 2.0, "cxxinductor": 3.0, "cxxinductor graphs": 1.0},
         "runs": [{"reduce-overhead": 1.8, "cxxinductor graphs": 1.0}, {"reduce-overhead": 2.0, "cxxinductor graphs": 1.0}],
         "peak_bytes": {"inductor": 200 << 20, "reduce-overhead": 1 << 20, "cxxinductor": 150 << 20, "cxxinductor graphs": 100 << 20}},
        {"model": "two", "milliseconds": {"inductor": 4.0, "reduce-overhead": 4.0, "cxxinductor graphs": 0.5},
         "peak_bytes": {"inductor": 200 << 20, "reduce-overhead": 1 << 20, "cxxinductor graphs": 100 << 20}},
        {"model": "three", "error_message": "out of memory"},
    ]},
}  # fmt: skip


def test_tables_of_graphs():
    lines = list(report().graphs(GRAPHS))
    rows = rows_of(lines)
    assert ["chain of 10", "10", "35.2 / 36.1 / 30.0", "9.0 / 11.5 / 5.0", "7.2 / 4.0", "0.0 / 1.5"] in rows
    assert ["cxxinductor graphs", "330", "1.10x"] in rows
    assert ["one", "4.00", "2.00", "3.00", "1.00", "2.00x", "3.00x", "200 / 150 / 100", "0.50x"] in rows
    assert ["two", "4.00", "4.00", "", "0.50", "8.00x", "", "200 /  / 100", "0.50x"] in rows
    assert ["three", "failed: out of memory"] in rows
    assert "\nGeometric mean vs reduce-overhead: 4.00x, least 1.80x." in lines
    assert not any("graph_branches" in line or "f32 parameters" in line for line in lines)  # neither was measured
    branches = {"milliseconds": {**GRAPHS["inference"]["rows"][0]["milliseconds"], "cxxinductor graphs with branches": 1.5}}
    rows = rows_of(report().graphs({"training": {"rows": [{**GRAPHS["inference"]["rows"][0], **branches}]}}))
    assert rows[0][5] == "and graph_branches" and rows[2][5] == "1.50"


SECOND_PROCESS = {
    "model": "DistilGPT2 on cuda",
    "rows": [
        {"backend": "inductor", "kind": "inference", "cache": "warm", "stages": {}, "aot": 0.5, "first_call": 1.5, "backend_seconds": 0.5, "dynamo": 1.0},
        {"backend": "cxxinductor", "kind": "training", "cache": "warm", "stages": {"plan": 0.01}, "aot": 0.05, "prepare": 0.001, "look_up": 0.03,
         "own": 0.02, "first_call": 1.2, "backend_seconds": 0.101, "dynamo": 1.099},
    ],
}  # fmt: skip


def test_table_of_second_processes():
    lines = list(report().second_process(SECOND_PROCESS))
    rows = rows_of(lines)
    assert lines[0].startswith("DistilGPT2 on cuda")
    assert ["inference", "inductor", "warm", "1.50", "1000", "500", "", "", "", ""] in rows
    assert ["training", "cxxinductor", "warm", "1.20", "1099", "101", "50", "1", "30", "20"] in rows


DISTRIBUTED = {
    "environment": {"gpu": "some GPU"},
    "ranks": 2,
    "rows": [
        {"part": "ddp", "ranks": 1, "tokens_per_second": {"inductor": 1000.0, "cxxinductor": 1200.0, "cxxinductor graphs": 1250.0}, "failed": {}},
        {"part": "ddp", "ranks": 2, "tokens_per_second": {"inductor": 1900.0, "cxxinductor": 2280.0}, "failed": {"cxxinductor graphs": "no"}},
        {"part": "fsdp", "ranks": 1, "error_message": "one\ntwo"},
        {"part": "cold", "ranks": 1, "first_step_seconds": {"inductor": 20.0, "cxxinductor": 5.0}, "failed": {}},
        {"part": "cold", "ranks": 2, "first_step_seconds": {"inductor": 25.0, "cxxinductor": 5.5}, "failed": {}},
    ],
    "relative_to_one_rank": {"ddp": {"inductor": 0.95, "cxxinductor": 0.95}, "cold": {"inductor": 1.25, "cxxinductor": 1.1}},
}


def test_tables_of_several_gpus():
    rows = rows_of(report().distributed(DISTRIBUTED))
    assert ["DDP", "1", "1000", "1200", "1250", "1.20x", "1.25x", ""] in rows
    assert ["DDP", "2", "1900", "2280", "", "1.20x", "", "95.0% / 95.0% /"] in rows
    assert ["FSDP2", "1", "failed"] in rows
    assert ["1", "20.00", "5.00", ""] in rows and ["2", "25.00", "5.50", "1.25x / 1.10x"] in rows


def test_new_results_become_sections(tmp_path):
    shutil.copytree(ROOT / "benchmarks/results", tmp_path / "benchmarks/results")
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "README.md", tmp_path / "README.md")
    for name, found in {"graphs": GRAPHS, "second_process": SECOND_PROCESS, "distributed": DISTRIBUTED}.items():
        (tmp_path / f"benchmarks/results/{name}.json").write_text(json.dumps(found))
    subprocess.run([sys.executable, ROOT / "benchmarks/report.py", "--root", tmp_path], check=True)
    page = (tmp_path / "docs/benchmarks.md").read_text()
    assert all(f"\n## {heading}\n" in page for heading in ("CUDA graphs", "A second process", "Several GPUs"))
