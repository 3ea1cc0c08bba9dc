"""Random numbers: those of eager for the same seed, and a generator that stands where eager leaves it."""

import pytest
import torch
import torch.nn.functional as F

import cxxinductor


def drawn(function, *inputs, device, seed=1234):
    torch.manual_seed(seed)
    out = function(*inputs)
    state = torch.cuda.get_rng_state() if device == "cuda" else torch.get_rng_state()
    return out, state


def check(function, *inputs, device):
    """Twice in a row with one seed: the second call continues where the first left the generator."""
    twice = lambda f: lambda *xs: (f(*xs), f(*xs))  # noqa: E731
    compiled = torch.compile(function, backend="cxxinductor")
    compiled(*inputs)
    (ours, our_state), (eager, state) = drawn(twice(compiled), *inputs, device=device), drawn(twice(function), *inputs, device=device)
    for a, b in zip(torch.utils._pytree.tree_leaves(ours), torch.utils._pytree.tree_leaves(eager)):
        assert torch.equal(a, b)
    assert torch.equal(our_state, state)
    assert cxxinductor.counters()["graph_fallback"] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize("shape", [(64, 128), (3, 5, 7), (4096, 768), (1000,), (6, 2)], ids=str)
def test_dropout(dtype, p, shape, device):
    x = torch.randn(shape, device=device, dtype=dtype)
    check(lambda x: F.dropout(x * 2, p) + x, x, device=device)


def test_dropout_of_odd_layouts(device):
    x = torch.randn(64, 128, device=device)
    check(lambda x: F.dropout(x.t(), 0.3), x, device=device)
    check(lambda x: F.dropout(x[:, :64], 0.3), x, device=device)
    check(lambda x: F.dropout(x[:1].expand(64, 128), 0.3), x, device=device)


def test_infinities_that_are_dropped_become_nan_as_in_eager(device):
    x = torch.full((64, 64), float("inf"), device=device)
    torch.manual_seed(0)
    expected = F.dropout(x, 0.5)
    torch.manual_seed(0)
    found = torch.compile(lambda x: F.dropout(x, 0.5), backend="cxxinductor")(x)
    assert torch.equal(found.isnan(), expected.isnan())


def test_several_draws_keep_their_order(device):
    def run(x):
        a = F.dropout(x, 0.1)
        b = torch.rand_like(x)
        c = F.dropout(b, 0.5)
        return a, b, c, torch.randint(0, 9, (5,), device=x.device)

    check(run, torch.randn(32, 64, device=device), device=device)


def test_backward_uses_the_mask_of_the_forward(device):
    x = torch.randn(128, 64, device=device, requires_grad=True)
    weight = torch.randn(64, device=device, requires_grad=True)

    def run(x, weight):
        return (F.dropout(F.layer_norm(x, (64,)) * weight, 0.2) + x).pow(2).sum()

    def gradients(function):
        torch.manual_seed(5)
        return torch.autograd.grad(function(x, weight), [x, weight])

    for a, b in zip(gradients(torch.compile(run, backend="cxxinductor")), gradients(run)):
        torch.testing.assert_close(a, b)


@pytest.mark.gpu
def test_dropout_is_part_of_its_neighbours_kernel():
    x = torch.randn(64, 128, device="cuda")
    report = cxxinductor.explain(lambda x, y: F.dropout(x.relu(), 0.5) + y, x, x.clone())
    (graph,) = report.graphs
    assert len(graph.details["kernels"]) == 1 and graph.details["externs"] == ["cxxinductor::philox_state"]


@pytest.mark.gpu
@pytest.mark.parametrize("count", [2**22 + 8, 2**24, 2**26])
def test_many_elements(count):
    check(lambda x: F.dropout(x, 0.5), torch.ones(count, device="cuda", dtype=torch.bfloat16), device="cuda")
