"""docs/benchmarks.md, its plots and the README's table are what benchmarks/report.py makes of the committed results."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MADE = ("README.md", "docs/benchmarks.md", "docs/benchmarks-inference.svg", "docs/benchmarks-training.svg")


def test_benchmark_pages_are_fresh(tmp_path):
    shutil.copytree(ROOT / "benchmarks/results", tmp_path / "benchmarks/results")
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "README.md", tmp_path / "README.md")
    subprocess.run([sys.executable, ROOT / "benchmarks/report.py", "--root", tmp_path], check=True)
    for name in MADE:
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), f"{name}: run benchmarks/report.py"
