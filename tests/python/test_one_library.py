"""libcxxinductor.so opened alone, twice in one process, and beside another PyTorch: through its C API, without Python's PyTorch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import cxxinductor

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(cxxinductor.__file__).parent / "libcxxinductor.so"
MODEL = ROOT / "tests" / "data" / "pt2" / "mlp.pt2"

PROLOGUE = """
import ctypes, os, sys

def opened(path):
    library = ctypes.CDLL(path, mode=os.RTLD_NOW)  # every symbol is found at once
    library.cxxinductor_last_error.restype = library.cxxinductor_version.restype = ctypes.c_char_p
    return library

def load(library, model):
    handle = ctypes.c_void_p()
    status = library.cxxinductor_load(model.encode(), None, ctypes.byref(handle))
    return status, library.cxxinductor_last_error().decode()
"""


def python(text, *arguments, **environment):
    done = subprocess.run([sys.executable, "-c", PROLOGUE + text, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env=os.environ | environment)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_library_alone_is_enough():
    text = """
library = opened(sys.argv[1])
print(library.cxxinductor_version().decode(), load(library, sys.argv[2]), "torch" in sys.modules)
"""
    assert python(text, LIBRARY, MODEL) == f"{cxxinductor.__version__} (0, '') False\n"


def test_the_library_alone_registers_its_ops():
    text = """
opened(sys.argv[1])
import torch
assert "cxxinductor" not in sys.modules
print(torch.ops.cxxinductor.input_version(torch.ones(1), 0), torch.ops.cxxinductor.philox_state.default._schema)
"""
    assert python(text, LIBRARY).startswith("None cxxinductor::philox_state(int[] counts")


def test_two_copies_are_refused(tmp_path):
    other = tmp_path / "libcxxinductor.so.0"
    shutil.copy2(LIBRARY, other)
    text = """
first = opened(sys.argv[1])
assert load(first, sys.argv[3]) == (0, "")
second = opened(sys.argv[2])
for library in (second, first):
    print(*load(library, sys.argv[3]))
"""
    lines = python(text, LIBRARY, other, MODEL, LD_LIBRARY_PATH=str(Path(torch.__file__).parent / "lib")).splitlines()
    version = cxxinductor.__version__
    for line, own, found in zip(lines, (other, LIBRARY), (LIBRARY, other), strict=True):
        assert line.startswith(f"1 two copies of cxxinductor are loaded: {own} ({version}) and {found} ({version}); "), line


def test_two_copies_are_refused_by_torchscript_files(tmp_path):
    """By a program that knows TorchScript alone: its files make the library's objects."""
    other = tmp_path / "libcxxinductor.so.0"
    shutil.copy2(LIBRARY, other)
    module = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval(), torch.ones(2, 4))
    cxxinductor.optimize(module).save(str(tmp_path / "model.pt"))
    text = """
import torch
torch.ops.load_library(sys.argv[1])
print(torch.jit.load(sys.argv[3])(torch.ones(2, 4)).shape)
opened(sys.argv[2])
try:
    torch.jit.load(sys.argv[3])
except RuntimeError as error:
    print(error)
"""
    found = python(text, LIBRARY, other, tmp_path / "model.pt", LD_LIBRARY_PATH=str(Path(torch.__file__).parent / "lib"))
    assert found.startswith("torch.Size([2, 4])\n") and f"two copies of cxxinductor are loaded: {LIBRARY}" in found


@pytest.fixture(scope="module")
def newer_torch(tmp_path_factory):
    """A library that says what PyTorch 2.12 would."""
    folder = tmp_path_factory.mktemp("torch")
    (folder / "version.c").write_text("unsigned long aoti_torch_abi_version(void) { return 2ul << 56 | 12ul << 48; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(folder / "version.so"), str(folder / "version.c")], check=True)
    return folder / "version.so"


def test_another_pytorch_is_refused(newer_torch):
    text = "print(*load(opened(sys.argv[1]), sys.argv[2]))"
    found = python(text, LIBRARY, MODEL, LD_PRELOAD=str(newer_torch))
    assert found.startswith(f"1 cxxinductor {cxxinductor.__version__} was built for PyTorch 2.11."), found
    assert "this process has loaded 2.12.0; install" in found


def test_another_pytorch_is_refused_in_python(newer_torch):
    done = subprocess.run([sys.executable, "-c", "import cxxinductor"], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"LD_PRELOAD": str(newer_torch)})  # fmt: skip
    assert done.returncode != 0 and "ImportError" in done.stderr and "this process has loaded 2.12.0" in done.stderr
