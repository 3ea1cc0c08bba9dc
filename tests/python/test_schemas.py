"""tools/aten_schemas.txt, by which tools without torch read calls."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

TOOL = Path(__file__).parents[2] / "tools" / "snapshot_schemas.py"


@pytest.mark.skipif(not torch.__version__.startswith("2.11."), reason="the snapshot is torch 2.11's")
def test_the_snapshot_is_what_torch_has():
    assert subprocess.run([sys.executable, TOOL, "--check"], check=False).returncode == 0, f"run {TOOL.name}"
