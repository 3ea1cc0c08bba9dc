"""Pools are kernels of ours, bit-equal to eager in both directions: values, indices, strides."""

import pytest
import torch
from torch.nn import functional as F

import cxxinductor

# (kernel, stride, padding, dilation, ceil_mode)
WINDOWS = [
    (3, 2, 1, 1, False),
    (2, 2, 0, 1, False),
    (3, 2, 1, 1, True),
    ((3, 2), (2, 1), (1, 0), 1, True),
    (3, 1, 1, 2, False),
    (2, 3, 1, 1, True),
]


def results(function, x, backward=True):
    x = x.clone().requires_grad_(backward)
    out = function(x)
    outs = list(out) if isinstance(out, tuple) else [out]
    if backward:
        outs += torch.autograd.grad(outs[0].float().square().sum(), [x])
    return [t.detach() for t in outs]


def check(function, x, backward=True):
    torch._dynamo.reset()
    cxxinductor.reset_counters()
    compiled = torch.compile(function, backend="cxxinductor")
    for ours, eager in zip(results(compiled, x, backward), results(function, x, backward)):
        assert ours.stride() == eager.stride()
        torch.testing.assert_close(ours, eager, rtol=0, atol=0, equal_nan=True)
    counters = cxxinductor.counters()
    assert counters["aten_fallback"] == counters["eager_fallback"] == 0
    return counters["extern"]


@pytest.mark.parametrize(("dtype", "memory_format"), [(torch.float32, torch.contiguous_format), (torch.bfloat16, torch.channels_last)], ids=str)
def test_max_pool(device, dtype, memory_format):
    x = torch.randn(2, 5, 17, 19, device=device, dtype=dtype).to(memory_format=memory_format)
    for kernel, stride, padding, dilation, ceil_mode in WINDOWS:

        def pool(x):
            return F.max_pool2d(x, kernel, stride, padding, dilation, ceil_mode, return_indices=True)

        assert check(pool, x) == (0 if dilation == 1 else 1), "the backward of dilated pools is a call"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_average_pool(device, dtype, count_include_pad):
    x = torch.randn(2, 5, 17, 19, device=device, dtype=dtype)
    for kernel, stride, padding, dilation, ceil_mode in WINDOWS:
        if dilation == 1:
            assert check(lambda x: F.avg_pool2d(x, kernel, stride, padding, ceil_mode, count_include_pad), x) == 0
    assert check(lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=7), x) == 0


def test_windows_of_nothing_but_infinities_and_nans(device):
    x = torch.full((1, 1, 8, 8), -float("inf"), device=device)
    x[0, 0, 5, 5] = float("nan")
    x[0, 0, 4, 5] = float("nan")
    assert check(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), x, backward=False) == 0


def test_a_pool_fuses_with_its_neighbours(device):
    x = torch.randn(2, 5, 16, 16, device=device)
    report = cxxinductor.explain(lambda x: F.max_pool2d(x.relu(), 3, 2, 1) * 2, x)
    assert "1 kernels, 1 launches and 0 extern calls" in str(report)
