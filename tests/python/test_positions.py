"""Values that follow from positions alone: what is folded must be what eager computes, and attention is told of causal masks."""

import random
import re

import pytest
import torch
import torch.nn.functional as F
from compare import assert_as_good_as_eager, to_double

import cxxinductor
from cxxinductor import reports


def step(rng, values):
    """One random operation on integer or boolean matrices, as a function of the list of values so far (all [n, m])."""
    a, b = rng.randrange(values), rng.randrange(values)
    k, lo = rng.randint(-2, 3), rng.randint(0, 2)

    def shifted(x, dim):  # a row before, or after, or both; then a window of the old size
        first, last = x.narrow(dim, 0, 1) - k, x.narrow(dim, x.shape[dim] - 1, 1) + lo
        wide = torch.cat([first, x] if k % 2 else [first, x, last], dim)
        return wide.narrow(dim, lo if k % 2 == 0 else min(lo, 1), x.shape[dim])

    dim = rng.randrange(2)
    return rng.choice([
        lambda v: v[a] + v[b] * k,
        lambda v: v[a] - v[b],
        lambda v: v[a] - k,
        lambda v: -v[a],
        lambda v: v[a].flip(dim),
        lambda v: shifted(v[a], dim),
        lambda v: F.pad(v[a], (lo, 1), value=k)[:, lo : lo + v[a].shape[1]],
        lambda v: torch.where(v[a] <= v[b], v[a], v[b]),
        lambda v: torch.where(v[a] == v[b], k, v[a]),
        lambda v: (v[a] >= v[b]).long(),
        lambda v: ((v[a] < v[b]) & (v[b] != v[a] + k)).cumsum(dim),
        lambda v: (v[a] != v[b]).sum(dim, keepdim=True).expand(v[a].shape),
        lambda v: v[a][torch.arange(v[a].shape[0], device=v[a].device)[:, None], torch.arange(v[a].shape[1], device=v[a].device)[None, :]],
    ])


def program(seed):
    rng = random.Random(seed)
    steps = [step(rng, 2 + i) for i in range(10)]
    pairs = [(rng.randrange(12), rng.randrange(12)) for _ in range(6)]

    def run(x):
        rows = torch.arange(x.shape[0], device=x.device)[:, None].expand(x.shape[0], x.shape[1])
        columns = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], x.shape[1])
        values = [rows, columns]
        for one in steps:
            values.append(one(values))
        compared = [c for a, b in pairs for c in (values[a] == values[b], values[a] < values[b], values[a] >= values[b])]
        return (*compared, *values[2:], x + values[-1])

    return run


@pytest.mark.parametrize("seed", range(12))
def test_programs_of_positions(seed, device):
    run = program(seed)
    compiled = torch.compile(run, backend="cxxinductor", dynamic=bool(seed % 2))
    for shape in ((5, 7), (4, 6)) if seed % 2 else ((5, 7),):
        x = torch.randn(shape, device=device)
        for ours, eager in zip(compiled(x), run(x)):
            assert ours.dtype == eager.dtype and torch.equal(ours, eager)
    assert cxxinductor.counters()["aten_fallback"] == 0


def attention(q, k, v, keep):
    """As a decoder calls it: with a mask that it made itself."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=keep)


def causal(length, device):
    positions = torch.arange(length, device=device)
    begins = torch.diff(positions, prepend=positions[:1] - 1) != 1
    sequence = begins.cumsum(-1)
    return (positions[None, :] <= positions[:, None]) & (sequence[:, None] == sequence[None, :])


MASKS = {"efficient_attention": 3, "efficient_attention_backward": 4, "cudnn_attention": 3, "cudnn_attention_backward": 8}


def masks_of_calls(found):
    """Number of attention calls, and how many of them take a mask, in graph texts."""
    texts = [r.details["texts"]["graph-passes"] for r in found]
    calls = [match for text in texts for match in re.findall(r'"aten::_scaled_dot_product_(\w+)"\((.*)\) with', text)]
    masks = [args.split(", ")[MASKS[name]] if name in MASKS else args.split("attn_mask = ")[-1] for name, args in calls]
    return len(calls), sum(mask.startswith("$") for mask in masks)


def assert_masks_taken(count, run, inputs, tmp_path):
    """One call of attention, with as many masks, and right."""
    with torch.no_grad(), reports.collect() as found:
        result = torch.compile(run, backend="cxxinductor", options={"dump": "graph", "dump_dir": str(tmp_path)})(*inputs)
    assert masks_of_calls(found) == (1, count)
    assert_as_good_as_eager(result, run(*inputs), run(*to_double(inputs)))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_causal_attention_takes_no_mask(dtype, dynamic, device, tmp_path):
    def run(q, k, v):
        return attention(q, k, v, causal(q.shape[2], q.device))

    compiled = torch.compile(run, backend="cxxinductor", dynamic=dynamic, options={"dump": "graph", "dump_dir": str(tmp_path)})
    for length in (16, 48) if dynamic else (48,):
        inputs = [torch.randn(2, 3, length, 64, device=device, dtype=dtype) for _ in range(3)]
        with torch.no_grad(), reports.collect() as found:
            result = compiled(*inputs)
        if found:
            assert masks_of_calls(found) == (1, 0)
            assert found[0].details["kernels"] == []
        assert_as_good_as_eager(result, run(*inputs), run(*to_double(inputs)))


def lower(n, device):
    return torch.tril(torch.ones(n, n, device=device))


CAUSAL = {
    "tril": lambda n, d: lower(n, d).bool(),
    "not triu": lambda n, d: ~torch.triu(torch.ones(n, n, device=d, dtype=torch.bool), diagonal=1),
    "masked_fill": lambda n, d: torch.zeros(n, n, device=d).masked_fill(lower(n, d) == 0, float("-inf")),
    "least number": lambda n, d: torch.triu(torch.full((n, n), torch.finfo(torch.float32).min, device=d), diagonal=1),
    "differences": lambda n, d: torch.arange(n, device=d)[:, None] - torch.arange(n, device=d) >= 0,
    "of heads": lambda n, d: lower(n, d).bool()[None, None].expand(2, 3, n, n),
}


@pytest.mark.parametrize("name", CAUSAL)
def test_causal_masks_of_any_make(name, device, tmp_path):
    def run(q, k, v):
        return attention(q, k, v, CAUSAL[name](q.shape[2], q.device))

    assert_masks_taken(0, run, [torch.randn(2, 3, 48, 64, device=device) for _ in range(3)], tmp_path)


def test_a_mask_that_lets_everything_through_is_none(device, tmp_path):
    def run(q, k, v):
        keep = torch.arange(k.shape[2], device=q.device)[None, :] >= -torch.arange(q.shape[2], device=q.device)[:, None]
        return attention(q, k, v, keep)

    assert_masks_taken(0, run, [torch.randn(2, 3, n, 64, device=device) for n in (16, 48, 48)], tmp_path)


def test_gradients_of_causal_attention(device, tmp_path):
    def run(q, k, v):
        return attention(q * 1.5, k, v, causal(q.shape[2], q.device)).tanh().sum()

    inputs = [torch.randn(2, 3, 48, 64, device=device, dtype=torch.float32, requires_grad=True) for _ in range(3)]
    doubles = [x.detach().double().requires_grad_() for x in inputs]
    compiled = torch.compile(run, backend="cxxinductor", options={"dump": "graph", "dump_dir": str(tmp_path)})
    with reports.collect() as found:
        ours = torch.autograd.grad(compiled(*inputs), inputs)
    assert masks_of_calls(found) == (2, 0)
    for got, eager, exact in zip(ours, torch.autograd.grad(run(*inputs), inputs), torch.autograd.grad(run(*doubles), doubles)):
        assert_as_good_as_eager(got, eager, exact)


OTHERS = {
    "window": lambda n, d: causal(n, d) & (torch.arange(n, device=d)[None, :] > torch.arange(n, device=d)[:, None] - 5),
    "one more": lambda n, d: torch.arange(n, device=d)[None, :] <= torch.arange(n, device=d)[:, None] + 1,
    "before": lambda n, d: torch.tril(torch.ones(n, n, device=d), diagonal=-1).bool() | (torch.arange(n, device=d) == 0),
    "reversed": lambda n, d: torch.arange(n, device=d)[None, :] >= torch.arange(n, device=d)[:, None],
    "packed": lambda n, d: causal(n, d) & ((torch.arange(n, device=d) // 7)[:, None] == (torch.arange(n, device=d) // 7)[None, :]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_masks_are_kept(name, device, tmp_path):
    def run(q, k, v):
        return attention(q, k, v, OTHERS[name](q.shape[2], q.device))

    assert_masks_taken(1, run, [torch.randn(2, 3, 48, 64, device=device) for _ in range(3)], tmp_path)


def test_more_keys_than_queries(device):
    def run(q, k, v):
        rows, columns = torch.arange(q.shape[2], device=q.device), torch.arange(k.shape[2], device=q.device)
        return attention(q, k, v, columns[None, :] <= rows[:, None])

    q, k, v = (torch.randn(2, 3, n, 64, device=device) for n in (16, 48, 48))
    with torch.no_grad():
        result = torch.compile(run, backend="cxxinductor")(q, k, v)
        assert_as_good_as_eager(result, run(q, k, v), run(*to_double((q, k, v))))


@pytest.mark.parametrize("dynamic", [False, True])
def test_arithmetic_of_positions_wraps_as_eager_does(dynamic, device):
    def fn(x):
        n = x.shape[0]
        i = torch.arange(n, device=x.device)
        hashed = i * 6364136223846793005 + 1442695040888963407
        high = i * 2**60
        fourth = (i + 2**16) * (i + 2**16) * (i + 2**16) * (i + 2**16)
        return x + (hashed < 0), high >= 0, high == high - 2**62 - 2**62, torch.where(fourth > 0, x, -x), hashed // 3, x[(i * 2**62) % 8 % n]

    x = torch.randn(64, device=device)
    for actual, expected in zip(torch.compile(fn, backend="cxxinductor", dynamic=dynamic)(x), fn(x)):
        assert torch.equal(actual, expected)


def test_a_sum_over_positions_that_differ_along_it(device):
    """Rows of the square are gathered from others: which positions are compared is data of the very dimension that is summed over."""

    def fn(rows, wanted, values):
        positions = torch.arange(100, device=rows.device).view(10, 10).gather(0, rows)
        return torch.where(positions == wanted[:, None], values[:, None], 0.0).sum(1)

    rows = torch.randint(0, 10, (7, 10), device=device)
    wanted = 10 * rows[:, 3] + 3
    values = torch.randn(7, device=device)
    assert torch.equal(torch.compile(fn, backend="cxxinductor", fullgraph=True)(rows, wanted, values), values)
