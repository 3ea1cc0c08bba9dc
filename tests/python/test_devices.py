"""Graphs over several devices: values that a model makes on the CPU while it runs on a GPU, and models over two GPUs.

``plan_text`` shows without a GPU what becomes of them; what is marked gpu runs them.
"""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode

import cxxinductor


def fake(*sizes, dtype=torch.float32, device="cuda"):
    return torch.empty(sizes, dtype=dtype, device=device)


def steps(text):
    """Of a plan: kernels on the CPU, copies between devices, and all extern calls."""
    return (
        len(re.findall(r"^  kernel @\S+ on cpu ", text, re.M)),
        text.count('extern "aten::_to_copy"'),
        text.count('= extern "'),
    )


# ---- How models make values on the CPU: reduced from transformers and timm -------------------------------------------


def buckets(relative, count=32, furthest=128):
    """T5's buckets of positions: exact near zero, then by logarithm."""
    count //= 2
    result = (relative > 0).to(torch.long) * count
    relative = relative.abs()
    exact = count // 2
    far = exact + (torch.log(relative.float() / exact) / math.log(furthest / exact) * (count - exact)).to(torch.long)
    return result + torch.where(relative < exact, relative, torch.min(far, torch.full_like(far, count - 1)))


def mpnet(scores, table):
    """Buckets of positions on the CPU, moved as the bias' indices."""
    positions = torch.arange(scores.shape[-1])
    index = buckets(positions[None, :] - positions[:, None]).to(scores.device)
    return torch.softmax(scores + F.embedding(index, table).permute(2, 0, 1), -1)


def longt5(scores):
    """A mask of what is near, made on the CPU and moved."""
    block = scores.shape[-1] // 3
    positions = torch.arange(3 * block, dtype=torch.int32)
    relative = positions[None, :] - positions[block:-block][:, None]
    local = (relative.abs() < block)[None, None, :, :]
    return torch.softmax(scores.masked_fill(~local.to(scores.device), -1e10), -1)


def longt5_global(x, mask):
    """Ends of blocks: positions of the CPU, compared there and moved."""
    block = 4
    length = mask.shape[-1]
    ends = ((torch.arange(length) % block) == block - 1).to(mask.device)
    ids = torch.cumsum(torch.where(ends, 1.0, 0.0).expand(mask.shape), -1)
    return x * torch.where(mask, ids, -1.0)[..., None]


def edgenext(x):
    """A mask of zeros, made on the CPU and moved as booleans; sines of positions."""
    mask = torch.zeros(x.shape[0], *x.shape[2:]).to(device=x.device, dtype=torch.bool)
    rows = (~mask).cumsum(1, dtype=torch.float32)
    return x + torch.stack([rows.sin(), rows.cos()], 1).sum(1, keepdim=True)


def sam(queries, table):
    """Relative positions of queries and keys as indices of the CPU into a table of the GPU."""
    q, k = queries.shape[1], (table.shape[0] + 1) // 2
    relative = torch.arange(q, dtype=torch.float32)[:, None] * max(k / q, 1.0) - torch.arange(k, dtype=torch.float32)[None, :] * max(q / k, 1.0)
    taken = table[(relative + (k - 1) * max(q / k, 1.0)).long()]
    return torch.einsum("bqc,qkc->bqk", queries, taken)


def swinv2(attention, scale):
    """A bound that tracing keeps as a tensor of the CPU; coordinates in logarithms, made there."""
    window = attention.shape[-1]
    coordinates = torch.arange(-(window - 1), window, dtype=torch.int64).float() * 8 / (window - 1)
    coordinates = torch.sign(coordinates) * torch.log2(coordinates.abs() + 1.0) / math.log2(8)
    scale = torch.minimum(scale, torch.log(torch.tensor(1.0 / 0.01))).exp()
    bias = coordinates.to(attention.device)[window - 1 :]
    return attention * scale + 16 * torch.sigmoid(bias)


def fsmt(x, padding):
    """A table of sines made on the CPU, of the batch's length, and its rows by positions of the GPU."""
    half = x.shape[-1] // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.int64).float() * -(math.log(10000) / (half - 1)))
    table = torch.arange(32, dtype=torch.int64).float()[:, None] * frequencies[None, :]
    table = torch.cat([table.sin(), table.cos()], 1).to(x.device)
    positions = torch.cumsum((~padding).long(), 1)
    return x + table[positions]


def prophetnet(scores):
    """A causal mask of the n-gram stream: triangles filled on the CPU."""
    length = scores.shape[-1]
    left = torch.full((2, length, length), torch.finfo(torch.float32).min)
    right = left.detach().clone()
    left = torch.triu(left, 1)
    right[:, torch.arange(length), torch.arange(length)] = 0.0
    return torch.softmax(scores + (left + right * 0).to(scores.device)[0], -1)


def gemma3(x, mask):
    """A truth value of the CPU among masks of the GPU, and a scale that is a tensor there."""
    allowed = mask & torch.tensor(True)
    return x * torch.tensor(8.0).to(x.dtype) * allowed[..., None]


def minimax(x):
    """Decay rates of lightning attention, made on the CPU from the number of heads."""
    rates = 1 / (2 ** (8 / 4)) ** (torch.arange(4) + 1)
    rates = rates[:, None, None] * (1 - 1 / 7 + 1e-5)
    return x * torch.exp(-rates.to(x.device) * 3)


def experts(x, logits):
    """Aria's and Phi-MoE's counts: experts as positions of the CPU, compared with choices of the GPU."""
    chosen = logits.argmax(-1)
    every = torch.arange(logits.shape[-1]).to(chosen.device)
    share = (chosen[:, None] == every[None, :]).float().mean(0)
    return x * (share * logits.softmax(-1).mean(0)).sum() * torch.tensor(logits.shape[-1]).float()


# Name, inputs, and whether kernels of the CPU and copies from it are left: not where what is made there is the same on the
# GPU, which makes it then. Logarithms, powers and sines are not; a tensor of one number is an argument of the GPU's kernels.
FAMILIES = {
    "mpnet": (mpnet, [(4, 16, 16), (32, 4)], (True, True)),
    "longt5": (longt5, [(2, 4, 4, 12)], (False, False)),
    "longt5_global": (longt5_global, [(2, 16, 8), ("bool", 2, 16)], (False, False)),
    "edgenext": (edgenext, [(2, 8, 4, 4)], (False, False)),
    "sam": (sam, [(2, 4, 16), (7, 16)], (False, False)),
    "swinv2": (swinv2, [(2, 4, 8, 8), (4, 1, 1)], (True, True)),
    "fsmt": (fsmt, [(2, 16, 8), ("bool", 2, 16)], (True, True)),
    "prophetnet": (prophetnet, [(2, 8, 8)], (True, True)),
    "gemma3": (gemma3, [(2, 8, 16), ("bool", 2, 8)], (False, False)),
    "minimax": (minimax, [(2, 4, 8, 8)], (True, True)),
    "experts": (experts, [(16, 8), (16, 4)], (False, False)),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_planned_whole(name):
    fn, inputs, left = FAMILIES[name]
    with FakeTensorMode():
        arguments = [fake(*size[1:], dtype=torch.bool) if size[0] == "bool" else fake(*size) for size in inputs]
    text = cxxinductor.plan_text(fn, *arguments)
    kernels, copies, _ = steps(text)
    assert text.startswith("plan @plan for cuda on cuda:0")
    assert (kernels > 0, copies > 0) == left, text


def test_constants_that_the_function_moves_to_the_gpu():
    with FakeTensorMode():
        x = fake(8, 2)
    text = cxxinductor.plan_text(lambda x: x * torch.tensor([2.0, 3.0]).to(x.device) + torch.tensor(1.0, device=x.device), x)
    assert steps(text)[0] == 0, text


def test_what_depends_on_a_tensor_of_the_cpu_is_computed_there_and_moved_once():
    def fn(x, table):
        table = (table * 2 + 1).clamp(max=5).to(x.device)
        return x + table, x * table

    with FakeTensorMode():
        text = cxxinductor.plan_text(fn, fake(8, 16), fake(16, device="cpu"))
    assert steps(text) == (1, 1, 1)
    assert "plan @plan for cuda on cuda:0, cpu (" in text
    assert "non_blocking = true" in text


def test_scalars_of_the_cpu_are_arguments_of_kernels():
    def fn(x, rate):
        rate = rate * 2
        return x * rate + rate.sqrt()

    with FakeTensorMode():
        text = cxxinductor.plan_text(fn, fake(8, 16, dtype=torch.bfloat16), fake(device="cpu"))
    assert steps(text) == (1, 0, 0)
    assert "by_value" in text


def test_an_element_of_a_tensor_of_the_cpu_is_an_argument():
    with FakeTensorMode():
        text = cxxinductor.plan_text(lambda x, table: x * table[3], fake(8, 16), fake(8, device="cpu"))
    assert steps(text)[1:] == (0, 0) and "by_value" in text


@pytest.mark.skipif(torch.cuda.device_count() == 1, reason="fake tensors on cuda:1 ask the driver for it where there is one")
def test_two_gpus():
    def fn(x, w, v):
        x = F.gelu(x) @ w
        return torch.softmax(x.to("cuda:1") + v, -1)

    with FakeTensorMode():
        text = cxxinductor.plan_text(fn, fake(8, 16), fake(16, 16), fake(16, device="cuda:1"))
    assert text.startswith("plan @plan for cuda on cuda:0, cuda:1 (")
    assert steps(text)[1] == 1 and re.search(r"kernel @\S+ on cuda:1 ", text)


def test_writes_into_a_tensor_on_another_device():
    def fn(x, table):
        x.copy_(table * 2)
        return x + 1

    with FakeTensorMode():
        text = cxxinductor.plan_text(fn, fake(8), fake(8, device="cpu"))
    assert steps(text)[:2] == (1, 1)


def peaks(text):
    """Of a plan, by device: bytes held at most and eager's, in the order of its devices."""
    held = [int(found) for found in re.findall(r"; holds at most (\d+) bytes", text)]
    eager = {device or "main": int(found) for device, found in re.findall(r"  eager_peak(?: on (\S+))? (\d+)\n", text)}
    return list(zip(held, [eager.pop("main"), *eager.values()], strict=True))


def uploads_added_up(x, table):
    for i in range(6):
        table = torch.sin(table + i)
        x = torch.tanh(x + table.to(x.device))
    return x


def test_planned_peaks_of_both_devices_are_within_eagers():
    with FakeTensorMode():
        text = cxxinductor.plan_text(uploads_added_up, fake(1 << 20), fake(1 << 20, device="cpu"))
    assert steps(text)[1] == 6
    for held, eager in peaks(text):
        assert 0 < held <= eager, text


# ---- On a GPU --------------------------------------------------------------------------------------------------------


def random_inputs(sizes, device):
    return [torch.rand(*size[1:], device=device) > 0.3 if size[0] == "bool" else torch.randn(*size, device=device) for size in sizes]


def check(fn, *inputs, options=None, calls=2, tolerance=None):
    """Compiled and eager on clones: results, what inputs became, and no fallback."""
    compiled = torch.compile(fn, backend="cxxinductor", options=options)
    for _ in range(calls):
        ours, theirs = ([x.clone() if isinstance(x, torch.Tensor) else x for x in inputs] for _ in range(2))
        actual, expected = compiled(*ours), fn(*theirs)
        torch.testing.assert_close((actual, ours), (expected, theirs), **(tolerance or {}))
    counters = cxxinductor.counters()
    assert counters["graphs"] > 0 and counters["aten_fallback"] == counters["eager_fallback"] == 0, counters
    return actual


@pytest.mark.gpu
@pytest.mark.parametrize("name", FAMILIES)
def test_families(name):
    fn, sizes, _ = FAMILIES[name]
    check(fn, *random_inputs(sizes, "cuda"))


@pytest.mark.gpu
@pytest.mark.parametrize("name", FAMILIES)
def test_families_in_training(name):
    fn, sizes, _ = FAMILIES[name]
    inputs = random_inputs(sizes, "cuda")

    def gradients(fn):
        leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
        return torch.autograd.grad(fn(*leaves).float().square().sum(), [x for x in leaves if x.requires_grad], allow_unused=True)

    torch.testing.assert_close(gradients(torch.compile(fn, backend="cxxinductor")), gradients(fn), rtol=1e-4, atol=1e-4)
    counters = cxxinductor.counters()
    assert counters["aten_fallback"] == counters["eager_fallback"] == 0


@pytest.mark.gpu
@pytest.mark.parametrize("option", ["interp", "eager"])
def test_checks_see_all_devices(option):
    check(mpnet, *random_inputs(FAMILIES["mpnet"][1], "cuda"), options={"check": option})


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
def test_scalar_arithmetic_on_the_cpu(dtype):
    def fn(x, rate):
        t = torch.tensor(3.0) * 2
        return x * t, x + rate * t, x * rate.double(), x - rate.to(torch.int32)

    x = torch.randn(33, 7, device="cuda").mul(5).to(dtype)
    for rate in (0.3, -2.0):
        actual = check(fn, x, torch.tensor(rate))
        assert all(torch.equal(a, b) for a, b in zip(actual, fn(x, torch.tensor(rate))))


@pytest.mark.gpu
def test_tables_of_the_cpu_follow_their_inputs():
    """A kernel of the CPU runs at each call, before the copy that reads what it wrote."""

    def fn(x, table):
        return x + torch.log(table * 2 + 1).to(x.device), table.sum()

    compiled = torch.compile(fn, backend="cxxinductor")
    x = torch.randn(64, 1000, device="cuda")
    for n in range(50):
        table = torch.full((1000,), float(n))
        actual, expected = compiled(x, table), fn(x, table)
        assert torch.equal(actual[0], expected[0]) and torch.equal(actual[1], expected[1])
        assert actual[1].device.type == "cpu"


@pytest.mark.gpu
@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("pinned", [False, True])
def test_copies_to_the_gpu(pinned, non_blocking):
    def fn(x, table):
        return x * table.to(x.device, non_blocking=non_blocking) + 1

    compiled = torch.compile(fn, backend="cxxinductor")
    x, table = torch.randn(64, 4096, device="cuda"), torch.randn(4096, pin_memory=pinned)
    for _ in range(3):
        assert torch.equal(compiled(x, table), fn(x, table))
        torch.cuda.synchronize()
        table.add_(1)
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.gpu
def test_copies_to_the_cpu_wait_for_the_stream():
    """What the GPU has queued is done before the CPU reads it, on whichever stream the call runs."""

    def fn(x):
        for _ in range(8):
            x = torch.tanh(x @ x)
        return x.cpu() * 2 + 1

    x = torch.randn(2048, 2048, device="cuda") * 0.01
    expected = fn(x)
    compiled = torch.compile(fn, backend="cxxinductor")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    for _ in range(3):
        with torch.cuda.stream(stream):
            torch.testing.assert_close(compiled(x), expected)
        torch.testing.assert_close(compiled(x), expected)
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.gpu
def test_there_and_back():
    """Regions of both devices in turn, each reading the other's last result."""

    def fn(x):
        y = x.cpu()
        for i in range(4):
            y = torch.exp(-(y + i).abs()).cuda()
            y = torch.tanh(y * 2 + x).cpu()
        return y, y.cuda() + x

    check(fn, torch.randn(100, 33, device="cuda"))


@pytest.mark.gpu
def test_writes_into_inputs_of_both_devices():
    def fn(x, table, counter):
        x.copy_(table * 2)
        table.copy_(x.cumsum(0))
        counter.add_(1)
        return x * counter

    check(fn, torch.randn(128, device="cuda"), torch.randn(128), torch.tensor(1.0))


@pytest.mark.gpu
def test_sizes_that_change():
    def fn(x, table):
        positions = torch.arange(x.shape[1])
        return x + torch.log1p(positions.float()).to(x.device) + (table * 2).to(x.device)[: x.shape[1]]

    compiled = torch.compile(fn, backend="cxxinductor", dynamic=True)
    for n in (5, 17, 64):
        x, table = torch.randn(3, n, device="cuda"), torch.randn(64)
        torch.testing.assert_close(compiled(x, table), fn(x, table))
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.gpu
def test_without_a_host_compiler(tmp_path):
    """What the CPU computes are calls then."""
    import os
    import subprocess
    import sys

    program = (
        "import torch, cxxinductor\n"
        "def fn(x, t): return x * torch.log(t * 2 + 1).to(x.device) + torch.arange(4).float().log1p().to(x.device)\n"
        "x, t = torch.randn(8, 4, device='cuda'), torch.rand(4)\n"
        "torch.testing.assert_close(torch.compile(fn, backend='cxxinductor')(x, t), fn(x, t))\n"
        "c = cxxinductor.counters(); assert c['graphs'] == 1 and c['aten_fallback'] == 0 and c['extern'] > 2, c\n"
    )
    environment = {**os.environ, "PATH": str(tmp_path), "CXXINDUCTOR_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


@pytest.mark.gpu
def test_peaks_of_both_devices_are_within_eagers():
    with cxxinductor.reports.collect() as graphs:
        check(uploads_added_up, torch.randn(1 << 20, device="cuda"), torch.randn(1 << 20), calls=1)
    (graph,) = graphs
    memory = graph.details["memory"]["devices"]
    assert set(memory) == {"cuda:0", "cpu"}
    for device, figures in memory.items():
        assert figures["peak"] <= figures["eager_peak"] + 4096, (device, figures)
    assert "peak memory on cpu of " in str(graph) and "peak memory on cuda:0 of " in str(graph)


two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


@pytest.mark.gpu
@two_gpus
class TestTwoGpus:
    def test_the_second_alone(self):
        def fn(x, w):
            return torch.softmax(F.gelu(x @ w) * 2, -1).sum(-1, keepdim=True) + x

        assert torch.cuda.current_device() == 0
        actual = check(fn, torch.randn(64, 64, device="cuda:1"), torch.randn(64, 64, device="cuda:1"))
        assert actual.device == torch.device("cuda:1") and torch.cuda.current_device() == 0

    def test_one_after_the_other(self):
        def fn(x, w, v):
            x = torch.tanh(x @ w) * 2
            y = torch.softmax(x.to("cuda:1") + v, -1)
            return y, (y * 3).to("cuda:0") + x, y.cpu() + 1

        x, w, v = torch.randn(512, 512, device="cuda:0"), torch.randn(512, 512, device="cuda:0"), torch.randn(512, device="cuda:1")
        for _ in range(20):
            check(fn, x, w, v, calls=1, tolerance={"rtol": 1e-4, "atol": 1e-4})

    def test_streams_of_both(self):
        def fn(x, v):
            for _ in range(6):
                x = torch.tanh(x @ x)
            return (x.to("cuda:1") * 2 + v).to("cuda:0") + x

        x, v = torch.randn(2048, 2048, device="cuda:0") * 0.01, torch.randn(2048, device="cuda:1")
        expected = fn(x, v)
        torch.cuda.synchronize(0)
        torch.cuda.synchronize(1)
        compiled = torch.compile(fn, backend="cxxinductor")
        for _ in range(3):
            with torch.cuda.stream(torch.cuda.Stream("cuda:0")), torch.cuda.stream(torch.cuda.Stream("cuda:1")):
                actual = compiled(x, v)
                torch.cuda.current_stream("cuda:0").synchronize()
            torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
        assert cxxinductor.counters()["aten_fallback"] == 0

    def test_training_over_two(self):
        first = torch.nn.Linear(32, 64).to("cuda:0")
        second = torch.nn.Linear(64, 8).to("cuda:1")

        def fn(x):
            return second(torch.relu(first(x)).to("cuda:1")).square().mean()

        x = torch.randn(16, 32, device="cuda:0")
        parameters = [*first.parameters(), *second.parameters()]
        expected = torch.autograd.grad(fn(x), parameters)
        actual = torch.autograd.grad(torch.compile(fn, backend="cxxinductor")(x), parameters)
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
        counters = cxxinductor.counters()
        assert counters["aten_fallback"] == counters["eager_fallback"] == 0

    def test_dropout_draws_from_each_generator(self):
        def fn(x, y):
            return F.dropout(x, 0.5, True), F.dropout(y, 0.5, True)

        x, y = torch.ones(1000, device="cuda:0"), torch.ones(1000, device="cuda:1")
        torch.manual_seed(3)
        expected = fn(x, y)
        torch.manual_seed(3)
        actual = torch.compile(fn, backend="cxxinductor")(x, y)
        assert all(torch.equal(a, b) for a, b in zip(actual, expected))


def test_random_numbers_do_not_depend_on_the_gpus_size():
    """A plan for an architecture may run on GPUs with other numbers of multiprocessors: how many threads draw is found when it runs."""
    with FakeTensorMode():
        x = fake(1000, 1000)
    text = cxxinductor.plan_text(lambda x: F.dropout(x, training=True), x)
    (state,) = re.findall(r'(@\d+) = extern "cxxinductor::philox_state"', text)
    assert f"load {state}[2]" in text, text
