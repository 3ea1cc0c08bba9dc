"""The libraries in a process: no symbol of ours is another library's, and what they need every CPU has."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import torch

import cxxinductor

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(cxxinductor.__file__).parent
LIBRARIES = [PACKAGE / "libcxxinductor.so", PACKAGE / "_C.so"]
TORCH = Path(torch.__file__).parent / "lib"
EXAMPLE = ROOT / "build" / "release" / "examples" / "CMakeFiles" / "run_model.dir" / "run_model.cpp.o"


def symbols(library, *arguments):
    done = subprocess.run(["nm", "-C", *arguments, str(library)], capture_output=True, text=True, check=True)
    return [line.split(maxsplit=2 if line[0] != " " else 1) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_no_std_filesystem(library):
    """torch's libraries export std::filesystem of another version of libstdc++: whoever is linked first wins."""
    assert [symbol for symbol in symbols(library, "-D") if "std::filesystem" in symbol[-1]] == []


def test_other_libraries_symbols_are_not_exported():
    """A host's fmt, or another library's, must not be replaced by what we contain of it; exports.map says what is exported."""
    for library, allowed in zip(LIBRARIES, (r"cxxinductor_\w+|(?:vtable for |typeinfo (?:name )?for )?cxxinductor::.*", "PyInit__C"), strict=True):
        exported = {symbol[-1] for symbol in symbols(library, "-D", "--defined-only")}
        assert exported and [name for name in exported if not re.fullmatch(allowed, name)] == []


def test_the_module_has_no_second_copy_of_the_librarys_state():
    defined = symbols(PACKAGE / "_C.so", "--defined-only")
    if not defined:
        pytest.skip("the module is stripped")
    data = [symbol[-1] for symbol in defined if symbol[1] in "bBdD" and symbol[-1].startswith("cxxinductor::")]
    assert data != [] and [name for name in data if not name.startswith("cxxinductor::bindings::")] == []


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_no_function_local_statics_that_a_fork_could_leave_half_made(library):
    ours = [symbol[-1] for symbol in symbols(library) if symbol[-1].startswith("guard variable for cxxinductor::")]
    assert ours == [], "use MadeOnce (support/fork_locks.h)"


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_prebuilt_code_needs_no_avx(library):
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(library)], capture_output=True, text=True, check=True).stdout
    assert len(text) > 100_000
    assert re.search(r"%[yz]mm", text) is None


@pytest.mark.skipif(not EXAMPLE.exists(), reason="built by `make test`")
def test_example_runs_with_torch_linked_first(tmp_path):
    program, inputs = tmp_path / "run_model", tmp_path / "inputs.pt"
    torch.save([torch.randn(3, 2)], inputs)
    subprocess.run(
        ["c++", "-Wl,--no-as-needed", "-o", str(program), str(EXAMPLE), f"-L{TORCH}", "-ltorch", "-ltorch_cpu", "-lc10",
         f"-L{PACKAGE}", "-lcxxinductor", f"-Wl,-rpath,{TORCH}:{PACKAGE}"],
        check=True,
    )  # fmt: skip
    done = subprocess.run(
        [str(program), str(ROOT / "tests" / "data" / "pt2" / "mlp.pt2"), str(inputs)],
        # Each binding of a symbol is written down.
        env={**os.environ, "LD_DEBUG": "bindings", "LD_BIND_NOW": "1", "LD_DEBUG_OUTPUT": str(tmp_path / "log"),
             "CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "output CPUFloatType[3, 2]" in done.stdout
    defined = {
        fields[-1]
        for fields in (line.split() for line in subprocess.run(
            ["nm", "-D", "--defined-only", str(LIBRARIES[0])], capture_output=True, text=True, check=True
        ).stdout.splitlines())
        if fields[-2] in "TtWw"
    }
    assert len(defined) > 100
    pattern = re.compile(r"binding file \S*libcxxinductor\.so \[0\] to (\S*) \[0\]: normal symbol `([^']*)'")
    bindings = [found.groups() for path in tmp_path.glob("log*") for found in pattern.finditer(path.read_text())]
    assert len(bindings) > 100
    elsewhere = {symbol for library, symbol in bindings if symbol in defined and "libcxxinductor" not in library}
    assert elsewhere == set(), "functions of ours that another library's replace"
