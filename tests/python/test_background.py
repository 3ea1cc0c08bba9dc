"""Compiles in the background: backward graphs from the forward graph's compile on, and option background.

A compiler that waits for a file holds compiles for as long as a test wants. Each scenario runs in a process of its own.
"""

import os
import signal
import threading
import warnings
from pathlib import Path
from unittest import mock

import pytest
import torch

import cxxinductor
from cxxinductor import _C
from test_faults import PRINTS_VERSION, processes  # noqa: F401: a fixture


class Gate:
    """Where the host compiler waits while it is shut."""

    def __init__(self, folder):
        self.path = Path(folder) / "open"
        compiler = Path(folder) / "c++"
        compiler.write_text(PRINTS_VERSION + f'{self.waiting()}exec /usr/bin/c++ "$@"\n')
        compiler.chmod(0o755)
        os.environ.update({"PATH": f"{folder}:/usr/bin:/bin", "TMPDIR": str(folder), "CXXINDUCTOR_CACHE": "off"})

    def waiting(self):
        """Lines of a shell: they end with the process that compiles, too."""
        return f"while [ ! -e {self.path} ]; do kill -0 $PPID 2> /dev/null || exit 1; sleep 0.05; done\n"

    def open(self):
        self.path.touch()

    def shut(self):
        self.path.unlink()

    def open_and_wait(self):
        self.open()
        cxxinductor.wait_for_compiles()


def compiled(fn, background="off", **kwargs):
    return torch.compile(fn, backend="cxxinductor", options={"background": background}, **kwargs)


def count(name):
    return cxxinductor.counters()[name]


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.fixture
def scenario(processes, tmp_path):  # noqa: F811
    """Runs a function of a folder, with what else it takes, in a fresh process."""
    return lambda function, *args: processes((function, tmp_path, *args))[0]


def softmax_of(x):
    return torch.softmax(x * 2 + 1, -1).tanh()


# ---- option background ---------------------------------------------------------------------------------------------------


def recompiles(folder):
    gate = Gate(folder)
    gate.open()
    fn = compiled(softmax_of, "recompiles", dynamic=False)
    x, y = torch.randn(5, 33), torch.randn(7, 65)
    same(fn(x), softmax_of(x))
    assert count("graphs") == 1 and count("background_compiles") == 0  # the first compile is waited for
    gate.shut()
    for _ in range(3):
        assert torch.equal(fn(y), softmax_of(y))  # through ATen
        same(fn(x), softmax_of(x))
    assert (count("graphs"), count("background_compiles"), count("background_calls")) == (1, 1, 3)
    gate.open_and_wait()
    same(fn(y), softmax_of(y))
    assert (count("graphs"), count("background_compiles"), count("background_calls")) == (2, 1, 3)
    assert count("aten_fallback") == 0


def test_recompiles_run_through_aten_until_they_are_compiled(scenario):
    scenario(recompiles)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
        self.linear = torch.nn.Linear(8, 5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        y = torch.nn.functional.dropout(torch.relu(self.norm(self.convolution(x))), 0.3)
        return torch.log_softmax(self.linear(y.mean((2, 3))), -1)


def train(model, run, x, between=lambda: None):
    """Everything that a step gives and changes."""
    torch.manual_seed(7)
    x = x.clone().requires_grad_()
    out = run(x)
    between()
    out.square().sum().backward()
    results = [out.detach(), x.grad, *(p.grad for p in model.parameters()), *(b.clone() for b in model.buffers())]
    results.append(torch.rand(3))  # the generator is where eager leaves it
    model.zero_grad()
    return results


def training(folder, channels_last):
    gate = Gate(folder)
    torch.manual_seed(0)
    eager, model = Model(), Model()
    model.load_state_dict(eager.state_dict())
    x = torch.randn(4, 3, 9, 9)
    if channels_last:
        eager, model, x = (m.to(memory_format=torch.channels_last) for m in (eager, model, x))
    run = compiled(model, "all")

    def step(between=lambda: None):
        for ours, theirs in zip(train(model, run, x, between), train(eager, eager, x), strict=True):
            same(ours, theirs)

    step()
    assert count("background_compiles") == 2 and count("background_calls") == 2 and count("graphs") == 0
    # What the forward pass saved through ATen is what the compiled backward graph takes.
    step(gate.open_and_wait)
    assert count("background_calls") == 3 and count("graphs") == 1
    step()
    step()
    assert count("background_calls") == 3 and count("graphs") == 2 and count("aten_fallback") == 0


@pytest.mark.parametrize("channels_last", [False, True])
def test_training_begins_through_aten(scenario, channels_last):
    scenario(training, channels_last)


def backward_through_aten(folder):
    gate = Gate(folder)
    torch.manual_seed(0)
    eager, model = Model(), Model()
    model.load_state_dict(eager.state_dict())
    x = torch.randn(4, 3, 9, 9)
    gate.open()
    run = compiled(model, "all")
    # The compile of the forward graph ends before its first call, that of the backward graph does not.
    begin = _C.compile_in_background

    def begin_and_shut(*args):
        made = begin(*args)
        if gate.path.exists():
            cxxinductor.wait_for_compiles()
            gate.shut()
        return made

    with mock.patch.object(_C, "compile_in_background", begin_and_shut):
        for ours, theirs in zip(train(model, run, x), train(eager, eager, x), strict=True):
            same(ours, theirs)
    assert count("graphs") == 1 and count("background_calls") == 1


def test_a_compiled_forward_graph_saves_what_the_backward_graph_takes_through_aten(scenario):
    scenario(backward_through_aten)


def mutation(folder):
    gate = Gate(folder)

    def fn(x, y):
        x.mul_(y).add_(1)
        return x.t(), x.sum(0)

    run = compiled(fn, "all")
    y = torch.randn(4, 6)
    for opened in (False, True):
        if opened:
            gate.open_and_wait()
        theirs, ours = torch.ones(4, 6), torch.ones(4, 6)
        expected, found = fn(theirs, y), run(ours, y)
        same(ours, theirs)
        assert ours._version > 0
        for a, b in zip(found, expected):
            same(a, b)
        assert found[0]._is_view() and found[0].data_ptr() == ours.data_ptr()
    assert count("background_calls") == 1 and count("graphs") == 1


def test_mutation(scenario):
    scenario(mutation)


def constants_and_subgraphs(folder):
    gate = Gate(folder)
    table = torch.arange(6.0)

    def fn(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() + 1, (x,)) + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) + table

    run = compiled(fn, "all")
    inputs = torch.ones(6), -torch.ones(6)
    for x in inputs:
        same(run(x), fn(x))
    assert count("graphs") == 0
    gate.open_and_wait()
    for _ in range(2):
        for x in inputs:
            same(run(x), fn(x))
    assert count("graphs") == 3 and count("aten_fallback") == 0


def test_constants_and_subgraphs(scenario):
    scenario(constants_and_subgraphs)


def failure(folder):
    gate = Gate(folder)
    (Path(folder) / "c++").write_text(PRINTS_VERSION + f"{gate.waiting()}echo 'this source is bad' >&2; exit 1\n")
    fn, x = compiled(softmax_of, "all"), torch.randn(5, 33)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert torch.equal(fn(x), softmax_of(x))
        assert not caught and count("aten_fallback") == 0
        gate.open_and_wait()
        assert not caught
        for _ in range(2):
            assert torch.equal(fn(x), softmax_of(x))
    assert count("aten_fallback") == 1 and count("graphs") == 0 and count("background_calls") == 1
    [warning] = caught
    assert "inference graph [0/0]" in str(warning.message) and "this source is bad" in str(warning.message)
    assert warning.filename == __file__


def test_a_failed_compile_warns_at_the_next_call(scenario):
    scenario(failure)


def explained(folder):
    gate = Gate(folder)
    threading.Timer(0.5, gate.open).start()
    x = torch.randn(5, 33, requires_grad=True)
    explanation = cxxinductor.explain(lambda: softmax_of(x).sum().backward(), options={"background": "all"})
    assert [graph.kind for graph in explanation.graphs] == ["forward", "backward"]
    assert all(graph.details["kernels"] for graph in explanation.graphs)
    assert explanation.counters["graphs"] == 2 and explanation.counters["background_calls"] == 2


def test_explain_waits(scenario):
    scenario(explained)


def checked(folder):
    gate = Gate(folder)
    fn = torch.compile(softmax_of, backend="cxxinductor", options={"background": "all", "check": "eager"})
    x = torch.randn(5, 33)
    assert torch.equal(fn(x), softmax_of(x)) and count("checked_launches") == 0
    gate.open_and_wait()
    same(fn(x), softmax_of(x))
    assert count("checked_launches") > 0


def test_kernels_are_checked_once_they_are_there(scenario):
    scenario(checked)


def threads(folder):
    gate = Gate(folder)
    fn, x = compiled(softmax_of, "all"), torch.randn(5, 33)
    expected = softmax_of(x)
    fn(x)
    right = []

    def call():
        for _ in range(300):
            right.append(torch.allclose(fn(x), expected, rtol=1e-5, atol=1e-6))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for thread in callers:
        thread.start()
    gate.open_and_wait()
    for thread in callers:
        thread.join()
    fn(x)
    assert len(right) == 1200 and all(right)
    assert count("graphs") == 1


def test_threads_switch_while_they_call(scenario):
    scenario(threads)


def forked(folder):
    torch.set_num_threads(1)  # OpenMP's threads are not there in a child
    gate = Gate(folder)
    fn, x = compiled(softmax_of, "all"), torch.randn(5, 33)
    expected = fn(x)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            gate.open()
            assert torch.equal(fn(x), expected)  # begins the compile again
            cxxinductor.wait_for_compiles()
            same(fn(x), expected)
            status = 0 if count("graphs") == 1 else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    cxxinductor.wait_for_compiles()
    same(fn(x), expected)
    assert count("graphs") == 1


def test_a_forked_child_compiles_what_the_parent_had_begun(scenario):
    scenario(forked)


def dropped(folder):
    gate = Gate(folder)
    fn, x = compiled(softmax_of, "all"), torch.randn(5, 33)
    fn(x)
    torch.compiler.reset()  # stops the compiler
    del fn
    cxxinductor.wait_for_compiles()
    assert not gate.path.exists() and count("graphs") == 0


def test_a_graph_that_goes_takes_its_compile_along(scenario):
    scenario(dropped)


# ---- backward graphs -----------------------------------------------------------------------------------------------------


def early_backward(folder):
    gate = Gate(folder)
    gate.open()
    x = torch.randn(5, 33, requires_grad=True)
    out = compiled(softmax_of)(x)
    assert count("background_compiles") == 1  # begun by the time when the forward call ends
    assert count("graphs") == 1  # and not in use
    cxxinductor.wait_for_compiles()
    gate.shut()
    out.sum().backward()  # nothing is left to compile
    same(x.grad, torch.autograd.grad(softmax_of(x).sum(), x)[0])
    assert count("graphs") == 2 and count("background_calls") == 0


def test_the_backward_graph_is_compiled_before_it_is_called(scenario):
    scenario(early_backward)


class Alarm(Exception):
    pass


def interrupted_backward(folder):
    gate = Gate(folder)
    gate.open()
    x = torch.randn(5, 33, requires_grad=True)
    begin = _C.compile_in_background

    def begin_behind_gate(*args):
        gate.shut()  # the forward graph is compiled
        return begin(*args)

    with mock.patch.object(_C, "compile_in_background", begin_behind_gate):
        out = compiled(softmax_of)(x)

    def ring(*_):
        raise Alarm

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    with pytest.raises(Alarm):
        out.sum().backward(retain_graph=True)
    gate.open()
    out.sum().backward()
    same(x.grad, torch.autograd.grad(softmax_of(x).sum(), x)[0])


def test_signals_interrupt_a_backward_call_that_waits(scenario):
    scenario(interrupted_backward)


def dynamic_training(folder):
    Gate(folder).open()

    def fn(x, w):
        return torch.softmax(x @ w, -1).tanh().view(-1)

    run = compiled(fn, dynamic=True)
    w = torch.randn(8, 12, requires_grad=True)
    for rows in (5, 9, 31, 4):
        x = torch.randn(rows, 8)
        found = torch.autograd.grad(run(x, w).square().sum(), w)[0]
        same(found, torch.autograd.grad(fn(x, w).square().sum(), w)[0])
    assert count("graphs") == 2  # one form of each for all sizes


def test_reading_the_backward_graph_early_adds_no_guards(scenario):
    scenario(dynamic_training)


def test_a_forward_graph_alone_reports_itself_alone():
    x = torch.randn(5, 33, requires_grad=True)
    explanation = cxxinductor.explain(softmax_of, x)
    assert [graph.kind for graph in explanation.graphs] == ["forward"]
    assert explanation.counters["graphs"] == 1 and explanation.counters["background_compiles"] == 1


def test_the_option_is_one_of_three_words():
    with pytest.raises(Exception, match="background.*'off', 'recompiles', 'all'"):
        compiled(softmax_of, "sometimes")(torch.randn(3))
