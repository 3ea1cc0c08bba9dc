"""Passes over the text of the compiler's forms that users register in Python."""

import os
import subprocess
import sys
import threading
import time

import pytest
import torch
from children import run_python

import cxxinductor
from cxxinductor import UserError, text_passes

STAGES = ["graph-passes", "lower", "fuse", "loops-passes"]


@pytest.fixture
def register(request):
    def register(function, stage, **kwargs):
        registration = cxxinductor.register_graph_pass(function, stage=stage, **kwargs)
        request.addfinalizer(registration.remove)
        return registration

    return register


def compiled(fn, **options):
    torch._dynamo.reset()
    return torch.compile(fn, backend="cxxinductor", options={"cache": "off", **options})


def relu_to_neg(text):
    """What a program would notice."""
    return text.replace("relu(", "neg(")


def fn(x):
    return torch.relu(x) + 1


def test_a_pass_follows_a_stage_that_is_off(device, register):
    register(relu_to_neg, "fuse")
    x = torch.randn(8, device=device)
    torch.testing.assert_close(compiled(fn, fusion=False)(x), -x + 1)


@pytest.mark.parametrize("stage", STAGES)
def test_a_pass_changes_the_form_after_its_stage(device, register, stage):
    register(relu_to_neg, stage)
    x = torch.randn(8, device=device)
    torch.testing.assert_close(compiled(fn)(x), -x + 1)
    report = cxxinductor.explain(fn, x, options={"cache": "off"})
    assert report.extensions == [f"pass relu_to_neg (after {stage})"]
    assert f"registered passes: relu_to_neg (after {stage})" in str(report)
    assert report.graphs[0].details["pass_times"]["relu_to_neg"] >= 0
    torch.testing.assert_close(compiled(fn, skip_passes="relu_to_neg")(x), fn(x))


def test_a_pass_in_training_and_for_sizes_that_are_symbols(device, register):
    register(relu_to_neg, "fuse")
    step = torch.compile(lambda x: fn(x).sum(), backend="cxxinductor", options={"cache": "off"}, dynamic=True)
    for n in (3, 9):
        x = torch.randn(n, 4, device=device, requires_grad=True)
        loss = step(x)
        loss.backward()
        torch.testing.assert_close(loss, (-x + 1).sum())


def test_dumps_hold_the_form_after_a_pass(device, register, tmp_path):
    register(relu_to_neg, "lower")
    compiled(fn, dump="after:relu_to_neg", dump_dir=str(tmp_path))(torch.randn(8, device=device))
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file.name == "04-lower+relu_to_neg.txt" and "neg(" in file.read_text()
    with pytest.raises(Exception, match="found 'nobody'; known are .*relu_to_neg"):
        compiled(fn, dump="after:nobody")(torch.randn(8, device=device))


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda text: 1 / 0, r"the pass wrong \(after lower\) raised: ZeroDivisionError: division by zero"),
        (lambda text: None, "raised: expected a text, found None"),
        (lambda text: "garbage", r"the pass wrong \(after lower\) did not return a valid program"),
        (lambda text: text.replace("relu(", "nothing("), "did not return a valid program.*nothing"),
        (lambda text: text.replace("f32", "f64"), "changed what the program takes or returns|did not return a valid program"),
        (lambda text: text[: len(text) // 2], "did not return a valid program"),
        (lambda text: sys.exit(3), "raised: SystemExit: 3"),
    ],
)
def test_a_wrong_pass_sends_the_graph_through_aten(device, register, function, message):
    register(function, "lower", name="wrong", version="1")
    x = torch.randn(8, device=device)
    with pytest.warns(UserWarning, match=f"(?s)runs op by op through ATen: .*({message})") as warned:
        torch.testing.assert_close(compiled(fn)(x), fn(x))
    assert "bug of cxxinductor" not in str(warned[0].message)


def test_names_are_one_pass_each(register):
    register(relu_to_neg, "lower", name="mine")
    register(relu_to_neg, "lower", name="mine")
    with pytest.raises(UserError, match="graph pass mine is registered already"):
        cxxinductor.register_graph_pass(relu_to_neg, stage="fuse", name="mine")
    with pytest.raises(UserError, match="graph pass mine is registered already, over texts"):
        cxxinductor.register_graph_pass(relu_to_neg, when="inference", name="mine")
    with pytest.raises(UserError, match="expected a name of letters"):
        cxxinductor.register_graph_pass(relu_to_neg, stage="fuse", name="a,b")
    cxxinductor.register_graph_pass(relu_to_neg, stage="fuse", name="a.b").remove()  # the refused name is free, and so is this one
    cxxinductor.register_graph_pass(relu_to_neg, stage="lower", name="a.b").remove()


def test_passes_go_on_after_one_that_took_too_long(monkeypatch, device, register):
    """The pass that nobody waits for any more holds the others up only until it ends."""
    monkeypatch.setattr(text_passes, "_PATIENCE", 500)
    monkeypatch.setattr(text_passes._Server, "current", None)
    ended = threading.Event()

    def slow(text):
        time.sleep(1.5)
        ended.set()
        return text

    x = torch.randn(8, device=device)
    registration = register(slow, "lower", version="1")
    with pytest.warns(UserWarning, match=r"slow \(after lower\) raised: Python did not answer in time"):
        torch.testing.assert_close(compiled(fn)(x), fn(x))
    registration.remove()
    assert ended.wait(60)
    time.sleep(0.2)
    register(relu_to_neg, "lower")
    torch.testing.assert_close(compiled(fn)(x), -x + 1)


def test_removed_passes_do_not_run(device, register):
    registration = register(relu_to_neg, "lower")
    registration.remove()
    other = register(relu_to_neg, "fuse")
    registration.remove()  # of the one that is gone
    x = torch.randn(8, device=device)
    torch.testing.assert_close(compiled(fn)(x), -x + 1)
    other.remove()
    torch.testing.assert_close(compiled(fn)(x), fn(x))


def test_passes_run_while_threads_register(device, register):
    register(relu_to_neg, "lower")
    errors = []

    def registers(number):
        try:
            for i in range(20):
                cxxinductor.register_graph_pass(str.upper, stage="fuse", name=f"t{number}.{i}", version="1").remove()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=registers, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    x = torch.randn(8, device=device)
    torch.testing.assert_close(compiled(fn)(x), -x + 1)


def plans_with_pass(name, folder, device):
    """Whether a call makes a plan; with a pass that replaces relu by `name`, which is its version too, unless that is empty."""
    x = torch.ones(10, device=device)
    registration = name and cxxinductor.register_graph_pass(lambda text: text.replace("relu(", f"{name}("), stage="lower", name="mine", version=name)
    with cxxinductor.reports.collect() as reports:
        result = compiled(fn, cache="on", cache_dir=folder)(x)
    torch.testing.assert_close(result, getattr(torch, name or "relu")(x) + 1)
    if registration:
        registration.remove()
    return "write plan" in dict(reports[0].details["times"])


def test_the_version_is_part_of_the_key_of_plans(tmp_path, device):
    # In processes of their own: ops that other tests registered are part of the keys, too.
    def are_made(names):
        program = f"""
import sys, torch
sys.path.insert(0, {os.path.dirname(__file__)!r})
import {__name__} as test
with torch._functorch.config.patch(enable_autograd_cache=False):  # as in conftest.py
    print([test.plans_with_pass(name, {str(tmp_path)!r}, {device!r}) for name in {names!r}])
"""
        return run_python(program, check=True).stdout.strip()

    assert are_made(["", "neg", "abs", "neg", ""]) == "[True, True, True, False, False]"
    assert are_made(["neg"]) == "[False]"


def test_passes_run_in_a_forked_child(device, register):
    if device != "cpu":
        pytest.skip("a child cannot use the parent's GPU")
    register(relu_to_neg, "lower")
    x = torch.randn(8)
    compiled(fn)(x)
    child = os.fork()
    if child == 0:
        try:
            same = torch.equal(compiled(lambda x: torch.relu(x) + 2)(x), -x + 2)
        finally:
            os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_process_ends_while_passes_are_there():
    program = """
import torch, cxxinductor, time
cxxinductor.register_graph_pass(lambda text: time.sleep(0.5) or text, stage="lower", name="slow", version="1")
torch.compile(lambda x: x + 1, backend="cxxinductor", options={"background": "all", "cache": "off"})(torch.randn(3))
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
