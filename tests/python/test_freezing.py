"""Option freezing: what depends on parameters and buffers alone is computed once, and again after a write that PyTorch counts."""

import threading

import pytest
import test_models
import torch
from torch import nn

import cxxinductor
from cxxinductor import reports


class Block(nn.Module):
    """Under autocast two casts of weights; a weight that is read as it is; tables made of buffers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 96), nn.Linear(96, 64)
        self.norm = nn.LayerNorm(64)
        self.register_buffer("frequencies", torch.rand(32))

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[0], device=x.device, dtype=torch.float32), self.frequencies)
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            y = self.second(torch.relu(self.first(self.norm(x))))
        return y.float() + torch.cat([angles.cos(), angles.sin()], -1)


def frozen(model, **kwargs):
    return torch.compile(model, backend="cxxinductor", options={"freezing": True}, **kwargs)


@pytest.fixture
def block(device):
    return Block().to(device).eval()


def run(fn, *inputs):
    """The result, and the reports of what was compiled for it."""
    with torch.no_grad(), reports.collect() as found:
        return fn(*inputs), found


def assert_equal(compiled, model, x):
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x), rtol=2e-2, atol=2e-2)


def test_weights_are_cast_once(block, device):
    x = torch.randn(16, 64, device=device)
    plain, (before,) = run(torch.compile(block, backend="cxxinductor"), x)
    torch._dynamo.reset()
    compiled = frozen(block)
    result, (after,) = run(compiled, x)
    assert torch.equal(result, plain)
    casts = 2 * (64 * 96 * 2)
    assert after.details["const_graph"]["bytes"] >= casts
    traffic = [sum((k["bytes_read"] + k["bytes_written"]) * k["launches"] for k in r.details["kernels"]) for r in (before, after)]
    tables = 16 * 64 * 4  # of the angles
    assert traffic[1] <= traffic[0] - 3 * casts + tables
    assert "are kept" in str(after) and before.details["const_graph"] is None
    assert torch.equal(run(compiled, x)[0], plain)


@pytest.mark.parametrize("inference_mode", [False, True])
def test_writes_are_seen(block, device, inference_mode):
    x = torch.randn(16, 64, device=device)
    compiled = frozen(block)
    with torch.inference_mode(inference_mode):
        assert_equal(compiled, block, x)
        with torch.no_grad():
            block.first.weight.mul_(3)
        assert_equal(compiled, block, x)
        block.load_state_dict({name: torch.randn_like(value) for name, value in block.state_dict().items()})
        assert_equal(compiled, block, x)
        block.second.weight.data = torch.randn_like(block.second.weight)
        assert_equal(compiled, block, x)
        block.frequencies.zero_()
        assert_equal(compiled, block, x)


def test_other_parameters_at_the_same_address(block, device):
    x = torch.randn(16, 64, device=device)
    compiled = frozen(block)
    assert_equal(compiled, block, x)
    for _ in range(4):
        shape = block.first.weight.shape
        block.first.weight = None
        block.first.weight = nn.Parameter(torch.randn(shape, device=device))
        assert_equal(compiled, block, x)


def test_tensors_made_in_inference_mode_are_not_kept(device):
    """PyTorch counts no writes to them."""

    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(64, 64, device=device, dtype=torch.bfloat16))

        def forward(self, x):
            return x @ self.weight.float().t()

    with torch.inference_mode():
        model, x = Cast(), torch.randn(4, 64, device=device)
        assert model.weight.is_inference()
        compiled = frozen(model)
        with reports.collect() as found:
            assert_equal(compiled, model, x)
        assert "in each call" in str(found[0]) and "are kept" not in str(found[0])
        model.weight.mul_(3)
        assert_equal(compiled, model, x)
        model.load_state_dict({"weight": torch.randn_like(model.weight)})
        assert_equal(compiled, model, x)


def test_training_is_left_alone(block, device):
    compiled = frozen(block)
    with reports.collect() as found:
        compiled(torch.randn(16, 64, device=device)).sum().backward()
    assert {r.kind for r in found} == {"forward", "backward"}
    assert all(r.details["const_graph"] is None for r in found)


def test_what_leaves_the_graph_is_the_users(device):
    layer = nn.Linear(8, 8).to(device)
    compiled = frozen(lambda x: (layer.weight.to(torch.bfloat16), x @ layer.weight.to(torch.float64).t()))
    x = torch.randn(4, 8, dtype=torch.float64, device=device)
    with torch.no_grad():
        compiled(x)[0].zero_()
        torch.testing.assert_close(compiled(x), (layer.weight.to(torch.bfloat16), x @ layer.weight.double().t()))


def test_buffers_that_the_graph_writes_are_not_frozen(device):
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(8, 8))

        def forward(self, x):
            self.count += 1
            return x * self.count.exp()

    model, eager = Counts().to(device), Counts().to(device)
    compiled = frozen(model)
    x = torch.randn(8, 8, device=device)
    for _ in range(3):
        result, found = run(compiled, x)
        torch.testing.assert_close(result, run(eager, x)[0])
        assert all(r.details["const_graph"] is None for r in found)


def test_large_tables_are_not_kept(device):
    scale = nn.Parameter(torch.randn(1, 1024, device=device))
    compiled = frozen(lambda x: x @ (scale.t() @ scale).relu())
    x = torch.randn(2, 1024, device=device)
    result, (report,) = run(compiled, x)
    torch.testing.assert_close(result, run(lambda: x @ (scale.t() @ scale).relu())[0], rtol=1e-4, atol=1e-2)
    assert report.details["const_graph"] is None  # 4 MB made of 4 kB


def test_dynamic_sizes(block, device):
    compiled = frozen(block, dynamic=True)
    with reports.collect() as found:
        for rows in (16, 24, 7):
            assert_equal(compiled, block, torch.randn(rows, 64, device=device))
    assert len(found) == 1 and found[0].details["const_graph"]["tensors"] >= 2


def test_threads(block, device):
    x = torch.randn(16, 64, device=device)
    compiled = frozen(block)
    with torch.no_grad():
        expected = block(x)
        results = [None] * 4
        compiled(x)

        def call(i):
            with torch.no_grad():
                for _ in range(20):
                    results[i] = compiled(x)

        threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        block.first.weight.add_(0)  # counted, without another value
        for thread in threads:
            thread.join()
    for result in results:
        torch.testing.assert_close(result, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("make", [test_models.distilgpt2, test_models.vit], ids=lambda make: make.__name__)
def test_models_under_autocast(make, device):
    model, inputs = make(device)
    model = model.to(device).eval()

    def call(fn):
        with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
            return test_models.first(fn(**inputs)).float()

    plain = call(torch.compile(model, backend="cxxinductor"))
    torch._dynamo.reset()
    with reports.collect() as found:
        compiled = frozen(model)
        assert torch.equal(call(compiled), plain)
    kept = sum(r.details["const_graph"]["bytes"] for r in found)
    weights = sum(p.numel() for name, p in model.named_parameters() if p.dim() > 1)
    assert kept >= 0.5 * weights, "most weights are cast once"
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.gpu
def test_convolution_weights_are_turned_once(device):
    model = nn.Sequential(*(nn.Conv2d(32, 32, 3, padding=1) for _ in range(3))).to(device, torch.bfloat16)
    x = torch.randn(8, 32, 16, 16, device=device, dtype=torch.bfloat16)
    result, (report,) = run(frozen(model), x)
    torch.testing.assert_close(result, run(model, x)[0], rtol=2e-2, atol=2e-2)
    assert report.details["const_graph"]["tensors"] == 3
    assert all(stride == p.stride() for p, stride in zip(model.parameters(), [(288, 9, 3, 1), (1,)] * 3))


@pytest.mark.gpu
@pytest.mark.parametrize("warm", [True, False])
def test_a_captured_call_reads_weights_that_stay(block, device, warm):
    """warm: the constants are folded before the capture; otherwise the captured graph computes them."""
    x = torch.randn(16, 64, device=device)
    compiled = frozen(block)
    with torch.no_grad():
        compiled(x)
        cxxinductor.wait_for_compiles()
        before = block(x).clone()
        if not warm:
            block.first.weight.add_(0)  # counted, without another value
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = compiled(x)
        for _ in range(2):
            block.first.weight.mul_(3)
            assert_equal(compiled, block, x)  # drops what was folded
        after = block(x)
        filler = [torch.full_like(p, float("nan"), dtype=torch.bfloat16) for _ in range(64) for p in block.parameters()]  # takes what was freed
        graph.replay()
        torch.cuda.synchronize()
        torch.testing.assert_close(y, before if warm else after, rtol=2e-2, atol=2e-2)
        assert_equal(compiled, block, x)
        del filler
