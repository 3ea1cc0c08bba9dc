"""``pip install .`` into a fresh environment: the backend works from any directory and is found without an import."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys, torch
assert "cxxinductor" in torch._dynamo.list_backends()
assert not any(name.startswith("cxxinductor") for name in sys.modules), "found without an import"
x = torch.randn(5, 33)
fn = lambda x: torch.softmax(x + 1, -1)
assert torch.allclose(torch.compile(fn, backend="cxxinductor")(x), fn(x))
import cxxinductor
assert cxxinductor.counters()["graphs"] == 1 and cxxinductor.counters()["aten_fallback"] == 0
print(cxxinductor.__file__)
"""


def run(command, **kwargs):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1200, **kwargs)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.mark.slow
def test_install_elsewhere(tmp_path):
    # Torch and the build tools are this environment's, seen through a .pth file. setup.py builds in a folder beside that of
    # `make build`, whose objects ccache has.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CXXINDUCTOR_", "PYTHON"))}
    environment |= {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    venv = tmp_path / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", venv])
    python = venv / "bin" / "python"
    site = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    assert venv in site.parents
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(
        [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--disable-pip-version-check",
         "--no-build-isolation", "--no-deps", "--no-index", ROOT],
        env=environment, cwd=tmp_path,
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    cache = {"CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    assert run([python, "-c", PROGRAM], env=environment | cache, cwd=elsewhere).strip() == str(site / "cxxinductor" / "__init__.py")
