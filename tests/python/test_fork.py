"""Programs that fork while models, TorchScript and recordings compile: a child waits for nobody who is not there, and compiles anew.

A compiler that waits for a file holds a compile for as long as a test wants. Each scenario runs in a process of its own.
"""

import contextlib
import threading
import time

import pytest
import torch

import cxxinductor
from cxxinductor import torchscript
from test_background import Gate
from test_faults import processes  # noqa: F401: a fixture
from test_processes import exit_status_of_child

IS_BEING_COMPILED = "is being compiled"


class TellingGate(Gate):
    """It also tells when the host compiler has begun."""

    def waiting(self):
        return f"touch {self.path}.begun\n{super().waiting()}"

    @contextlib.contextmanager
    def held(self, work):
        """While the body runs, another thread is in ``work``, which compiles."""
        thread = threading.Thread(target=work)
        thread.start()
        begun = self.path.with_name("open.begun")
        deadline = time.monotonic() + 60
        while not begun.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        try:
            yield
        finally:
            self.open()
            thread.join()


@pytest.fixture
def scenario(processes, tmp_path):  # noqa: F811
    """Runs a function of a folder in a fresh process."""

    def run(function):
        return processes((with_one_thread, function, tmp_path))[0]

    return run


def with_one_thread(function, folder):
    torch.set_num_threads(1)  # OpenMP's threads are not there in a child
    return function(folder)


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2 + 1, -1).tanh()


def load(folder, wait):
    path = folder / "model.pt2"
    torch.export.save(torch.export.export(Model(), (torch.ones(4, 33),)), path)
    return cxxinductor.load(path, options={"wait": wait})


def check(run):
    x = torch.randn(4, 33)
    torch.testing.assert_close(run(x), Model()(x))


# ---- exported models -----------------------------------------------------------------------------------------------------


def model_that_nobody_waits_for(folder):
    gate = TellingGate(folder)
    model = load(folder, wait=False)

    def child():
        assert "the next call begins to compile it" in model.explain()
        check(model.run)
        assert IS_BEING_COMPILED in model.explain()
        gate.open_and_wait()
        assert IS_BEING_COMPILED not in model.explain() and "kernels" in model.explain()
        check(model.run)

    assert exit_status_of_child(child) == 0
    cxxinductor.wait_for_compiles()
    assert IS_BEING_COMPILED not in model.explain()
    assert exit_status_of_child(lambda: check(model.run)) == 0  # what is there is not compiled again


def test_a_child_compiles_a_model_that_nobody_waited_for(scenario):
    scenario(model_that_nobody_waits_for)


def form_that_a_thread_compiles(folder):
    gate = TellingGate(folder)
    gate.open()
    model = load(folder, wait=True)
    check(model.run)
    gate.shut()
    gate.path.with_name("open.begun").unlink()
    torch.use_deterministic_algorithms(True)  # asks for another form

    def child():
        gate.open()
        check(model.run)
        assert "where algorithms are deterministic" in model.explain()

    with gate.held(lambda: check(model.run)):
        assert exit_status_of_child(child) == 0


def test_a_child_does_not_wait_for_the_form_that_a_thread_compiles(scenario):
    scenario(form_that_a_thread_compiles)


def form_in_the_background(folder):
    gate = TellingGate(folder)
    gate.open()
    model = load(folder, wait=False)
    cxxinductor.wait_for_compiles()
    gate.shut()
    torch.use_deterministic_algorithms(True)
    check(model.run)

    def child():
        check(model.run)
        gate.open_and_wait()
        assert "where algorithms are deterministic" in model.explain()
        check(model.run)

    assert exit_status_of_child(child) == 0


def test_a_child_compiles_a_form_that_nobody_waited_for(scenario):
    scenario(form_in_the_background)


# ---- recorded functions --------------------------------------------------------------------------------------------------


def optimized(wait):
    module = cxxinductor.optimize(torch.jit.script(Model().eval()), options={"wait": wait})

    def run(x):
        with torch.inference_mode():
            return module(x)

    return module, run


def region_that_a_thread_compiles(folder):
    gate = TellingGate(folder)
    module, run = optimized(wait=True)

    def child():
        gate.open()
        check(run)
        assert "kernels" in torchscript.describe(module)

    with gate.held(lambda: check(run)):
        assert exit_status_of_child(child) == 0


def test_a_child_does_not_wait_for_the_thread_that_compiles_a_region(scenario):
    scenario(region_that_a_thread_compiles)


def region_that_nobody_waits_for(folder):
    gate = TellingGate(folder)
    module, run = optimized(wait=False)
    check(run)
    assert IS_BEING_COMPILED in torchscript.describe(module)

    def child():
        check(run)
        gate.open_and_wait()
        assert IS_BEING_COMPILED not in torchscript.describe(module) and "kernels" in torchscript.describe(module)
        check(run)

    assert exit_status_of_child(child) == 0
    cxxinductor.wait_for_compiles()
    assert IS_BEING_COMPILED not in torchscript.describe(module)


def test_a_child_compiles_a_region_that_nobody_waited_for(scenario):
    scenario(region_that_nobody_waits_for)


# ---- the recorded device -------------------------------------------------------------------------------------------------


def recording_that_a_thread_runs(folder):
    gate = TellingGate(folder)
    cxxinductor.register_device(backing="cpu", options={"wait": True})
    lost, kept = (torch.ones(4, 33).to("cxxi") for _ in range(2))
    found = []

    def child():
        gate.open()
        check(lambda x: Model()(x.to("cxxi")).cpu())
        torch.testing.assert_close((kept + 1).cpu(), torch.full((4, 33), 2.0))
        with pytest.raises(RuntimeError, match="when it was forked, another thread recorded or ran calls"):
            (lost + 1).cpu()
        with pytest.raises(RuntimeError, match="when it was forked, another thread recorded or ran calls"):
            lost.cpu()

    with gate.held(lambda: found.append(lost.mul_(3).add(1).cpu())):
        assert exit_status_of_child(child) == 0
    torch.testing.assert_close(found[0], torch.full((4, 33), 4.0))
    assert exit_status_of_child(lambda: torch.testing.assert_close(lost.cpu(), torch.full((4, 33), 3.0))) == 0


def test_a_child_records_anew_while_a_thread_runs_what_it_recorded(scenario):
    scenario(recording_that_a_thread_runs)
