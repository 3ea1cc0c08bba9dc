"""What happens when something outside the compiler fails: the promised path is taken, with one warning, and the answer is right.

Faults are made with what a machine offers: PATH, permissions, limits, damaged files, signals. Each scenario runs in a process
of its own, forked from a server that has imported torch and compiled nothing.
"""

import concurrent.futures
import ctypes
import os
import signal
import stat
import subprocess
import sys
import threading
import warnings
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import children
import pytest
import torch

import cxxinductor
from cxxinductor import _C

PRINTS_VERSION = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'a compiler 1.0' && exit 0\n"


@pytest.fixture(scope="module")
def processes():
    def run(*functions, timeout=120):
        """Results of the functions, each run in a fresh process, all at once; what a process raises is raised here."""
        pools = [concurrent.futures.ProcessPoolExecutor(1, mp_context=children.context()) for _ in functions]
        try:
            futures = [pool.submit(f) if callable(f) else pool.submit(*f) for pool, f in zip(pools, functions)]
            return [future.result(timeout) for future in futures]
        finally:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)

    return run


def compile_and_run(environment=(), options=None, before=None, size=257):
    """Compiles a small program twice over. Returns counters, warnings of ours and whether all answers were right."""
    os.environ.update(environment)
    if before is not None:
        before()

    def fn(x):
        return torch.softmax(x * 2 + 1, -1).tanh()

    x = torch.randn(5, size)
    right = True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = torch.compile(fn, backend="cxxinductor", options=options or {})
        for _ in range(2):
            right = right and torch.allclose(compiled(x), fn(x), rtol=1e-5, atol=1e-6)
    ours = [str(w.message) for w in caught if "cxxinductor" in str(w.message)]
    return cxxinductor.counters(), ours, right


def script(folder, text):
    path = folder / "c++"
    path.write_text(PRINTS_VERSION + text)
    path.chmod(0o755)
    return {"PATH": str(folder), "TMPDIR": str(folder), "CXXINDUCTOR_CACHE": "off"}


def drop_capabilities():
    """From here on root is bound by the permissions of files like everybody."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)())


# ---- compilers -----------------------------------------------------------------------------------------------------------


def test_no_host_compiler(processes, tmp_path):
    environment = {"PATH": str(tmp_path), "CXXINDUCTOR_CACHE": "off"}
    [(counters, messages, right)] = processes((compile_and_run, environment))
    assert right and counters["aten_fallback"] == 1 and counters["graphs"] == 0
    assert len(messages) == 1
    assert "runs op by op through ATen: no host compiler" in messages[0] and "install g++ or clang++" in messages[0]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("echo 'this source is bad' >&2; exit 1\n", "this source is bad"),
        ("while [ $# -gt 1 ]; do [ $1 = -o ] && echo nonsense > $2; shift; done\n", "cannot be loaded"),
    ],
    ids=["compile", "load"],
)
def test_compile_or_load_failure_leaves_a_reproducer(text, reason, processes, tmp_path):
    [(counters, messages, right)] = processes((compile_and_run, script(tmp_path, text)))
    assert right and counters["aten_fallback"] == 1 and counters["graphs"] == 0
    assert len(messages) == 1
    assert "runs op by op through ATen" in messages[0] and reason in messages[0]
    [error] = tmp_path.glob("cxxinductor-reproducer-*/*/error.txt")
    folder = error.parent
    assert str(folder) in messages[0]
    assert reason in error.read_text() and "target: cpu x86-64" in (folder / "settings.txt").read_text()
    assert "aten::" in (folder / "calls.txt").read_text()
    assert (folder / "01-import.txt").read_text().startswith("graph @inference")
    assert list((folder / "kernels").glob("*.cpp"))


def test_a_reproducer_that_cannot_be_written_changes_nothing_else(processes, tmp_path):
    environment = script(tmp_path, "exit 1\n") | {"CXXINDUCTOR_DUMP_DIR": str(tmp_path / "c++")}
    [(counters, messages, right)] = processes((compile_and_run, environment))
    assert right and counters["aten_fallback"] == 1
    assert len(messages) == 1 and "no folder was written" in messages[0]


def test_an_error_of_the_standard_library_is_a_bug_with_a_reproducer(tmp_path):
    # Calls without results come from no reader: the pass that reads the first one throws std::out_of_range.
    builder = _C.CallGraphBuilder("graph")
    x, y = (builder.tensor_input(name, 9, "cpu", 0, [4], [1], 0, i, name, False, False) for i, name in enumerate("xy"))
    builder.output(builder.call("aten::add", "Tensor", [x, y], {}, [], False, ("", 0, "", "")))
    options = _C.Options()
    options.set("dump_dir", str(tmp_path))
    reason = _C.compile(builder, options).fallback_reason
    [error] = tmp_path.glob("**/error.txt")
    assert "This is a bug of cxxinductor" in reason and str(error.parent) in reason
    assert "unexpected error" in error.read_text()
    assert "aten::add" in (error.parent / "calls.txt").read_text()


def relu_on_cuda():
    builder = _C.CallGraphBuilder("graph")
    x = builder.tensor_input("x", 6, "cuda", 0, [4], [1], 0, 1, "x", False, False)
    result = ("y", 6, "cuda", 0, [4], [1], 0, 2, False, False)
    builder.output(builder.call("aten::relu", "", [x], {}, [result], False, ("", 0, "", "")))
    return builder


def units_compiled_after_cuda(threads):
    """How many units the C++ compiler is given, one per thread, for a graph on the CPU where a graph on a GPU came first."""
    options = _C.Options()
    options.set("compile_threads", str(threads))
    options.set("cache", "off")
    _C.compile(relu_on_cuda(), options)
    given, _ = _C.compile_progress()
    chains = ("exp", "sin", "cos", "tanh")  # a kernel each
    inputs = ", ".join(f"%x_{op}: f32[{size}]" for size, op in enumerate(chains, 8))
    lines = [f"  %{k}_{op} = {op}(%{k - 1 if k else 'x'}_{op})\n" for op in chains for k in range(60)]
    results = ", ".join(f"%59_{op}" for op in chains)
    _C.compile_text(f"graph @f({inputs}) {{\n{''.join(lines)}  return {results}\n}}\n", options)
    return _C.compile_progress()[0] - given


def test_the_first_compile_decides_the_threads_on_a_gpu_too(processes):
    assert processes((units_compiled_after_cuda, 3)) == [3]


def test_no_gpu_says_so_and_falls_back():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    reason = _C.compile(relu_on_cuda(), _C.Options()).fallback_reason
    assert "there is no CUDA driver" in reason and "graphs on the CPU are all the same" in reason or "cuInit failed" in reason


# ---- memory --------------------------------------------------------------------------------------------------------------


def test_out_of_memory_is_torchs_error_and_the_next_call_works(device):
    def fn(x):
        return x * 2 + 1

    def spread(n):
        x = torch.ones(1, device=device).expand(n)
        torch._dynamo.mark_dynamic(x, 0)
        return x

    compiled = torch.compile(fn, backend="cxxinductor")
    assert compiled(spread(10)).tolist() == [3.0] * 10
    with pytest.raises(RuntimeError) as eager_error:
        fn(spread(2**46))
    with pytest.raises(RuntimeError) as error:
        compiled(spread(2**46))
    assert error.type is eager_error.type and "memory" in str(error.value)
    assert compiled(spread(12)).tolist() == [3.0] * 12
    assert cxxinductor.counters()["graphs"] == 1 and cxxinductor.counters()["aten_fallback"] == 0


# ---- the cache -----------------------------------------------------------------------------------------------------------


def assert_compiled(result, complaint=None):
    counters, messages, right = result
    assert right and counters["graphs"] == 1 and counters["aten_fallback"] == 0
    if complaint is None:
        assert messages == []
    else:
        assert len(messages) == 1 and "plans and compiled kernels are not kept" in messages[0] and complaint in messages[0]


def test_cache_that_is_no_folder(processes, tmp_path):
    (tmp_path / "cache").write_text("")
    [result] = processes((compile_and_run, {"CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}))
    assert_compiled(result, "is not a folder")


def test_cache_that_is_read_only(processes, tmp_path):
    cache = {"CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    assert_compiled(*processes((compile_and_run, cache)))
    (tmp_path / "cache").chmod(stat.S_IRUSR | stat.S_IXUSR)
    kept, other = processes(
        (compile_and_run, cache, None, drop_capabilities), (compile_and_run, cache, None, drop_capabilities, 300)
    )
    assert_compiled(kept)
    assert_compiled(other, "Permission denied")
    (tmp_path / "cache").chmod(stat.S_IRWXU)


def damage(folder, how):
    entries = [path for path in folder.iterdir() if path.suffix == ""]
    assert entries
    sizes = {path: path.stat().st_size for path in entries}
    for path in entries:
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes({
            "truncated": data[:middle],
            "flipped": data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :],
            "emptied": b"",
            "another key's": data[:24] + bytes(32) + data[56:],
            "nonsense": b"nonsense" * 1000,
        }[how])
    return sizes


@pytest.mark.parametrize("how", ["truncated", "flipped", "emptied", "another key's", "nonsense"])
def test_damaged_cache_entries_are_rebuilt(how, processes, tmp_path):
    cache = {"CXXINDUCTOR_CACHE_DIR": str(tmp_path)}
    assert_compiled(*processes((compile_and_run, cache)))
    sizes = damage(tmp_path, how)
    assert_compiled(*processes((compile_and_run, cache)))
    for path, size in sizes.items():
        assert path.read_bytes().startswith(b"cxxiobj\n") and path.stat().st_size > size // 2 + 1


def compile_until_killed(environment, seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
    while True:
        torch._dynamo.reset()
        compile_and_run(environment)
        for entry in Path(environment["CXXINDUCTOR_CACHE_DIR"]).iterdir():
            entry.unlink(missing_ok=True)


def test_killed_while_compiling_and_writing(processes, tmp_path):
    cache = {"CXXINDUCTOR_CACHE_DIR": str(tmp_path)}
    for seconds in (1.0, 1.7):
        with pytest.raises(BrokenProcessPool):
            processes((compile_until_killed, cache, seconds))
    assert_compiled(*processes((compile_and_run, cache)))


def test_eight_processes_share_a_cache(processes, tmp_path):
    cache = {"CXXINDUCTOR_CACHE_DIR": str(tmp_path)}
    for result in processes(*[(compile_and_run, cache)] * 8, timeout=300):
        assert_compiled(result)


# ---- what the user gets wrong ----------------------------------------------------------------------------------------------


def test_unknown_environment_variable_lists_the_known_ones(monkeypatch):
    monkeypatch.setenv("CXXINDUCTOR_VERFY", "each")
    with pytest.raises(Exception, match="did you mean 'CXXINDUCTOR_VERIFY'") as error:
        torch.compile(lambda x: x + 1, backend="cxxinductor")(torch.ones(2))
    for row in cxxinductor.option_table():
        assert row["environment"] in str(error.value)


def test_unknown_mode():
    with pytest.raises(Exception, match="unknown mode 'fastest'; known modes: default, reduce-overhead"):
        torch.compile(lambda x: x + 1, backend="cxxinductor", mode="fastest")(torch.ones(2))


def test_other_torch_is_an_error_that_names_both_versions(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("__version__ = '2.10.1+cpu'\n")
    package = str(Path(cxxinductor.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", "import cxxinductor.backend"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), package])},
        capture_output=True, text=True, timeout=60,
    )
    assert done.returncode != 0
    assert "ImportError: cxxinductor is built for torch 2.11.*, found 2.10.1+cpu; install torch==2.11.*" in done.stderr
