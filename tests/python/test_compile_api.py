"""What torch.compile and torch.compiler offer besides a backend: modes, fullgraph, dynamic, stances, compiled autograd, logs."""

import logging
import os
import subprocess
import sys
import types

import pytest
import torch

import cxxinductor
from cxxinductor import config, origins


def softmax_of(x):
    return torch.softmax(x * 2 + 1, -1).tanh()


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def graphs():
    return cxxinductor.counters()["graphs"]


# ---- modes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
@pytest.mark.parametrize("grad", [False, True])
def test_modes(mode, grad, device):
    x = torch.randn(5, 33, device=device, requires_grad=grad)
    compiled = torch.compile(softmax_of, backend="cxxinductor", mode=mode)
    for _ in range(3):
        out = compiled(x)
        same(out, softmax_of(x))
        if grad:
            same(torch.autograd.grad(out.sum(), x), torch.autograd.grad(softmax_of(x).sum(), x))
    assert graphs() == 1 + grad


@pytest.mark.step_by_step
def test_a_mode_sets_options_that_explicit_ones_override(monkeypatch):
    assert config.resolve(None).get("cuda_graphs") == "off"
    assert config.resolve(None, "reduce-overhead").get("cuda_graphs") == "on"
    assert config.resolve({"cuda_graphs": "auto"}, "reduce-overhead").get("cuda_graphs") == "auto"
    monkeypatch.setenv("CXXINDUCTOR_CUDA_GRAPHS", "")
    assert config.resolve(None, "reduce-overhead").get("cuda_graphs") == "on"
    assert config.resolve(None, "max-autotune").get("cuda_graphs") == "off"
    monkeypatch.setenv("CXXINDUCTOR_CUDA_GRAPHS", "off")
    assert config.resolve(None, "reduce-overhead").get("cuda_graphs") == "off"


def test_unknown_modes_are_an_error_that_lists_the_known_ones():
    compiled = torch.compile(softmax_of, backend="cxxinductor", mode="fastest")
    with pytest.raises(Exception, match="unknown mode 'fastest'; known modes: default, reduce-overhead, max-autotune"):
        compiled(torch.randn(3))


@pytest.mark.parametrize("mode", ["max-autotune", "max-autotune-no-cudagraphs"])
def test_explain_says_what_max_autotune_does_not_do(mode, device):
    x = torch.randn(5, 33, device=device)
    text = str(cxxinductor.explain(torch.compile(softmax_of, backend="cxxinductor", mode=mode), x))
    assert f"mode={mode}: kernels are chosen as in the default mode" in text
    assert "mode=" not in str(cxxinductor.explain(softmax_of, x))


@pytest.mark.step_by_step
def test_explain_says_what_has_no_effect(device):
    x = torch.randn(5, 33, device=device)
    on_cpu = ["cuda_graphs=on has no effect: no compiled graph runs on a GPU"]
    compiled = torch.compile(softmax_of, backend="cxxinductor", mode="reduce-overhead")
    assert cxxinductor.explain(compiled, x).notes == (on_cpu if device == "cpu" else [])

    def notes(x):
        return cxxinductor.explain(softmax_of, x, options={"freezing": True}).notes

    assert notes(x) == []
    assert notes(x.requires_grad_()) == [
        "freezing=true has no effect: gradients are required, which torch.no_grad() or inference_mode() turns off"
    ]
    (said,) = cxxinductor.explain(lambda x: x, x).notes
    assert said.startswith("nothing is compiled: Dynamo handed over no graph")


# ---- torch.compile's arguments -------------------------------------------------------------------------------------------


def breaks(x):
    x = x.sin()
    torch._dynamo.graph_break()
    return x.cos()


def test_fullgraph(device):
    x = torch.randn(6, device=device)
    same(torch.compile(softmax_of, backend="cxxinductor", fullgraph=True)(x), softmax_of(x))
    assert graphs() == 1
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(breaks, backend="cxxinductor", fullgraph=True)(x)
    same(torch.compile(breaks, backend="cxxinductor")(x), breaks(x))
    assert graphs() == 3


@pytest.mark.parametrize("dynamic, compiles", [(True, 1), (False, 4), (None, 2)])
def test_dynamic(dynamic, compiles, device):
    compiled = torch.compile(softmax_of, backend="cxxinductor", dynamic=dynamic)
    for rows in (3, 4, 7, 12):
        x = torch.randn(rows, 9, device=device)
        same(compiled(x), softmax_of(x))
    assert graphs() == compiles


# ---- torch.compiler ------------------------------------------------------------------------------------------------------


def test_files_whose_names_are_not_utf8():
    """Python gives each byte that it cannot decode a surrogate, which no UTF-8 text holds."""
    node = torch.fx.Graph().placeholder("x")
    node.meta["stack_trace"] = '  File "/models/mod\udce9.py", line 3, in fn\n'
    assert origins.model_line(node) == ("mod?.py", 3, "")


def test_reset(device):
    compiled, x = torch.compile(softmax_of, backend="cxxinductor"), torch.randn(6, device=device)
    for times in (1, 2):
        for _ in range(2):
            same(compiled(x), softmax_of(x))
        assert graphs() == times
        torch.compiler.reset()


def calls(sizes, stance, device, **kwargs):
    """Graphs compiled by calls with these sizes under a stance, after one without."""
    compiled = torch.compile(softmax_of, backend="cxxinductor", dynamic=False)
    x = torch.randn(4, device=device)
    same(compiled(x), softmax_of(x))
    before = graphs()
    with torch.compiler.set_stance(stance, **kwargs):
        for size in sizes:
            x = torch.randn(size, device=device)
            same(compiled(x), softmax_of(x))
    return graphs() - before


@pytest.mark.parametrize("stance, compiles", [("default", 2), ("force_eager", 0), ("eager_on_recompile", 0)])
def test_stances(stance, compiles, device):
    assert calls((4, 5, 5, 6), stance, device) == compiles


def test_the_stance_that_fails_on_recompiles(device):
    assert calls((4, 4), "fail_on_recompile", device) == 0
    with pytest.raises(RuntimeError, match="recompile"):
        calls((5,), "fail_on_recompile", device)


@pytest.mark.parametrize("stance", ["eager_then_compile", "aot_eager_then_compile"])
def test_stances_that_compile_later(stance, device):
    # Of code that no call was seen of: Dynamo knows calls by file and line, and reset() does not forget them.
    fresh = types.FunctionType(softmax_of.__code__.replace(co_filename=stance), globals())
    compiled = torch.compile(fresh, backend="cxxinductor")
    with torch.compiler.set_stance(stance):
        for size, expected in ((4, 0), (5, 1), (6, 1), (7, 1)):  # the second size is the first one compiled, and dynamic
            x = torch.randn(size, device=device, requires_grad=True)
            out = compiled(x)
            same(out, softmax_of(x))
            same(torch.autograd.grad(out.sum(), x), torch.autograd.grad(softmax_of(x).sum(), x))
            assert graphs() == 2 * expected


def test_a_stance_sets_the_backend(device):
    x = torch.randn(6, device=device)
    with torch.compiler.set_stance("default", force_backend="cxxinductor"):
        same(torch.compile(softmax_of, backend="eager")(x), softmax_of(x))
    assert graphs() == 1


def test_mark_step_begin_is_harmless(device):
    x = torch.randn(6, device=device)
    for mode in ("default", "reduce-overhead"):
        compiled = torch.compile(softmax_of, backend="cxxinductor", mode=mode)
        kept = []
        for _ in range(3):
            torch.compiler.cudagraph_mark_step_begin()
            kept.append(compiled(x))
        for out in kept:
            same(out, softmax_of(x))


# ---- compiled autograd ---------------------------------------------------------------------------------------------------


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)

    def forward(self, x):
        return torch.log_softmax(self.second(torch.relu(self.first(x))), -1)


def gradients(model, step, x):
    step(x)
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    return found


@pytest.mark.parametrize("whole_step", [True, False], ids=["whole_step", "model"])
def test_compiled_autograd(whole_step, device):
    model = Net().to(device)

    def step_of(run):
        return lambda x: run(x).square().mean().backward()

    expected = [gradients(model, step_of(model), torch.full((rows, 6), 0.5, device=device)) for rows in (4, 4, 5)]
    with torch._dynamo.config.patch(compiled_autograd=True):
        step = torch.compile(step_of(model), backend="cxxinductor") if whole_step else step_of(torch.compile(model, backend="cxxinductor"))
        for rows, theirs in zip((4, 4, 5), expected):
            same(gradients(model, step, torch.full((rows, 6), 0.5, device=device)), theirs)
    assert graphs() >= 2 and cxxinductor.counters()["eager_fallback"] == 0


def test_compiled_autograd_by_its_context_manager(device):
    model, x = Net().to(device), torch.randn(4, 6, device=device)
    expected = gradients(model, lambda x: model(x).square().mean().backward(), x)
    compiled = torch.compile(model, backend="cxxinductor")
    compiler = lambda gm: torch.compile(gm, backend="cxxinductor", fullgraph=True, dynamic=True)  # noqa: E731

    def step(x):
        loss = compiled(x).square().mean()
        with torch._dynamo.compiled_autograd._enable(compiler):
            loss.backward()

    for _ in range(2):
        same(gradients(model, step, x), expected)
    assert graphs() >= 2 and cxxinductor.counters()["eager_fallback"] == 0


def test_compiled_autograd_leaves_no_backward_graph_to_compile(device):
    x = torch.randn(4, device=device, requires_grad=True)
    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.compile(softmax_of, backend="cxxinductor")(x)
    assert cxxinductor.counters()["background_compiles"] == 0


# ---- logs ----------------------------------------------------------------------------------------------------------------


def lines_of(caplog):
    return [record.getMessage() for record in caplog.records if record.name.startswith("cxxinductor")]


def test_logger(caplog, device):
    x = torch.randn(4, 6, device=device, requires_grad=True)
    with caplog.at_level(logging.INFO, logger="cxxinductor"):
        torch.compile(softmax_of, backend="cxxinductor")(x).sum().backward()
    forward, backward = lines_of(caplog)
    assert forward.startswith("the forward graph [0/0] (") and "compiled: 1 kernels, 0 extern calls" in forward
    assert backward.startswith("the backward graph [0/0] (") and "compiled: " in backward
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="cxxinductor"):
        torch.compile(softmax_of, backend="cxxinductor")(torch.randn(4, device=device))
    first, *_ = lines_of(caplog)
    assert first.startswith("Dynamo's graph [0/") and "numerics" in first
    caplog.clear()
    torch.compile(torch.sin, backend="cxxinductor")(x)
    assert not lines_of(caplog)


@pytest.mark.parametrize("setting, level", [("cxxinductor", "INFO"), ("+cxxinductor", "DEBUG"), ("", None)])
def test_torch_logs(setting, level):
    script = "import torch; torch.compile(lambda x: x.sin() + 1, backend='cxxinductor', options={'tier': 'aten'})(torch.ones(3))"
    environment = {k: v for k, v in os.environ.items() if k != "TORCH_LOGS"} | ({"TORCH_LOGS": setting} if setting else {})
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert ("runs op by op through ATen: the option tier=aten asks for it" in done.stderr) == (level is not None)
    assert ("Dynamo's graph [0/0]" in done.stderr) == (level == "DEBUG")
