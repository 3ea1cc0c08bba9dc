"""Concatenations: what they join is written in place, splits of what is there copy nothing, and who shares memory is as in eager."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cxxinductor

BOTH = pytest.mark.parametrize("dynamic", [False, True])


def run(fn, inputs, dynamic=False, **options):
    """Results, and the report of the one graph."""
    torch._dynamo.reset()
    with cxxinductor.reports.collect() as reports:
        compiled = torch.compile(fn, backend="cxxinductor", dynamic=dynamic, options=options)
        found = compiled(*inputs)
    assert len(reports) == 1 and not reports[0].details["fallback_reason"]
    return found, reports[0].details


def launches(details):
    return sum(kernel["launches"] for kernel in details["kernels"])


def written(details):
    return sum(kernel["launches"] * kernel["bytes_written"] for kernel in details["kernels"])


def check(fn, inputs, dynamic=False):
    found, details = run(fn, inputs, dynamic)
    torch.testing.assert_close(found, fn(*inputs), rtol=2e-5, atol=2e-5)
    run(fn, inputs, dynamic, check="eager")
    run(fn, inputs, dynamic, check="interp")
    memory = details["memory"]
    assert memory["peak"] <= memory["eager_peak"] + 4096
    return details


@BOTH
def test_products_are_written_where_they_are_joined(dynamic, device):
    def fn(x, v, w):
        return torch.cat([x @ v, x @ w], dim=1)

    x, v, w = (torch.randn(*s, device=device) for s in [(96, 64), (64, 128), (64, 256)])
    details = check(fn, (x, v, w), dynamic)
    assert details["externs"].count("aten::mm") == 2
    if not dynamic:
        assert launches(details) == 0 and details["memory"]["peak"] == 96 * (128 + 256) * 4
    elif device == "cpu":  # widths known only at run time may lie at addresses that a GPU's library is slow with
        assert launches(details) == 0


@BOTH
def test_what_is_left_is_written_by_itself(dynamic, device):
    def fn(x, w, z):
        return torch.cat([z.relu(), x @ w, z.neg()], dim=0)

    x, w, z = (torch.randn(*s, device=device) for s in [(512, 512), (512, 512), (16, 512)])
    details = check(fn, (x, w, z), dynamic)
    if not dynamic and device == "cpu":
        assert launches(details) == 2 and written(details) == 2 * 16 * 512 * 4


def test_a_recurrent_network_stacks_its_states_without_a_copy(device):
    cell = nn.Linear(64, 64).to(device).requires_grad_(False)

    def fn(x):
        state, states = x, []
        for _ in range(6):
            state = state @ cell.weight
            states.append(state)
        return torch.stack(states, dim=1)

    details = check(fn, (torch.randn(32, 64, device=device) / 8,))
    assert launches(details) == 0
    assert details["memory"]["peak"] == 32 * 6 * 64 * 4


def test_rows_are_written_where_they_are_joined(device):
    def fn(x, y):
        return torch.cat([F.softmax(x, dim=-1), F.layer_norm(y, (256,))], dim=0)

    x, y = torch.randn(512, 256, device=device), torch.randn(1024, 256, device=device)
    details = check(fn, (x, y))
    assert written(details) <= (512 + 1024) * (256 + 2) * 4


def test_splits_are_views(device):
    def fn(x, w):
        q, k, v = (x @ w).chunk(3, dim=-1)
        return q, k, v

    x, w = torch.randn(64, 32, device=device), torch.randn(32, 96, device=device)
    (q, k, v), details = run(fn, (x, w))
    assert launches(details) == 0
    assert q.untyped_storage().data_ptr() == k.untyped_storage().data_ptr() == v.untyped_storage().data_ptr()
    assert [t.storage_offset() for t in (q, k, v)] == [0, 32, 64] and q.stride() == (96, 1)
    torch.testing.assert_close((q, k, v), fn(x, w))


def test_who_shares_memory_is_as_in_eager(device):
    def fn(x, w):
        y = x @ w
        joined = torch.cat([y, x], dim=0)
        first, rest = joined.split([64, 64])
        return y, joined, first

    x, w = torch.randn(64, 64, device=device), torch.randn(64, 64, device=device)
    (y, joined, first), _ = run(fn, (x, w))
    for found, wanted in zip((y, joined, first), fn(x, w)):
        torch.testing.assert_close(found, wanted)
    assert first.untyped_storage().data_ptr() == joined.untyped_storage().data_ptr()
    assert y.untyped_storage().data_ptr() != joined.untyped_storage().data_ptr()
    y.zero_()
    torch.testing.assert_close(joined, fn(x, w)[1])


def test_the_backward_of_a_split_copies_gradients_once(device):
    def fn(x, w):
        q, k, v = (x @ w).chunk(3, dim=-1)
        return (q @ k.t()).square().sum() + (v @ v.t()).sum()

    x = torch.randn(64, 64, device=device, requires_grad=True)
    w = torch.randn(64, 192, device=device, requires_grad=True)
    wanted = torch.autograd.grad(fn(x, w), (x, w))
    with cxxinductor.reports.collect() as reports:
        found = torch.autograd.grad(torch.compile(fn, backend="cxxinductor")(x, w), (x, w))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-2)
    backward = next(r.details for r in reports if r.kind == "backward")
    joined = 64 * 192 * 4
    assert written(backward) <= joined + 2 * 64 * 64 * 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_odd_widths_stay_right(dtype, device):
    def fn(x, w, z):
        return torch.cat([x @ w, F.softmax(z, dim=-1), z.relu()], dim=1), x @ w

    for n in (1, 3, 7, 33):
        x, w, z = (torch.randn(*s, device=device, dtype=dtype) for s in [(20, 8), (8, n), (20, n)])
        found, _ = run(fn, (x, w, z))
        torch.testing.assert_close(found, fn(x, w, z))
