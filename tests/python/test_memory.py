"""Memory: plans hold no more than eager, results take the place of what dies, saved tensors are reused when nobody holds them."""

import gc
import importlib
import re
import sys
from pathlib import Path

import pytest
import test_models
import torch
import torch.nn.functional as F
from compare import assert_within_eager
from test_training import loss_of
from torch import nn

import cxxinductor


@pytest.mark.parametrize("make", test_models.MODELS, ids=lambda make: make.__name__)
def test_training_graphs_hold_no_more_than_eager(make, device):
    if device == "cpu" and make not in (test_models.distilgpt2, test_models.bart, test_models.t5):
        pytest.skip("an encoder like bart's, or without dropout, which test_training.py has; make test has to end in time")
    model, inputs = make(device)
    model = model.to(device).train()
    with cxxinductor.reports.collect() as reports:
        loss_of(torch.compile(model, backend="cxxinductor"), inputs).backward()
    assert {g.kind for g in reports} >= {"forward", "backward"}
    assert_within_eager(reports)


@pytest.mark.parametrize("make", [test_models.bart, test_models.vit, test_models.convnext], ids=lambda make: make.__name__)
def test_inference_graphs_hold_no_more_than_eager(make, device):
    model, inputs = make(device)
    model = model.to(device).eval().requires_grad_(False)
    with cxxinductor.reports.collect() as reports:
        test_models.first(torch.compile(model, backend="cxxinductor")(**inputs))
    assert_within_eager(reports)


def test_complex_graphs_hold_no_more_than_eager(device):
    """Rotary positions as torch.view_as_complex writes them, and a spectrum of magnitudes."""

    def rotate(x, frequencies, w):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) * frequencies
        turned = torch.view_as_real(pairs).flatten(-2).type_as(x) @ w
        return turned + (pairs * pairs.conj()).abs().sum(-1, keepdim=True)

    x, w = torch.randn(4, 64, 32, device=device), torch.randn(32, 32, device=device)
    frequencies = torch.polar(torch.ones(64, 16, device=device), torch.randn(64, 16, device=device))
    with cxxinductor.reports.collect() as reports:
        torch.compile(rotate, backend="cxxinductor")(x, frequencies, w)
    assert_within_eager(reports)


@pytest.mark.parametrize(
    "fn",
    [
        lambda z, w: (z * w * (z * w).conj()).abs().sum(),
        lambda z, w: (lambda a: torch.view_as_real(a * z.conj() / (1 + a.abs()) * a.conj()).square().sum())((z * w).exp()),
    ],
    ids=["squares", "quotient"],
)
def test_complex_training_graphs_hold_no_more_than_eager(fn, device):
    """A conjugate that is saved is a view of what it conjugates."""
    z, w = (torch.randn(64, 256, dtype=torch.complex64, device=device) for _ in range(2))
    inputs = [x.clone().requires_grad_() for x in (z, w)]
    with cxxinductor.reports.collect() as reports:
        found = torch.autograd.grad(torch.compile(fn, backend="cxxinductor")(*inputs), inputs)
    assert {g.kind for g in reports} >= {"forward", "backward"}
    assert_within_eager(reports)
    inputs = [x.clone().requires_grad_() for x in (z, w)]
    torch.testing.assert_close(found, torch.autograd.grad(fn(*inputs), inputs))


def test_results_that_are_added_up_are_not_all_kept(device):
    def fn(x, w):
        total = torch.zeros_like(x)
        for i in range(6):
            total = torch.tanh(total + x @ w[i])
        return total

    x, w = torch.randn(256, 256, device=device), torch.randn(6, 256, 256, device=device) / 16
    with cxxinductor.reports.collect() as reports:
        torch.testing.assert_close(torch.compile(fn, backend="cxxinductor")(x, w), fn(x, w), rtol=1e-4, atol=1e-4)
    assert_within_eager(reports)
    assert len(reports[0].details["externs"]) == 6


def compiled_with_plan(fn, tmp_path):
    return torch.compile(fn, backend="cxxinductor", options={"dump": "plan", "dump_dir": str(tmp_path)})


def plans(tmp_path):
    return [path.read_text() for path in tmp_path.glob("**/*-fit-memory.txt")]


class Chain(nn.Module):
    """Its backward makes a gradient of the size of each thing that it saves."""

    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x))
        return x.square().sum()


def chain(device):
    return Chain(64).to(device), torch.randn(512, 64, device=device, requires_grad=True)


def gradients(model, x):
    return [x.grad.clone(), *(p.grad.clone() for p in model.parameters())]


def test_a_second_backward_finds_what_the_first_one_read(device, tmp_path):
    model, x = chain(device)
    loss = compiled_with_plan(model, tmp_path)(x)
    loss.backward(retain_graph=True)
    first = gradients(model, x)
    model.zero_grad(), x.grad.zero_()
    loss.backward(retain_graph=True)
    second = gradients(model, x)
    model.zero_grad(), x.grad.zero_()
    loss.backward()
    third = gradients(model, x)
    for a, b, c in zip(first, second, third):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
        torch.testing.assert_close(a, c, rtol=0, atol=0)
    assert any(" donated" in text and "reuse " in text for text in plans(tmp_path))



@pytest.mark.parametrize("retain", [False, True])
def test_saved_tensors_become_gradients(retain, device, tmp_path):
    def fn(x, y, w):
        return (x @ w) * (y @ w)

    leaves = [torch.randn(n, 128, device=device, requires_grad=n == 256) for n in (256, 256, 128)]
    wanted = [leaf.detach().clone().requires_grad_(leaf.requires_grad) for leaf in leaves]
    compiled = compiled_with_plan(fn, tmp_path)
    for _ in range(3):
        for run, tensors in ((compiled, leaves), (fn, wanted)):
            loss = run(*tensors).square().sum()
            if retain:
                loss.backward(retain_graph=True)
            loss.backward()
    for leaf, want in zip(leaves[:2], wanted):
        torch.testing.assert_close(leaf.grad, want.grad, rtol=1e-4, atol=1e-2)
    backward = next(text for text in plans(tmp_path) if " donated" in text)
    reused = set(re.findall(r"reuse @(\S+) as", backward))
    assert reused & set(re.findall(r"@(\S+): [^@]*? donated", backward))


def test_what_the_user_holds_is_left_alone(device):
    def fn(x):
        hidden = torch.sigmoid(x * 2)
        return hidden, hidden.exp().sum()

    x = torch.randn(64, 128, device=device, requires_grad=True)
    hidden, loss = torch.compile(fn, backend="cxxinductor")(x)
    kept = hidden.detach().clone()
    loss.backward()
    assert torch.equal(hidden, kept)
    want = x.detach().clone().requires_grad_()
    fn(want)[1].backward()
    torch.testing.assert_close(x.grad, want.grad)


def test_results_are_written_over_what_dies(device, tmp_path):
    def fn(x, w):
        y = torch.mm(x, w)
        return F.gelu(y + 1), x

    x, w = torch.randn(64, 96, device=device), torch.randn(96, 96, device=device)
    kept = x.clone()
    found, same = compiled_with_plan(fn, tmp_path)(x, w)
    torch.testing.assert_close(found, fn(x, w)[0])
    assert same is x and torch.equal(x, kept)
    assert "reuse " in plans(tmp_path)[0]


def test_what_dies_is_not_written_over_before_it_is_read(device):
    """The softmax could take the place of the squares, but stands before their sum."""

    def fn(x):
        variance = x.var(-3)
        return variance, torch.softmax(variance, -1), variance / (variance.norm(dim=1, keepdim=True) + 1)

    x = torch.randn(3, 4, 5, device=device)
    for found, expected in zip(torch.compile(fn, backend="cxxinductor")(x), fn(x)):
        torch.testing.assert_close(found, expected)
    assert cxxinductor.counters()["aten_fallback"] == 0


def test_reports_say_what_a_call_holds(device):
    with cxxinductor.reports.collect() as reports:
        torch.compile(lambda x: torch.softmax(x @ x, -1), backend="cxxinductor")(torch.randn(32, 32, device=device))
    (graph,) = reports
    assert any("peak memory" in line and "(eager " in line for line in str(graph).splitlines())


@pytest.fixture
def most_with_graphs(request):
    """Of the peak without them."""
    return 1.05 if request.config.getoption("--graphs") else 1


@pytest.mark.gpu
@pytest.mark.parametrize("make", test_models.MODELS, ids=lambda make: make.__name__)
def test_measured_peaks_are_no_higher_than_eagers(make, most_with_graphs):
    model, inputs = make("cuda")
    model = model.to("cuda").train()
    compiled = torch.compile(model, backend="cxxinductor")

    def peak(run):
        for _ in range(2):
            gc.collect()
            torch.cuda.synchronize()
            model.zero_grad(set_to_none=True)
            torch.cuda.reset_peak_memory_stats()
            loss_of(run, inputs).backward()
        return torch.cuda.max_memory_allocated()

    assert peak(compiled) <= most_with_graphs * 1.01 * peak(model) + (1 << 20)


def benchmark_models():
    """benchmarks/models.py as a module; it times nothing when imported."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    try:
        return importlib.import_module("models")
    finally:
        sys.path.pop(0)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["distilgpt2", "bert_base", "bart_causal", "blenderbot_small", "t5_small", "resnet50", "vit_base", "convnext_base"])
def test_benchmarked_models_hold_no_more_than_eager(name, device, most_with_graphs):
    models = benchmark_models()
    assert name in models.MODELS
    model, inputs = models.MODELS[name]()
    model = model.to(device, torch.bfloat16).eval().requires_grad_(False)
    compiled = torch.compile(model, backend="cxxinductor", dynamic=False)
    with torch.no_grad():
        eager = models.peak_memory(lambda: model(**inputs))
        ours = models.peak_memory(lambda: compiled(**inputs))
    assert ours <= most_with_graphs * eager + 2**21, f"{ours / 2**20:.0f} MB, eager {eager / 2**20:.0f} MB"  # blocks of the allocator


@pytest.mark.gpu
def test_products_of_unaligned_rows_in_parts(device):
    """The chain over x makes room within eager's peak for half of the padded gradient, not for all of it."""

    def fn(g, w, h, x):
        return g.t() @ h, g @ w, x.exp().sin().sum()

    inputs = [torch.randn(n, m, device=device, dtype=torch.bfloat16) for n, m in ((4096, 5001), (5001, 768), (4096, 768))]
    inputs.append(torch.randn(6_500_000, device=device))
    with cxxinductor.reports.collect() as graphs:
        found = torch.compile(fn, backend="cxxinductor", fullgraph=True)(*inputs)
    (graph,) = graphs
    assert graph.details["externs"].count("aten::mm") > 2
    assert graph.details["memory"]["peak"] <= graph.details["memory"]["eager_peak"]
    for ours, theirs, exact in zip(found, fn(*inputs), fn(*(x.double() for x in inputs))):
        assert (ours - exact).abs().max() <= 1.5 * (theirs - exact).abs().max() + 1e-3


@pytest.mark.gpu
def test_every_benchmarked_model_is_measured():
    (mark,) = [m for m in test_benchmarked_models_hold_no_more_than_eager.pytestmark if m.name == "parametrize"]
    assert set(mark.args[1]) == set(benchmark_models().MODELS)
