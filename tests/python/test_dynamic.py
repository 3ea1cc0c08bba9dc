"""Sizes that change from call to call: one compile, and no graph that runs op by op."""

import pytest
import torch
import torch.nn.functional as F

import cxxinductor


def check(fn, *calls, gradients=False):
    """Each of `calls` is a list of inputs; all of them run through one compile."""
    compiled = torch.compile(fn, backend="cxxinductor", dynamic=True)
    graphs = None
    for inputs in calls:
        ours, theirs = [[x.clone().requires_grad_(gradients and x.is_floating_point()) for x in inputs] for _ in range(2)]
        found, expected = compiled(*ours), fn(*theirs)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        if gradients:
            found.square().sum().backward()
            expected.square().sum().backward()
            for a, b in zip(ours, theirs):
                torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)
        counters = cxxinductor.counters()
        assert counters["eager_fallback"] == counters["aten_fallback"] == 0
        assert graphs in (None, counters["graphs"])
        graphs = counters["graphs"]


def shapes(device, *sizes):
    return [[torch.randn(size, device=device)] for size in sizes]


def test_halves_whose_equality_is_a_guard(device):
    def fn(x):
        a, b = x.chunk(2, -1)
        return torch.cat([a / (b.abs() + 1), b], -1) + x

    check(fn, *shapes(device, (5, 6), (3, 10), (7, 4)))
    check(lambda x: F.glu(x, -1), *shapes(device, (5, 6), (3, 10)), gradients=True)


def test_an_expression_whose_value_is_a_guard(device):
    """Half of a symbolic size, where the other input's size is a number."""
    def fn(x, i):
        return torch.take_along_dim(F.max_pool2d(x, 2), i % 3, -3) * 2

    def inputs(rows, channels, height, width):
        indices = torch.arange(rows * channels * height * width, device=device).view(rows, channels, height, width)
        return [torch.randn(rows, channels, 2 * height, 2 * width, device=device), indices]

    check(fn, inputs(5, 9, 3, 8))
    torch._dynamo.reset()
    check(fn, inputs(2, 17, 5, 32))


def test_a_product_of_sizes_that_a_layer_fixes(device):
    """What a linear layer takes is a guard on the image's size, in the backward graph too."""
    weight = torch.randn(10, 6 * 2 * 2, device=device)
    check(lambda x: F.linear(F.relu(F.max_pool2d(x, 4).flatten(1)), weight), *shapes(device, (5, 6, 8, 8), (3, 6, 8, 8)), gradients=True)


def test_parts_that_need_a_multiple(device):
    check(lambda x: x.unflatten(-1, (4, -1)).softmax(-1).flatten(-2) + x, *shapes(device, (5, 8), (3, 12), (7, 20)))
    check(lambda x: x.unflatten(0, (-1, 3)).sum(1).repeat(3, 1) * x, *shapes(device, (6, 5), (9, 4), (12, 7)), gradients=True)


@pytest.mark.parametrize("function", ["var", "std", "mean", "layer_norm"])
def test_backwards_that_divide_by_a_size(function, device):
    functions = {
        "var": lambda x: x.var(0) + x.var(),
        "std": lambda x: torch.std(x, -1, correction=0),
        "mean": lambda x: x.mean(0) * x.mean(),
        "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    }
    check(functions[function], *shapes(device, (5, 9), (7, 4), (12, 33)), gradients=True)


def test_calls_that_take_sizes(device):
    """slice_backward with a step, and index_put: calls of ATen whose arguments are known at run time."""
    def fn(x, i):
        return torch.sort(x[1::3], 0)[0][:, ::2].repeat_interleave(x.shape[0], 1)[:2].cumsum(0) * x[i].sum()

    calls = [[torch.randn(n, m, device=device), torch.randint(0, n, (4,), device=device)] for n, m in [(9, 6), (17, 8), (33, 5)]]
    check(fn, *calls)
    check(lambda x: x[..., ::2] * 2, *shapes(device, (9, 6), (5, 11)))


def test_strided_slices_in_backward(device):
    check(lambda x: torch.cat([x[1::3], x[..., ::2].sum(-1, keepdim=True).expand(x.shape)[:1]], 0), *shapes(device, (9, 6), (17, 11), (8, 7)), gradients=True)


def test_floats_made_of_sizes_in_calls_of_aten(device):
    def fn(x):
        return x.var(0) * x.mean()

    compiled = torch.compile(fn, backend="cxxinductor", dynamic=True, options={"tier": "aten"})
    for size in [(5, 9), (7, 4)]:
        ours = torch.randn(size, device=device, requires_grad=True)
        (found,) = torch.autograd.grad(compiled(ours).sum(), ours)
        (expected,) = torch.autograd.grad(fn(ours).sum(), ours)
        torch.testing.assert_close(found, expected)


def test_halves_of_an_input_are_views_of_it(device):
    x = torch.randn(9, 5, 16, device=device)
    compiled = torch.compile(lambda x: x.unflatten(-1, (2, -1)).unbind(-2)[1], backend="cxxinductor", dynamic=True)
    for x in (x, torch.randn(3, 7, 4, device=device)):
        found, expected = compiled(x), x[..., x.shape[-1] // 2 :]
        assert torch.equal(found, expected) and found.data_ptr() == expected.data_ptr()
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.parametrize("padding", [0, 1])
def test_strides_where_a_guard_makes_a_quotient_one(padding, device):
    def fn(x):
        y = torch.nn.functional.max_pool2d(x, 2, padding=padding)
        return y, 1.5 - y.transpose(0, -1)

    compiled = torch.compile(fn, backend="cxxinductor", dynamic=True)
    for shape in ((6, 5, 16, 9), (4, 12, 64, 3 - 2 * padding), (8, 2, 8, 17)):
        x = torch.randn(*shape, device=device)
        for ours, eager in zip(compiled(x), fn(x)):
            assert ours.stride() == eager.stride() and torch.equal(ours, eager)
