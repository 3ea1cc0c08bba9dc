"""Compiles in programs that fork, handle signals, close descriptors or end while something compiles.

Each scenario runs in a process of its own, forked from a server that has imported torch and compiled nothing.
"""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest
import torch

import cxxinductor
from cxxinductor import _C
from test_faults import PRINTS_VERSION, compile_and_run, processes  # noqa: F401: a fixture

F32 = 6
HANGS = PRINTS_VERSION + 'case $1 in -print*) exit 1;; esac\ntouch "$0.begun"\nexec sleep 100\n'


def environment_of(folder, compiler=None):
    """A cache of its own; with ``compiler``, a script's text, that is the only compiler."""
    environment = {"CXXINDUCTOR_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder)}
    if compiler is not None:
        (folder / "bin").mkdir()
        path = folder / "bin" / "c++"
        path.write_text(compiler)
        path.chmod(0o755)
        environment["PATH"] = f"{folder / 'bin'}:/usr/bin:/bin"
    return environment


def options_of(environment):
    os.environ.update(environment)
    return _C.Options.from_environment([(k, v) for k, v in os.environ.items() if k.startswith("CXXINDUCTOR_")])


def compile_graph(n, options, device="cpu"):
    """relu(x) + x for n elements, through the C++ compiler alone: no Python locks are involved."""
    builder = _C.CallGraphBuilder("graph")

    def info(name, storage):
        return (name, F32, device, 0, [n], [1], 0, storage, False, False)

    origin = ("", 0, "", "")
    x = builder.tensor_input("x", F32, device, 0, [n], [1], 0, 1, "x", False, False)
    [y] = builder.call("aten::relu", "", [x], {}, [info("y", 2)], False, origin)
    builder.output(builder.call("aten::mul", "Tensor", [y, x], {}, [info("z", 3)], False, origin))
    graph = _C.compile(builder, options)
    assert graph.fallback_reason == "", graph.fallback_reason
    return graph


def exit_status_of_child(work):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)  # a deadlock ends the child
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


# ---- fork ----------------------------------------------------------------------------------------------------------------


def fork_while_threads_compile(environment, forks):
    options = options_of(environment)
    torch.set_num_threads(1)
    stop = threading.Event()

    def compile_on(first):
        n = first
        while not stop.is_set():
            compile_graph(n % 40 + 1, options)
            n += 2

    def work():
        x = torch.linspace(-1, 1, 33)
        [result] = compile_graph(33, options)([x])
        assert torch.equal(result, x.relu() * x)

    threads = [threading.Thread(target=compile_on, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks is the point
        statuses = [exit_status_of_child(work) for _ in range(forks)]
    stop.set()
    for thread in threads:
        thread.join()
    return statuses


def test_children_forked_while_threads_compile_can_compile(processes, tmp_path):
    [statuses] = processes((fork_while_threads_compile, environment_of(tmp_path), 60), timeout=400)
    assert statuses == [0] * 60


def model(x):
    return torch.softmax(x * 2 + 1, -1).tanh()


def model_of_workers(x):
    return (x - x.mean(-1, keepdim=True)).relu()


class Rows(torch.utils.data.Dataset):
    """Items that a model compiled before the fork has made, then one compiled in the worker."""

    def __init__(self, compiled):
        self.compiled = compiled
        self.compiled_here = torch.compile(model_of_workers, backend="cxxinductor")

    def __len__(self):
        return 8

    def __getitem__(self, i):
        x = torch.full((3, 65), float(i)) + torch.arange(65)
        counters = cxxinductor.counters()
        return x, self.compiled(x), self.compiled_here(x), counters["aten_fallback"] + counters["eager_fallback"]


def run_data_loader(environment):
    # Where there is a GPU, Dynamo asks for the state of its generator in each compile: torch refuses that in a forked process.
    os.environ.update(environment, CUDA_VISIBLE_DEVICES="")
    compiled = torch.compile(model, backend="cxxinductor", dynamic=False)
    compiled(torch.randn(3, 65))
    loader = torch.utils.data.DataLoader(Rows(compiled), num_workers=2, multiprocessing_context="fork", timeout=100)
    rows = 0
    for x, before, here, fallbacks in loader:
        assert torch.allclose(before, model(x), atol=1e-6) and torch.allclose(here, model_of_workers(x), atol=1e-6)
        assert fallbacks.item() == 0
        rows += 1
    return rows


def test_data_loader_workers_run_and_compile_models(processes, tmp_path):
    assert processes((run_data_loader, environment_of(tmp_path)), timeout=300) == [8]


# ---- signals and deadlines -------------------------------------------------------------------------------------------------


def interrupt_a_compile(environment, begun):
    """Seconds from the signal to KeyboardInterrupt; then whether a compile with another compiler works."""
    sent = []

    def send():
        while not os.path.exists(begun):
            time.sleep(0.01)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        compile_and_run(environment)
    seconds = time.monotonic() - sent[0]
    os.remove(os.path.join(os.path.dirname(begun), "c++"))
    torch._dynamo.reset()
    return seconds, compile_and_run()


def test_interrupting_a_compile_is_a_keyboard_interrupt_at_once(processes, tmp_path):
    environment = environment_of(tmp_path, HANGS)
    [(seconds, (counters, messages, right))] = processes((interrupt_a_compile, environment, str(tmp_path / "bin" / "c++.begun")))
    assert seconds < 1.0
    assert right and messages == [] and counters["graphs"] == 1 and counters["aten_fallback"] == 0
    assert list(tmp_path.glob("cxxinductor-*")) == []


def test_compiler_that_hangs_is_stopped(processes, tmp_path):
    environment = environment_of(tmp_path, HANGS) | {"CXXINDUCTOR_COMPILE_TIMEOUT": "1"}
    [(counters, messages, right)] = processes((compile_and_run, environment))
    assert right and counters["aten_fallback"] == 1
    assert len(messages) == 1 and "after 1 s; raise the option compile_timeout" in messages[0] and "bug" not in messages[0]


def compile_with_sigchld_ignored(environment):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return compile_and_run(environment)


def test_ignored_sigchld(processes, tmp_path):
    [(counters, messages, right)] = processes((compile_with_sigchld_ignored, environment_of(tmp_path)))
    assert right and messages == [] and counters["graphs"] == 1 and counters["aten_fallback"] == 0


def test_compiler_installed_later_is_found(processes, tmp_path):
    [(first, second)] = processes((compile_before_and_after_install, environment_of(tmp_path) | {"PATH": str(tmp_path)}))
    assert first[0]["aten_fallback"] == 1 and "no host compiler" in first[1][0]
    assert second[0]["aten_fallback"] == 1 and second[0]["graphs"] == 1 and second[2]


def compile_before_and_after_install(environment):
    first = compile_and_run(environment)
    torch._dynamo.reset()
    return first, compile_and_run({"PATH": "/usr/bin:/bin"})


# ---- descriptors -----------------------------------------------------------------------------------------------------------


def close_descriptors_between_compiles(environment):
    os.environ.update(environment)
    x = torch.zeros(33)
    compiled = [torch.compile(lambda x, k=k: x + k, backend="cxxinductor", dynamic=False) for k in (1.0, 100.0)]
    first = compiled[0](x)[0].item()
    os.closerange(100, 250)  # as a program does that becomes a daemon; the standard ones and Python's own lie below
    for descriptor in range(3, 100):
        try:
            if "cxxinductor" in os.readlink(f"/proc/self/fd/{descriptor}"):
                os.close(descriptor)
        except OSError:
            pass
    return first, compiled[1](x)[0].item(), compiled[0](x)[0].item()


def test_closed_descriptors_do_not_mix_up_kernels(processes, tmp_path):
    assert processes((close_descriptors_between_compiles, environment_of(tmp_path))) == [(1.0, 100.0, 1.0)]


def compile_with_few_descriptors(environment, graphs):
    options = options_of(environment)
    compile_graph(1, options)
    used = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 16, used + 16))
    kept = [compile_graph(n % 4 + 1, options) for n in range(graphs)]
    x = torch.linspace(-1, 1, 4)
    return torch.equal(kept[3]([x])[0], x.relu() * x)


def test_graphs_need_no_descriptors(processes, tmp_path):
    assert processes((compile_with_few_descriptors, environment_of(tmp_path), 60)) == [True]


# ---- the end of a process --------------------------------------------------------------------------------------------------


EXITS = """
import os, sys, threading, time
sys.path.insert(0, {tests!r})
import torch
from test_processes import compile_graph, options_of
options = options_of({{}})
threads = [threading.Thread(target=compile_graph, args=(33, options), daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
while not os.path.exists({begun!r}):
    time.sleep(0.01)
"""


def test_a_process_ends_while_threads_compile(tmp_path):
    environment = environment_of(tmp_path, HANGS)
    script = EXITS.format(tests=os.path.dirname(__file__), begun=str(tmp_path / "bin" / "c++.begun"))
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 80  # the compiler would take longer
    left = subprocess.run(["pgrep", "-f", f"^{tmp_path}"], capture_output=True, text=True).stdout
    assert left == ""
