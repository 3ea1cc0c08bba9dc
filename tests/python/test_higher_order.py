"""Higher-order operators: the graph around them is compiled, their subgraphs too, and nothing falls back whole."""

import pytest
import torch
from torch._higher_order_ops import map as map_rows
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils.checkpoint import checkpoint

import cxxinductor


def compiled(function, **options):
    return torch.compile(function, backend="cxxinductor", fullgraph=True, **options)


def assert_compiled(graphs=1):
    counts = cxxinductor.counters()
    assert counts["aten_fallback"] == counts["eager_fallback"] == 0
    assert counts["graphs"] >= graphs and counts["kernels"] >= 1


def branches(x, y):
    z = torch.cond(x.sum() > 0, lambda a, b: a.sin() * b + 1, lambda a, b: (a - b).exp(), (x, y))
    return z * 2 + x


def test_cond_takes_the_branch_of_each_call(device):
    x, y = torch.rand(8, 5, device=device), torch.randn(8, 5, device=device)
    function = compiled(branches)
    for sign in (1, -1, 1):
        torch.testing.assert_close(function(sign * x, y), branches(sign * x, y))
    assert_compiled(graphs=3)


def test_cond_has_gradients(device):
    x = torch.rand(8, 5, device=device)
    for sign in (1, -1):
        ours, theirs = ((sign * x).clone().requires_grad_() for _ in range(2))
        compiled(branches)(ours, x).square().sum().backward()
        branches(theirs, x).square().sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
    assert_compiled()


def test_nested_cond(device):
    def function(x):
        def inner(t):
            return torch.cond(t.max() > 2, lambda u: u.cos() + u, lambda u: u * u, (t,))

        return torch.cond(x.sum() > 0, inner, lambda t: t.tanh() * t, (x,)) + 1

    for x in (torch.ones(4, device=device) * 3, torch.ones(4, device=device), -torch.ones(4, device=device)):
        torch.testing.assert_close(compiled(function)(x), function(x))
    assert_compiled(graphs=3)


def test_while_loop(device):
    def function(x):
        y = x * 2
        count, result = while_loop(
            lambda i, t: (i < 5) & (t.sum() < 100), lambda i, t: (i + 1, t * 1.5 + t.sin()), (torch.zeros((), dtype=torch.int64, device=x.device), y)
        )
        return count, result.relu() + 1

    for scale in (0.01, 3, 1000):
        x = scale * torch.ones(6, device=device)
        torch.testing.assert_close(compiled(function)(x), function(x))
    assert_compiled(graphs=3)


def test_scan(device):
    def function(xs):
        def step(carry, x):
            new = carry * 0.5 + x.tanh()
            return new, new * 2 + 1

        return scan(step, torch.zeros(4, device=xs.device), xs.exp(), dim=0)

    xs = torch.randn(7, 4, device=device)
    torch.testing.assert_close(compiled(function)(xs), function(xs))
    assert_compiled(graphs=2)


def test_associative_scan(device):
    def function(xs):
        return associative_scan(lambda a, b: a * b + a, xs + 1, dim=0, combine_mode="generic") * 2

    xs = torch.randn(9, 4, device=device)
    torch.testing.assert_close(compiled(function)(xs), function(xs))
    assert_compiled()


def test_map(device):
    def function(xs, y):
        return map_rows(lambda x, other: x.sin() + other * x, xs, y).sum(0)

    xs, y = torch.randn(5, 4, device=device), torch.randn(4, device=device)
    torch.testing.assert_close(compiled(function)(xs, y), function(xs, y))
    assert_compiled(graphs=2)


def test_nested_compile_regions_fuse(device):
    @torch.compiler.nested_compile_region
    def block(x):
        return x.sin() + x * 2

    def function(x):
        return block(block(x) - 1) * 3

    x = torch.randn(16, device=device)
    torch.testing.assert_close(compiled(function)(x), function(x))
    assert_compiled()
    assert cxxinductor.counters()["kernels"] == 1 and cxxinductor.counters()["extern"] == 0


@torch.library.custom_op("cxxi_tests::scale_in_place", mutates_args=("x",))
def scale_in_place(x: torch.Tensor, factor: float) -> torch.Tensor:
    x.mul_(factor)
    return x.sum()


@scale_in_place.register_fake
def _(x, factor):
    return x.new_empty(())


@torch.library.custom_op("cxxi_tests::fill_all", mutates_args=("xs",))
def fill_all(xs: list[torch.Tensor], value: float) -> None:
    for x in xs:
        x.fill_(value)


def test_custom_ops_that_write_their_arguments(device):
    def function(x):
        y = x + 1
        total = scale_in_place(y, 3.0)
        half = y[:2]
        scale_in_place(half, 0.5)
        z = y * 2
        fill_all([z[0], z.t()[1]], 7.0)
        return y.exp() + total, z

    x = torch.randn(4, 4, device=device)
    torch.testing.assert_close(compiled(function)(x), function(x))
    assert_compiled()


def test_custom_op_that_writes_an_input(device):
    def function(x, y):
        scale_in_place(x, 2.0)
        return x + y

    x, y = torch.randn(4, device=device), torch.randn(4, device=device)
    ours, theirs = x.clone(), x.clone()
    torch.testing.assert_close(compiled(function)(ours, y), function(theirs, y))
    torch.testing.assert_close(ours, theirs)
    assert_compiled()


_events = []


@torch.library.custom_op("cxxi_tests::note", mutates_args=())
def note(x: torch.Tensor, text: str) -> torch.Tensor:
    _events.append(text)
    return x.clone()


@note.register_fake
def _(x, text):
    return torch.empty_like(x)


note.register_effect(torch.library.EffectType.ORDERED) if hasattr(note, "register_effect") else None


def test_effects_keep_their_order(device):
    def function(x):
        a = note(x + 1, "first")
        b = note(x * 2, "second")
        note(a.sin(), "third")
        return b + 1

    _events.clear()
    x = torch.randn(4, device=device)
    torch.testing.assert_close(compiled(function)(x), x * 2 + 1)
    assert _events == ["first", "second", "third"]
    assert_compiled()


_kept = []


@torch.library.custom_op("cxxi_tests::keep", mutates_args=())
def keep(x: torch.Tensor) -> torch.Tensor:
    _kept.append(x)
    return x.sum(0)


@keep.register_fake
def _(x):
    return x.new_empty(x.shape[1:])


def keep_in_cond(x):
    def churn(t):
        for k in range(3):
            t = torch.softmax(torch.sin(t) @ t.t() + k, -1) @ t
        return t

    return torch.cond(x.sum() > 0, lambda t: churn(t * 2) + keep(t * 2 + 1) + churn(t), lambda t: t - 1, (x,))


def keep_in_scan(x):
    def step(carry, t):
        total = keep(t * 2 + 1)
        return carry + total, carry * total

    return scan(step, torch.zeros_like(x[0]), x.reshape(4, -1, x.shape[-1]))


@pytest.mark.parametrize("function", [keep_in_cond, keep_in_scan])
def test_arguments_that_calls_in_subgraphs_keep(function, device):
    x = torch.rand(32, 32, device=device)
    _kept.clear()
    expected = function(x)
    wanted = [kept.clone() for kept in _kept]
    _kept.clear()
    torch.testing.assert_close(compiled(function)(x), expected)
    torch.testing.assert_close(_kept[-len(wanted) :], wanted)
    assert_compiled()


@pytest.mark.parametrize("preserve", [True, False])
def test_checkpoint_with_dropout(device, preserve):
    layer = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Dropout(0.5), torch.nn.Linear(32, 16)).to(device)

    def function(x):
        return checkpoint(layer, x, use_reentrant=False, preserve_rng_state=preserve).square().sum()

    x = torch.randn(8, 16, device=device, requires_grad=True)
    torch.manual_seed(3)
    loss = compiled(function)(x)
    loss.backward()
    found = x.grad.clone()
    # The mask of the backward is the forward's: the gradient fits the loss.
    torch.manual_seed(3)
    step = torch.randn_like(x) * 1e-3
    torch.manual_seed(3)
    with torch.no_grad():
        moved = compiled(function)(x + step)
    torch.testing.assert_close((moved - loss.detach()), (found * step).sum(), rtol=5e-2, atol=1e-4)
    assert_compiled()


def test_flex_attention(device):
    from torch.nn.attention.flex_attention import flex_attention

    def function(q, k, v):
        return flex_attention(q * 2, k, v, score_mod=lambda score, b, h, i, j: score + (i - j)).tanh()

    q, k, v = (torch.randn(1, 2, 128, 16, device=device) for _ in range(3))
    with torch.no_grad():
        expected = torch.nn.functional.scaled_dot_product_attention(
            q * 2, k, v, attn_mask=(torch.arange(128)[:, None] - torch.arange(128)).to(q)
        ).tanh()
        torch.testing.assert_close(compiled(function)(q, k, v), expected, rtol=1e-4, atol=1e-4)
    assert_compiled()


@pytest.mark.gpu
def test_user_triton_kernel(device):
    triton = pytest.importorskip("triton")
    tl = triton.language

    @triton.jit
    def double(source, target, count, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(target + offsets, tl.load(source + offsets, offsets < count) * 2, offsets < count)

    def function(x):
        y = x.sin()
        out = torch.empty_like(y)
        double[(triton.cdiv(y.numel(), 128),)](y, out, y.numel(), BLOCK=128)
        return out + 1

    x = torch.randn(1000, device=device)
    torch.testing.assert_close(compiled(function)(x), x.sin() * 2 + 1)
    assert_compiled()


def test_sizes_that_change(device):
    function = compiled(branches, dynamic=True)
    for rows in (3, 5, 9):
        x, y = torch.rand(rows, 4, device=device), torch.randn(rows, 4, device=device)
        torch.testing.assert_close(function(x, y), branches(x, y))
    assert_compiled()
