"""The C++ door: a program that links LibTorch and libcxxinductor, without Python, compiles and runs a saved graph text."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "examples" / "run_graph"


@pytest.mark.skipif(not PROGRAM.exists(), reason="built by `make test`")
def test_example_runs_a_saved_graph():
    done = subprocess.run([str(PROGRAM), str(ROOT / "examples" / "softmax.graph")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "compiled into 1 kernel(s)" in done.stdout and "refused" in done.stdout


@pytest.mark.skipif(not PROGRAM.exists(), reason="built by `make test`")
def test_example_links_no_python():
    assert "libpython" not in subprocess.run(["ldd", str(PROGRAM)], capture_output=True, text=True).stdout
