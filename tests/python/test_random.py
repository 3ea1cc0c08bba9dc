"""Random numbers: those of eager for the same seed, and a generator that stands where eager leaves it."""

import pytest
import torch
import torch.nn.functional as F
import torch.utils.checkpoint

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
    for a, b in zip(torch.utils._pytree.tree_leaves(ours), torch.utils._pytree.tree_leaves(eager), strict=True):
        assert torch.equal(a, b), (a.dtype, a.shape)
        assert a.stride() == b.stride()
    assert torch.equal(our_state, state)
    assert cxxinductor.counters()["aten_fallback"] == 0


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


@pytest.mark.parametrize("channels_last", [False, True])
def test_dropout_between_convolutions(channels_last, device):
    """The kernels around it choose the layout of images, the order in which the numbers are drawn stays."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    x, w, v = (torch.randn(shape).to(device, dtype).requires_grad_() for shape in ((2, 4, 9, 9), (6, 4, 3, 3), (5, 6, 3, 3)))
    if channels_last:
        x = x.detach().to(memory_format=torch.channels_last).requires_grad_()

    def function(x, w, v):
        return F.conv2d(torch.native_dropout(F.conv2d(x, w).relu(), 0.5, True)[0], v)

    compiled = torch.compile(function, backend="cxxinductor")
    (ours, our_state), (eager, state) = (drawn(f, x, w, v, device=device) for f in (compiled, function))
    torch.testing.assert_close(ours, eager)
    assert torch.equal(our_state, state)


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


def in_layout(function):
    """Results like an input that lies transposed, or with its channels last."""

    def run(x):
        return function(x.t()), function(x.reshape(4, 8, 2, 8).contiguous(memory_format=torch.channels_last))

    return run


FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64]

OF_FLOATS = {
    "rand": lambda x: torch.rand(x.shape, dtype=x.dtype, device=x.device),
    "rand_like": torch.rand_like,
    "uniform": lambda x: torch.empty_like(x).uniform_(-1.3, 2.7),
    "randn": lambda x: torch.randn(x.shape, dtype=x.dtype, device=x.device),
    "randn_like": torch.randn_like,
    "normal": lambda x: torch.empty_like(x).normal_(0.5, 3.0),
    "normal_of_numbers": lambda x: torch.normal(0.5, 3.0, x.shape, dtype=x.dtype, device=x.device),
    "normal_about_a_tensor": lambda x: torch.normal(x * 3, 0.7),
    "log_normal": lambda x: torch.empty_like(x).log_normal_(0.5, 1.5),
    "exponential": lambda x: torch.empty_like(x).exponential_(2.5),
    "cauchy": lambda x: torch.empty_like(x).cauchy_(0.5, 1.5),
    "bernoulli": lambda x: torch.bernoulli(x, 0.3),
    "randint_like": lambda x: torch.randint_like(x, -5, 100),
}
OF_INTEGERS = {
    "randint": lambda x: torch.randint(100, x.shape, dtype=x.dtype, device=x.device),
    "randint_low": lambda x: torch.randint(3, 100, x.shape, dtype=x.dtype, device=x.device),
    "randint_like": lambda x: torch.randint_like(x, 100),
    "bernoulli": lambda x: torch.bernoulli(x, 0.3),
}


# Few elements, several draws, an odd number of them; on a GPU several turns of all threads too.
def shapes(device):
    return [(), (1,), (7, 41), (64, 128)] + ([(270336 * 5 + 77,)] if device == "cuda" else [(3, 1 << 14)])


# One graph an op: dtypes and sizes follow one another, so that each draws where the one before has left the generator.
@pytest.mark.parametrize("name", OF_FLOATS)
def test_distributions(name, device):
    function = OF_FLOATS[name]
    inputs = [torch.ones(shape, dtype=dtype, device=device) for dtype in FLOATS for shape in shapes(device)]
    check(lambda *xs: [function(x) for x in xs], *inputs, device=device)


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_distributions_of_integers(name, device):
    function = OF_INTEGERS[name]
    dtypes = [torch.int64, torch.int32, torch.uint8] + ([torch.bool] if name == "bernoulli" else [])
    inputs = [torch.ones(shape, dtype=dtype, device=device) for dtype in dtypes for shape in shapes(device)]
    check(lambda *xs: [function(x) for x in xs], *inputs, device=device)


@pytest.mark.parametrize("high", [(1 << 28) - 1, 1 << 28, 1 << 40], ids=str)
def test_wide_ranges_take_two_words(high, device):
    def run(x):
        return torch.randint(-5, high, (1000,), device=x.device), torch.randint(high, (3, 5), device=x.device)

    check(run, torch.ones(1, device=device), device=device)


@pytest.mark.parametrize("name", ["rand_like", "randn_like", "uniform", "exponential", "bernoulli"])
def test_numbers_follow_the_order_of_memory(name, device):
    check(in_layout(OF_FLOATS[name]), torch.ones(16, 32, device=device), device=device)


def test_a_view_with_holes_draws_as_in_eager(device):
    def run(x):
        y = x.clone()
        y[:, ::2].uniform_(-1, 1)
        y[3].normal_()
        return y

    check(run, torch.ones(16, 32, device=device), device=device)


def test_draws_of_all_kinds_keep_their_order(device):
    def run(x):
        a = F.dropout(x, 0.1)
        b = torch.randn_like(x) + a
        c = torch.rand(x.shape, dtype=torch.float64, device=x.device)
        d = torch.randperm(9, device=x.device)
        return a, b, c, d, torch.empty_like(x).exponential_(), F.dropout(b, 0.5), torch.randint(0, 1 << 40, (5,), device=x.device)

    check(run, torch.ones(32, 64, device=device), device=device)


def test_numbers_are_drawn_once_where_the_backward_needs_them(device):
    x = torch.randn(128, 64, device=device, requires_grad=True)

    def run(x):
        noise = torch.randn_like(x)
        return ((x * noise).tanh() + torch.rand_like(x) * x.sin()).pow(2)

    def gradient(function):
        torch.manual_seed(5)
        out = function(x)
        return [out, *torch.autograd.grad(out.sum(), [x])]

    for a, b in zip(gradient(torch.compile(run, backend="cxxinductor")), gradient(run)):
        torch.testing.assert_close(a, b)


def test_checkpointed_draws_are_repeated(device):
    x = torch.randn(64, 64, device=device, requires_grad=True)

    def block(x):
        return (x + torch.randn_like(x)).sin() * torch.rand_like(x)

    def gradient(function):
        torch.manual_seed(5)
        out = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
        return [out, *torch.autograd.grad(out.sum(), [x])]

    for a, b in zip(gradient(torch.compile(block, backend="cxxinductor")), gradient(block)):
        torch.testing.assert_close(a, b)


def test_counts_that_are_symbols(device):
    compiled = torch.compile(lambda x: x + torch.rand_like(x) + torch.randn_like(x), backend="cxxinductor", dynamic=True)
    for n in (3, 700, 5000):
        x = torch.ones(n, 2, device=device)
        (ours, state), (eager, expected) = (
            drawn(f, x, device=device) for f in (compiled, lambda x: x + torch.rand_like(x) + torch.randn_like(x))
        )
        assert torch.equal(ours, eager) and torch.equal(state, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("name", OF_FLOATS)
def test_distributions_are_part_of_their_readers_kernels(name):
    report = cxxinductor.explain(lambda x: OF_FLOATS[name](x) + x, torch.ones(64, 128, device="cuda"))
    (graph,) = report.graphs
    assert len(graph.details["kernels"]) == 1 and graph.details["externs"] == ["cxxinductor::philox_state"]


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["rand_like", "randn_like", "exponential"])
@pytest.mark.parametrize("count", [2**22 + 8, 2**26])
def test_many_numbers(name, count):
    check(OF_FLOATS[name], torch.ones(count, device="cuda", dtype=torch.bfloat16), device="cuda")
