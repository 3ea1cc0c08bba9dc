"""Benchmarks without a CUDA device say so in a line; none of them writes into the committed results unless told to."""

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from children import run_python

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("timing", "report", "run", "compare"))


SCRIPT = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("name", ["host", "optimizers", "matmul_padding", "densenet", "compile_time", "distributed"])
def test_a_missing_gpu_is_a_line(name):
    done = run_python(SCRIPT, FOLDER, FOLDER / f"{name}.py", environment={"CUDA_VISIBLE_DEVICES": ""})
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"{name}.py: expected a CUDA device, found none\n")


def test_missing_valgrind_is_named():
    done = run_python(SCRIPT, FOLDER, FOLDER / "compile_instructions.py", environment={"PATH": ""})
    assert done.returncode == 2
    assert done.stderr.endswith("expected the program valgrind, found none; install valgrind and a C compiler\n"), done.stderr


def test_distributed_steps_on_the_cpu(tmp_path):
    """A group of one rank and one of two, over gloo."""
    options = ["--device", "cpu", "--ranks", "2", "--parts", "ddp", "--backends", "cxxinductor", "--out", tmp_path]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, FOLDER / "distributed.py", *options], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "distributed_cpu.json").read_text())
    assert [(row["part"], row["ranks"], list(row["tokens_per_second"]), row["failed"]) for row in found["rows"]] == [
        ("ddp", ranks, ["cxxinductor"], {}) for ranks in (1, 2)
    ], found
    assert found["relative_to_one_rank"]["ddp"]["cxxinductor"] > 0


def timing_module():
    spec = importlib.util.spec_from_file_location("timing", FOLDER / "timing.py")
    timing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(timing)
    return timing


def test_results_are_not_written_over():
    folder = timing_module().argument_parser("").parse_args([]).out
    assert subprocess.run(["git", "check-ignore", "-q", folder + "/x.json"], cwd=FOLDER).returncode == 0


def test_results_of_another_gpu_are_not_kept(tmp_path, monkeypatch):
    timing = timing_module()
    monkeypatch.setattr(timing, "environment", lambda: {"gpu": "one"})
    assert timing.load("figures", tmp_path) == {}
    timing.save("figures", {"host": [1]}, tmp_path)
    assert timing.load("figures", tmp_path) == {"host": [1]}
    monkeypatch.setattr(timing, "environment", lambda: {"gpu": "another"})
    assert timing.load("figures", tmp_path) == {}


def test_run_names_every_benchmark():
    lists = [node.value for node in ast.parse((FOLDER / "run.py").read_text()).body if isinstance(node, ast.Assign)]
    assert sorted(name for found in lists for name in ast.literal_eval(found)) == SCRIPTS
    for name in SCRIPTS:
        assert "argument_parser(__doc__)" in (FOLDER / f"{name}.py").read_text(), f"{name} takes --out"


def test_two_trees_are_compared_by_their_smallest_times(tmp_path):
    for folder, ours, eager in (("a", 2.0, 4.0), ("b", 1.0, 1.0), ("c", 3.0, 8.0)):
        (tmp_path / folder).mkdir()
        rows = [{"model": "net", "milliseconds": {"eager": eager, "cxxinductor": ours}}, {"model": "broken", "error_message": "no"}]
        (tmp_path / folder / "models.json").write_text(json.dumps({"rows": rows}))
    command = [sys.executable, str(FOLDER / "compare.py"), "--before", *(str(tmp_path / name) for name in "ab"), "--after", str(tmp_path / "c")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    # 3 after 1; 3/8 of eager's after 2/4.
    assert [line.split() for line in lines[1:]] == [["net", "3.000", "0.750"], ["geometric", "mean", "of", "1", "3.000", "0.750"]]
