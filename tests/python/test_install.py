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
    check_program(venv, environment | cache, elsewhere)
    check_package_files(site / "cxxinductor", environment, elsewhere)


def check_program(venv, environment, folder):
    program = venv / "bin" / "cxxinductor"
    assert run([program, "--version"], env=environment, cwd=folder).startswith("cxxinductor ")
    assert "verified" in run([program, "verify", ROOT / "tests" / "data" / "pt2" / "mlp.pt2"], env=environment, cwd=folder)


def check_package_files(package, environment, folder):
    """What C++ programs are built with. PyTorch is another environment's here, so its place is given."""
    found = {"PKG_CONFIG_PATH": str(package / "lib" / "pkgconfig")}
    variables = run(["pkg-config", "--variable=libtorch", "cxxinductor"], env=environment | found).strip()
    assert Path(variables).resolve() == package.parent / "torch"
    torch_folder = Path(sysconfig.get_path("purelib")) / "torch"
    flags = run(["pkg-config", f"--define-variable=libtorch={torch_folder}", "--cflags", "--libs", "cxxinductor"], env=environment | found).split()
    run(["cc", "-std=c99", "-o", folder / "c_host", ROOT / "tests" / "api" / "c_host.c", *flags, "-lm"])
    assert run([folder / "c_host", ROOT / "tests" / "data" / "pt2"], env=environment) == "the C API works\n"
    run(["cmake", "-S", ROOT / "examples", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={package};{torch_folder}"], env=environment)
    run(["cmake", "--build", folder / "build"], env=environment)
    assert "usage" in subprocess.run([str(folder / "build" / "run_model")], capture_output=True, text=True).stderr
