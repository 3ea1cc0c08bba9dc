"""The wheel, made from the existing build: what it holds, what it needs, how large it is; installed into a fresh environment, it works.

`make wheel-test` does the same for each CPython, with PyTorch from pip.
"""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
TAG = sys.implementation.cache_tag
SITE = Path(sysconfig.get_path("purelib"))

pytestmark = pytest.mark.skipif(
    not (BUILD / "bin" / "cxxinductor").exists() or not (BUILD / "lib" / TAG / "_C.so").exists(), reason="built by `make test`"
)

# Neither PyTorch's settings nor this environment's reach the installed package.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("CXXINDUCTOR_", "PYTHON"))}
# What the manylinux policies let wheels take from the machine, as far as it is needed.
ON_EVERY_MACHINE = {"libc.so.6", "libm.so.6", "libdl.so.2", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2"}
OF_TORCH = {"libtorch_cpu.so", "libtorch_python.so", "libc10.so"}
SHIPPED_BYTES = 12_500_000


def run(command, **kwargs):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1200, **kwargs)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    # setuptools would collect what earlier builds left in build/lib.
    (folder / "setup.cfg").write_text(f"[build]\nbuild_base = {folder / 'build'}\n[egg_info]\negg_base = {folder}\n")
    run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "--no-index",
         "-w", folder / "wheel", ROOT],
        env=ENVIRONMENT | {"CXXINDUCTOR_BUILD_DIR": str(BUILD), "DIST_EXTRA_CONFIG": str(folder / "setup.cfg")}, cwd=folder,
    )  # fmt: skip
    (made,) = (folder / "wheel").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder / "cxxinductor"


def test_what_the_wheel_holds(wheel, unpacked):
    assert re.search(rf"-cp3{TAG.removeprefix('cpython-3')}-cp3\d+-linux_", wheel.name)
    for name in ("_C.so", "libcxxinductor.so", "bin/cxxinductor", "include/cxxinductor/cxxinductor.h", "include/cxxinductor/c.h",
                 "lib/cmake/cxxinductor/cxxinductorConfig.cmake", "lib/pkgconfig/cxxinductor.pc", "backend.py"):  # fmt: skip
        assert (unpacked / name).is_file(), name
    assert (unpacked.parent / "cxxinductor_program.py").is_file()
    for name in ("lib/cmake/cxxinductor/cxxinductorConfig.cmake", "lib/pkgconfig/cxxinductor.pc"):
        text = (unpacked / name).read_text()
        assert str(ROOT) not in text and str(SITE) not in text, f"{name} names the machine that it was made on"


def dynamic_section(file):
    text = run(["readelf", "-d", file])
    runpath = re.search(r"\(RUNPATH\).*\[(.*)\]", text)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text)), runpath.group(1).split(":") if runpath else []


def test_libraries_are_found_beside_each_other_and_in_pytorch(unpacked):
    libraries = {path.name: path for path in unpacked.glob("*.so*")}
    needed, _ = dynamic_section(libraries["libcxxinductor.so"])
    assert "libginac.so.11" in needed or any(name.startswith("libginac") for name in needed)
    for file in (*libraries.values(), unpacked / "bin" / "cxxinductor"):
        needed, runpath = dynamic_section(file)
        assert needed <= set(libraries) | ON_EVERY_MACHINE | OF_TORCH, file.name
        assert all(folder.startswith("$ORIGIN") for folder in runpath), f"{file.name} looks in {runpath}"
    # A library's RUNPATH does not hold for what its own libraries need: whatever is shipped, libcxxinductor.so has to need itself.
    assert set(libraries) - {"_C.so", "libcxxinductor.so"} <= dynamic_section(libraries["libcxxinductor.so"])[0]


def test_size_of_what_ships(unpacked):
    files = [*unpacked.glob("*.so*"), unpacked / "bin" / "cxxinductor"]
    for file in files:
        assert ".symtab" not in run(["readelf", "-S", "-W", file]), f"{file.name} is not stripped"
    # Beside PyTorch: for C++ programs all but the Python module and the program, which come on top in the wheel.
    sizes = {file.name: file.stat().st_size for file in files}
    cxx = sum(size for name, size in sizes.items() if name not in ("_C.so", "cxxinductor"))
    assert cxx <= SHIPPED_BYTES and sum(sizes.values()) <= SHIPPED_BYTES + 1_500_000, sizes


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A fresh environment with the wheel; PyTorch is this environment's, seen through links, the rest through a .pth file."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", venv])
    python = venv / "bin" / "python"
    site = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    for name in ("torch", "nvidia"):
        if (SITE / name).exists():
            (site / name).symlink_to(SITE / name)
    (site / "borrowed.pth").write_text(f"{SITE}\n")
    run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-index", wheel])
    return venv, site


def test_the_installed_package_works_anywhere(installed, tmp_path):
    venv, site = installed
    cache = {"CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    found = run([venv / "bin" / "python", ROOT / "tools" / "check_installed.py"], env=ENVIRONMENT | cache, cwd=tmp_path)
    assert found.strip() == str(site / "cxxinductor" / "__init__.py")
    assert run([venv / "bin" / "cxxinductor", "--version"], env=ENVIRONMENT, cwd=tmp_path).startswith("cxxinductor ")


def test_c_and_cxx_programs_build_against_the_installed_package(installed, tmp_path):
    package = installed[1] / "cxxinductor"
    environment = ENVIRONMENT | {"PKG_CONFIG_PATH": str(package / "lib" / "pkgconfig"), "CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    libtorch = run(["pkg-config", "--variable=libtorch", "cxxinductor"], env=environment).strip()
    assert Path(libtorch).resolve() == (SITE / "torch").resolve()
    flags = run(["pkg-config", "--cflags", "--libs", "cxxinductor"], env=environment).split()
    run(["cc", "-std=c99", "-o", tmp_path / "c_program", ROOT / "tests" / "api" / "c_host.c", *flags, "-lm"])
    assert run([tmp_path / "c_program", ROOT / "tests" / "data" / "pt2", tmp_path / "c_host.cxxi"], env=environment) == "the C API works\n"
    # PyTorch is found as the neighbouring package.
    for example in ("c_host", "custom_op", "host_simt"):
        run(["cmake", "-S", ROOT / "examples" / example, "-B", tmp_path / example, f"-DCMAKE_PREFIX_PATH={package}"], env=environment)
        run(["cmake", "--build", tmp_path / example], env=environment)
    assert "output f32[3, 2]" in run([tmp_path / "c_host" / "run_package", ROOT / "tests" / "data" / "pt2" / "mlp.pt2"], env=environment)
    # The program's own op and reduction are in one kernel.
    assert "1 kernels, 1 launches and 0 extern calls" in run([tmp_path / "custom_op" / "custom_op"], env=environment | {"CUDA_VISIBLE_DEVICES": ""})
    # A target that is built outside of the tree.
    program = [installed[0] / "bin" / "python", ROOT / "examples" / "host_simt" / "try_target.py", tmp_path / "host_simt" / "libhost_simt.so"]
    assert "5 programs give eager's results" in run(program, env=environment, cwd=tmp_path)
