"""Patterns that users register, and what takes their place."""

import pytest
import torch
from graph_extensions import calls_of, compiled, ops

import cxxinductor
from cxxinductor import UserError


def sum_of_squares(x, y):
    return x * x + y * y


def scaled_pair(x, y):
    return ops.scaled(x, 1.0) + ops.scaled(y, 1.0)


def pair():
    return [torch.empty(3), torch.empty(3)]


def test_a_pattern_is_replaced_in_inference_and_training(device, register):
    register(cxxinductor.register_pattern, sum_of_squares, scaled_pair, [value.to(device) for value in pair()])
    fn = lambda x, y: (sum_of_squares(x + 1, y) * 3).sum()  # noqa: E731
    x, y = torch.randn(6, 7, device=device), torch.randn(6, 7, device=device)
    result, calls = calls_of(fn, x, y)
    assert calls == 2
    torch.testing.assert_close(result, ((x + 1 + y) * 3).sum())
    x.requires_grad_()
    report = cxxinductor.explain(lambda x, y: fn(x, y).backward(), x, y)
    assert report.extensions == ["pattern sum_of_squares (joint graph): 1 replaced"]
    torch.testing.assert_close(x.grad, 6 * (x.detach() + 1))


def test_a_pattern_that_matches_nothing_changes_nothing(device, register):
    register(cxxinductor.register_pattern, sum_of_squares, scaled_pair, [value.to(device) for value in pair()])
    report = cxxinductor.explain(lambda x: x * 2 + 1, torch.randn(6, device=device))
    assert report.extensions == [] and report.counters["extern"] == 0


def test_a_pattern_with_a_check_and_values_that_others_read(device, register):
    seen = []

    def check(x, y):
        seen.append((tuple(x.shape), x.device.type))
        return x.shape[0] > 4

    register(cxxinductor.register_pattern, sum_of_squares, scaled_pair, [value.to(device) for value in pair()], check=check, version="1")
    assert calls_of(sum_of_squares, torch.randn(3, device=device), torch.randn(3, device=device))[1] == 0
    assert calls_of(sum_of_squares, torch.randn(5, device=device), torch.randn(5, device=device))[1] == 2
    assert seen == [((3,), device), ((5,), device)]

    def reads_inside(x, y):
        square = x * x
        return square + y * y, square

    assert calls_of(reads_inside, torch.randn(5, device=device), torch.randn(5, device=device))[1] == 0


def test_a_replacement_of_other_metadata_is_not_taken(device, register):
    """It was traced for f32 and three elements; there it is another."""

    def as_f32(x, y):
        return x * 2 + y + torch.zeros(3, device=x.device)

    def pattern(x, y):
        return x * 2 + y

    register(cxxinductor.register_pattern, pattern, as_f32, [value.to(device) for value in pair()], when="inference")
    for dtype, size in ((torch.bfloat16, 3), (torch.float32, 5)):
        x, y = torch.randn(size, device=device, dtype=dtype), torch.randn(size, device=device, dtype=dtype)
        report = cxxinductor.explain(pattern, x, y)
        assert report.extensions == ["pattern pattern (inference graph): 0 replaced, 1 left as they were"]
        torch.testing.assert_close(compiled(pattern)(x, y), pattern(x, y))


def test_matches_follow_one_another_and_sizes_may_be_symbols(device, register):
    register(cxxinductor.register_pattern, sum_of_squares, scaled_pair, [value.to(device) for value in pair()], when="inference")

    def fn(x, y):
        return sum_of_squares(sum_of_squares(x, y), sum_of_squares(y, x)).t()

    x, y = torch.randn(4, 5, device=device), torch.randn(4, 5, device=device)
    for dynamic in (False, True):
        result, calls = calls_of(fn, x, y, dynamic=dynamic)
        assert calls == 6
        torch.testing.assert_close(result, (x + y + y + x).t())


def test_a_pattern_of_two_results(device, register):
    def pattern(x):
        total = x.sum(-1, keepdim=True)
        return total, x - total

    def replacement(x):
        total = ops.scaled(x.sum(-1, keepdim=True), 1.0)
        return total, x - total

    register(cxxinductor.register_pattern, pattern, replacement, [torch.empty(3, 4, device=device)], when="inference")
    x = torch.randn(5, 6, device=device)
    result, calls = calls_of(lambda x: pattern(x * 2), x)
    assert calls == 1
    torch.testing.assert_close(result, pattern(x * 2))


def test_results_of_a_replacement_lie_as_those_of_the_pattern(device, register):
    def pattern(x):
        return x * 2 + 1

    def replacement(x):
        return (x.t().contiguous() * 2 + 1).t()

    register(cxxinductor.register_pattern, pattern, replacement, [torch.empty(3, 4, device=device)], when="inference")
    x = torch.randn(5, 6, device=device)
    report = cxxinductor.explain(lambda x: pattern(x).view(-1), x)
    assert report.extensions == ["pattern pattern (inference graph): 1 replaced"]
    torch.testing.assert_close(compiled(lambda x: pattern(x).view(-1))(x), pattern(x).view(-1))


def rms_norm(x, weight):
    return torch.nn.functional.rms_norm(x, (8,), weight, 1e-5)


def product_norm(x, weight):
    """As PyTorch takes rms_norm apart, by a product instead of a power."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight


@pytest.mark.parametrize("pattern, replacement", [(rms_norm, product_norm), (product_norm, rms_norm)])
def test_a_function_that_is_decomposed_into_writes_is_part_of_a_pattern(device, register, pattern, replacement):
    example = [torch.empty(4, 8, device=device), torch.empty(8, device=device)]
    register(cxxinductor.register_pattern, pattern, replacement, example, when="inference")
    x, weight = torch.randn(6, 8, device=device), torch.randn(8, device=device)
    report = cxxinductor.explain(lambda x, weight: pattern(x + 1, weight).relu(), x, weight)
    assert report.extensions == [f"pattern {pattern.__name__} (inference graph): 1 replaced"]
    assert report.counters["extern"] == 0 and report.counters["kernels"] == 1
    torch.testing.assert_close(compiled(lambda x, weight: pattern(x + 1, weight).relu())(x, weight), pattern(x + 1, weight).relu())


def test_conditions_of_a_replacement_hold_for_what_it_replaces(device, register):
    """rms_norm takes rows of 8 elements, the pattern any; how many rows there are does not matter."""
    register(cxxinductor.register_pattern, product_norm, rms_norm, [torch.empty(4, 8, device=device), torch.empty(8, device=device)], when="inference")
    for rows, columns, dynamic in ((6, 8, False), (6, 8, True), (4, 16, False)):
        x, weight = torch.randn(rows, columns, device=device), torch.randn(columns, device=device)
        if dynamic:
            torch._dynamo.mark_dynamic(x, 0)
        report = cxxinductor.explain(product_norm, x, weight)
        count = "1 replaced" if columns == 8 else "0 replaced, 1 left as they were"
        assert report.extensions == [f"pattern product_norm (inference graph): {count}"]
        torch.testing.assert_close(compiled(product_norm)(x, weight), product_norm(x, weight))


def plain_attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) * 8**-0.5, -1) @ v


def fused_attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def test_attention_without_dropout_is_a_replacement(device, register):
    register(cxxinductor.register_pattern, plain_attention, fused_attention, [torch.empty(2, 4, 16, 8, device=device) for _ in range(3)], when="inference")
    inputs = [torch.randn(2, 4, 16, 8, device=device) for _ in range(3)]
    result, calls = calls_of(plain_attention, *inputs)
    assert calls == 1
    torch.testing.assert_close(result, plain_attention(*inputs))


def test_attention_without_dropout_is_a_pattern(device, register):
    register(cxxinductor.register_pattern, fused_attention, plain_attention, [torch.empty(2, 4, 16, 8, device=device) for _ in range(3)], when="inference")
    inputs = [torch.randn(2, 4, 16, 8, device=device) for _ in range(3)]
    report = cxxinductor.explain(fused_attention, *inputs)
    assert report.extensions == ["pattern fused_attention (inference graph): 1 replaced"]
    torch.testing.assert_close(compiled(fused_attention)(*inputs), fused_attention(*inputs))


def test_patterns_that_are_refused():
    def refused(pattern, replacement, inputs, message):
        with pytest.raises(UserError, match=message):
            cxxinductor.register_pattern(pattern, replacement, inputs, version="1", name="refused").remove()

    x = torch.empty(3)
    for inputs, found in ((x, "Tensor"), ({"x": x, "y": x}, "dict"), (3, "int"), ("xy", "str")):
        refused(sum_of_squares, scaled_pair, inputs, f"example inputs: expected a list or tuple of tensors, found {found}")
    refused(lambda x: x.nope(), lambda x: x, [x], "the pattern cannot be traced: AttributeError")
    refused(lambda x: x + 1, lambda x: 1 / 0, [x], "the replacement cannot be traced: ZeroDivisionError")
    refused(lambda x, y: x + 1, lambda x, y: x, [x, x], "does not read its input")
    refused(lambda x: x, lambda x: x + 1, [x], "the pattern returns an input")
    refused(lambda x: x + 1, lambda x: (x, x), [x], r"expected a replacement that returns torch.float32\[3\]")
    refused(lambda x: x + 1, lambda x: x.double(), [x], "found torch.float64")
    refused(lambda x: x + 1, lambda x: 3, [x], "expected a replacement that returns tensors, found 3")
    refused(lambda x: x + torch.tensor([1.0, 2.0, 3.0]), lambda x: x, [x], "the pattern holds a tensor of its own")
    refused(lambda x: x + torch.rand_like(x), lambda x: x, [x], "draws random numbers")
    refused(lambda x: x.add_(1), lambda x: x + 1, [x], "the pattern cannot be traced: UserError: it writes into an input")
    refused(lambda x: ops.increment_(x.clone()), lambda x: x + 1, [x], "the pattern calls the higher-order operator auto_functionalized")
    attention = torch.nn.functional.scaled_dot_product_attention
    refused(lambda x: x + 1, lambda x: attention(x, x, x, dropout_p=0.5), [torch.empty(2, 4, 16, 8)], "the replacement calls .* draws random numbers")
    with pytest.raises(UserError, match="is a lambda"):
        cxxinductor.register_pattern(sum_of_squares, lambda x, y: x, pair())


def doubled_back(x):
    return (x * 2.0) / 2.0


def itself(x):
    return x


def test_a_replacement_may_be_an_input(device, register):
    register(cxxinductor.register_pattern, doubled_back, itself, [torch.empty(3, device=device)], when="inference")
    x = torch.randn(8, device=device)
    report = cxxinductor.explain(lambda x: doubled_back(x + 1).exp(), x)
    assert report.extensions == ["pattern doubled_back (inference graph): 1 replaced"]


def test_an_output_is_no_input_where_it_was_none(device, register):
    """The program may write into what it gets."""
    register(cxxinductor.register_pattern, doubled_back, itself, [torch.empty(3, device=device)], when="inference")
    x = torch.randn(8, device=device)
    before = x.clone()
    once, twice = compiled(lambda x: (doubled_back(x), doubled_back(x)))(x)
    once.zero_()
    torch.testing.assert_close(x, before)
    torch.testing.assert_close(twice, before)


def test_a_check_that_raises_is_an_error_that_names_the_pattern(device, register):
    register(cxxinductor.register_pattern, sum_of_squares, scaled_pair, [value.to(device) for value in pair()], check=lambda x, y: 1 / 0, version="1")
    with pytest.raises(Exception, match="pattern sum_of_squares .inference graph. raised ZeroDivisionError"):
        compiled(sum_of_squares)(torch.randn(5, device=device), torch.randn(5, device=device))
