"""Numbers that a dtype does not hold: what they become, and where eager raises."""

import math

import pytest
import torch
from compare import assert_same_bits


@pytest.mark.parametrize("count", [1, 4, 19])
@pytest.mark.parametrize("integers", [torch.int64, torch.int32, torch.int16, torch.uint8])
def test_constants_that_integers_do_not_hold_are_converted_as_in_eager(integers, count, device):
    def fn(x):
        large, special = torch.where(x > 0, 1e20, -1e20), torch.where(x > 0, float("nan"), float("inf"))
        return large.to(integers), special.to(integers), x.nan_to_num().to(integers), x.masked_fill(x > 0, float("inf")).to(integers)

    x = torch.full((count,), -float("inf"), device=device)
    x[::2] = 1
    found = torch.compile(fn, backend="cxxinductor")(x)
    assert all(torch.equal(a, b) for a, b in zip(found, fn(x))), (found, fn(x))


@pytest.mark.parametrize("floats", [torch.float32, torch.float64])
@pytest.mark.parametrize("integers", [torch.int32, torch.int64])
def test_floats_by_way_of_integers(floats, integers, device):
    """Neither -0, NaN nor what the integers do not hold survives, be it in a full vector or in the rest."""
    x = torch.tensor([-0.3, 0.5, float("nan"), float("inf"), -float("inf"), 3e9, 1e30] * 5, dtype=floats, device=device)

    def fn(x):
        return x.to(integers).to(floats)

    for size in (1, 7, 17, 35):
        assert_same_bits(torch.compile(fn, backend="cxxinductor", dynamic=False)(x[:size]), fn(x[:size]))


@pytest.mark.parametrize("value", [3e9, 1e10, 1e20, -1e20, math.inf, -math.inf, math.nan, -3.7])
@pytest.mark.parametrize("integers", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_constant_tensors_become_integers_as_in_eager(integers, value, device):
    def constants(x):
        return torch.full((3,), value, device=device).to(integers) + (x * 0).to(integers), torch.full((40,), value, device=device).to(integers)

    x = torch.tensor([1.0, 2.0, 3.0], device=device)
    for found, expected in zip(torch.compile(constants, backend="cxxinductor")(x), constants(x)):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("floats", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("integers", [torch.uint8, torch.int8, torch.int16], ids=str)
def test_floats_become_narrow_integers_as_in_eager(integers, floats, device):
    values = [2147483905.0, 12884902401.0, -3.7, -1.0, -128.0, 255.0, 256.0, 300.0, -40000.0, 3e9, 1e10, -1e10, 1e20, math.inf, -math.inf, math.nan]
    x = torch.tensor(values * 3, dtype=floats, device=device)
    assert torch.equal(torch.compile(lambda x: x.to(integers), backend="cxxinductor")(x), x.to(integers))


@pytest.mark.parametrize("dtype, beyond", [(torch.float16, 65504.5), (torch.bfloat16, 3.4e38), (torch.float32, 3.5e38)], ids=str)
def test_numbers_beyond_the_largest_float(dtype, beyond, device):
    """Eager raises where it fills a tensor with the number; where the number is infinite or fits, it does not."""
    index = torch.tensor([0], device=device)
    fills = {
        "masked_fill": lambda x, number: x.masked_fill(x > 1, number),
        "full_like": lambda x, number: torch.full_like(x, number),
        "full": lambda x, number: torch.full((2,), number, dtype=dtype, device=device) * x,
        "fill_": lambda x, number: x.clone().fill_(number),
        "index_fill": lambda x, number: x.index_fill(0, index, number),
        "scatter": lambda x, number: x.scatter(0, index, number),
        "pad": lambda x, number: torch.nn.functional.pad(x, (1, 1), value=number),
    }
    x = torch.tensor([1.0, 2.0], dtype=dtype, device=device)
    for name, fill in fills.items():
        for number in (beyond, -beyond, torch.finfo(dtype).max, torch.finfo(dtype).min, math.inf, 65504, 65505, -70000):
            torch._dynamo.reset()
            compiled = torch.compile(fill, backend="cxxinductor")
            try:
                expected = fill(x, number)
            except RuntimeError:
                with pytest.raises(RuntimeError, match="without overflow"):
                    compiled(x, number)
            else:
                assert torch.equal(compiled(x, number), expected), (name, number)
