"""docs/extend.md is a program that runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extend.md"


def test_the_blocks_of_the_page_run(device, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    # A file: what the page registers has source text.
    program = tmp_path / "page.py"
    program.write_text("\n".join([f"import torch\ntorch.set_default_device({device!r})", *blocks]))
    environment = os.environ | {"CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
