"""Optimized TorchScript modules in files: with their compiled forms, in other processes, trusted and not, damaged, and in a host that knows
nothing of the library."""

from __future__ import annotations

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
import torch
from children import run_python
from test_torchscript import LIBRARY, Pyramid, Small

import cxxinductor

HOST = Path(__file__).resolve().parents[2] / "build" / "release" / "tests" / "torchscript_host"
# Of RFC 8032, section 7.1, test 1.
KEY = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"
PUBLIC_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

# Runs a file's calls with the library loaded and nothing else of ours; prints what was compiled.
RUN_SAVED = f"""
import json, sys, torch
torch.ops.load_library({str(LIBRARY)!r})
calls, expected = torch.load({{case!r}})
module = torch.jit.load({{path!r}})
with torch.inference_mode():
    found = [module(*call) for call in calls]
assert "cxxinductor" not in sys.modules
for a, b in zip(found, expected):
    for name in b:
        torch.testing.assert_close(a[name], b[name])
import cxxinductor
from cxxinductor import torchscript
print(json.dumps([cxxinductor._C.compile_progress()[0], cxxinductor.counters(), torchscript.describe(module)]))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with plain.pt (torch.jit.save), signed.pt (cxxinductor.package) and case.pt (calls and results)."""
    folder = tmp_path_factory.mktemp("saved")
    module = Pyramid().eval()
    optimized = cxxinductor.optimize(torch.jit.script(module))
    calls = [({"a": torch.randn(batch, 2, 8, 8), "b": torch.randn(batch, 3, 4, 4)},) for batch in (2, 1, 5, 7, 2)]  # some sizes are symbols
    with torch.inference_mode():
        expected = [module(*call) for call in calls]
        for call in calls:
            optimized(*call)
    torch.save([calls, expected], folder / "case.pt")
    torch.save(calls[2], folder / "inputs.pt")
    torch.save(expected[2], folder / "outputs.pt")
    (folder / "key.pem").write_text(KEY)
    cxxinductor.package(optimized, folder / "signed.pt", signing_key=folder / "key.pem")
    other = cxxinductor.optimize(torch.jit.script(module))
    with torch.inference_mode():
        for call in calls:
            other(*call)
    other.save(str(folder / "plain.pt"))
    return folder


def run_saved(folder: Path, name: str, tmp_path: Path, compiler: bool, **environment: str) -> tuple[int, dict[str, int], str]:
    """What a process compiled, its counters and explain(): with an empty cache and, unless `compiler`, no program on PATH."""
    environment["CXXINDUCTOR_CACHE_DIR"] = str(tmp_path / "cache")
    if not compiler:
        environment["PATH"] = str(tmp_path / "nothing")
    code = RUN_SAVED.format(case=str(folder / "case.pt"), path=str(folder / name))
    done = run_python(code, environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    compiled, counters, text = json.loads(done.stdout)
    return compiled, counters, text


@pytest.mark.parametrize(
    ("name", "environment"), [("signed.pt", {"CXXINDUCTOR_TRUSTED_KEYS": PUBLIC_KEY}), ("plain.pt", {"CXXINDUCTOR_TRUST": "1"})]
)
def test_trusted_files_run_without_compiling(saved: Path, tmp_path: Path, name: str, environment: dict[str, str]) -> None:
    compiled, counters, text = run_saved(saved, name, tmp_path, compiler=False, **environment)
    assert compiled == 0, text
    assert counters["graphs"] >= 2 and counters["kernels"] > 0 and counters["aten_fallback"] == counters["eager_fallback"] == 0, (counters, text)
    assert "machine code is not used" not in text


@pytest.mark.parametrize(
    ("name", "environment", "reason"),
    [
        ("plain.pt", {"CXXINDUCTOR_TRUSTED_KEYS": PUBLIC_KEY}, "it is not signed, and option trust is off"),
        ("signed.pt", {"CXXINDUCTOR_TRUSTED_KEYS": "0" * 64}, f"it is signed with key {PUBLIC_KEY}, which option trusted_keys does not list"),
    ],
)
def test_other_files_are_compiled_again(saved: Path, tmp_path: Path, name: str, environment: dict[str, str], reason: str) -> None:
    compiled, counters, text = run_saved(saved, name, tmp_path, compiler=True, **environment)
    assert compiled > 0 and counters["eager_fallback"] == counters["aten_fallback"] == 0, (counters, text)
    assert reason in text


def test_without_trust_and_compiler_files_run_through_aten(saved: Path, tmp_path: Path) -> None:
    compiled, counters, text = run_saved(saved, "signed.pt", tmp_path, compiler=False)
    assert compiled == 0 and counters["aten_fallback"] > 0 and "op by op" in text


def library_path() -> str:
    """Where a host finds LibTorch that was linked on another machine."""
    return os.pathsep.join([str(Path(torch.__file__).parent / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])


@pytest.mark.skipif(not HOST.exists(), reason="built by `make test`")
def test_a_host_that_knows_torchscript_alone(saved: Path, tmp_path: Path) -> None:
    """LD_PRELOAD is enough, and a compiler that would be seen is not called."""
    (tmp_path / "bin").mkdir()
    for name in ("c++", "g++", "clang++"):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n/bin/echo called >> {tmp_path}/log\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    done = subprocess.run(
        [str(HOST), str(saved / "signed.pt"), str(saved / "inputs.pt"), str(tmp_path / "outputs.pt"), "3"],
        env={"PATH": str(tmp_path / "bin"), "LD_LIBRARY_PATH": library_path(), "LD_PRELOAD": str(LIBRARY),
             "CXXINDUCTOR_TRUSTED_KEYS": PUBLIC_KEY, "CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "CXXINDUCTOR_EXPLAIN": "1"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = torch.load(tmp_path / "outputs.pt", weights_only=False)  # with the types of TorchScript's dictionaries
    expected = torch.load(saved / "outputs.pt")
    for name in expected:
        torch.testing.assert_close(found[name], expected[name])
    assert not (tmp_path / "log").exists() and "op by op" not in done.stderr


def replaced(path: Path, result: Path, old: bytes, new: bytes, only: str) -> Path:
    """The archive with bytes of some of its entries replaced."""
    count = 0
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith(only):
                count += data.count(old)
                data = data.replace(old, new)
            target.writestr(name, data)
    assert count
    return result


def load_elsewhere(path: Path) -> str:
    done = run_python(
        f"""
        import torch
        torch.ops.load_library({str(LIBRARY)!r})
        try:
            torch.jit.load({str(path)!r})
            print("loaded")
        except RuntimeError as error:
            print("refused:", error)
        """,
        environment={"CXXINDUCTOR_TRUST": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_files_set_no_options_but_those_that_shape_kernels(saved: Path, tmp_path: Path) -> None:
    """A file must not name a library to open, a folder to write to, or its own author as trusted."""
    changed = replaced(saved / "plain.pt", tmp_path / "changed.pt", b"numerics", b"dump_dir", "data.pkl")
    assert "expected options that shape kernels, found 'dump_dir'" in load_elsewhere(changed)


def test_damaged_forms_are_refused(saved: Path, tmp_path: Path) -> None:
    assert load_elsewhere(saved / "plain.pt") == "loaded\n"
    changed = replaced(saved / "plain.pt", tmp_path / "changed.pt", b"library_version", b"library_versioN", "")
    assert "refused: package: section manifest 'manifest': its digest does not match" in load_elsewhere(changed)
    changed = replaced(saved / "plain.pt", tmp_path / "changed.pt", b"cxxipkg\n", b"CXXIPKG\n", "")
    assert "expected a file that begins with" in load_elsewhere(changed)


def test_package_says_what_it_cannot_do(tmp_path: Path) -> None:
    optimized = cxxinductor.optimize(torch.jit.script(Small().eval()))
    with pytest.raises(cxxinductor.UserError, match="expected a module that was called"):
        cxxinductor.package(optimized, tmp_path / "model.pt")
    with pytest.raises(cxxinductor.UserError, match="expected a module that optimize returned"):
        cxxinductor.package(torch.jit.script(Small().eval()), tmp_path / "model.pt")
    with torch.inference_mode():
        optimized(torch.ones(3, 8))
    with pytest.raises(cxxinductor.UserError, match="expected an architecture of x86-64"):
        cxxinductor.package(optimized, tmp_path / "model.pt", archs=["arm64"])
    with pytest.raises(cxxinductor.UserError, match="/nowhere/model.pt"):
        cxxinductor.package(optimized, "/nowhere/model.pt")
    assert not (tmp_path / "model.pt").exists()


def edited(path: Path, pattern: str, replacement: str, only: str = "") -> Path:
    """The archive with text of its code replaced."""
    result = path.with_name("edited.pt")
    count = 0
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith(".py") and only in name:
                text, n = re.subn(pattern, replacement, data.decode())
                count += n
                data = text.encode()
            target.writestr(name, data)
    assert count
    return result


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"run_region\((\w+), \((\w+),\)\)", r"run_region(\1, (\2, \2))"),  # more arguments
        (r"run_region\((\w+), \((\w+),\)\)", r"run_region(\1, ())"),
        (r"run_region\((\w+), \((\w+),\)\)", r"run_region(\2, (\2,))"),  # not a region
        (r"run_region\((\w+), \((\w+),\)\)", r"run_region(\1, \1)"),
        (r"run_region\((\w+), \((\w+),\)\)", r"run_region(\1, ('text',))"),
        (r"unchecked_cast\(Tuple\[Tensor\]", r"unchecked_cast(Tuple[Tensor, Tensor]"),
    ],
)
def test_edited_archives_are_errors(tmp_path: Path, pattern: str, replacement: str) -> None:
    path = tmp_path / "model.pt"
    cxxinductor.optimize(torch.jit.script(Small().eval())).save(str(path))
    done = run_python(
        f"""
        import torch
        torch.ops.load_library({str(LIBRARY)!r})
        try:
            with torch.inference_mode():
                torch.jit.load({str(edited(path, pattern, replacement))!r})(torch.ones(3, 8))
        except RuntimeError as error:
            print("refused:", error)
        """
    )
    assert done.returncode == 0 and "refused:" in done.stdout, (done.returncode, done.stdout, done.stderr)
