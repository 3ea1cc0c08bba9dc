"""What only a CUDA device shows: bits of pointwise kernels, streams, threads, errors of queued kernels."""

import gc
import random
import threading

import pytest
import torch
import torch.nn.functional as F

import cxxinductor

pytestmark = pytest.mark.gpu

UNARY = {
    "abs": torch.abs, "neg": torch.neg, "sign": torch.sign, "ceil": torch.ceil, "floor": torch.floor, "round": torch.round,
    "trunc": torch.trunc, "frac": torch.frac, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal,
    "square": torch.square, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log2": torch.log2,
    "log10": torch.log10, "log1p": torch.log1p, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin,
    "acos": torch.acos, "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "asinh": torch.asinh,
    "acosh": torch.acosh, "atanh": torch.atanh, "erf": torch.erf, "erfc": torch.erfc, "sigmoid": torch.sigmoid, "relu": F.relu,
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "elu": F.elu, "softplus": F.softplus,
    "mish": F.mish, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "hardtanh": F.hardtanh, "leaky_relu": F.leaky_relu,
    "logsigmoid": F.logsigmoid, "pow2": lambda x: x**2, "pow3": lambda x: x**3, "pow_half": lambda x: x**0.5,
    "pow_minus_1": lambda x: x**-1, "pow_1.7": lambda x: x**1.7, "mul_scalar": lambda x: x * 0.3, "div_scalar": lambda x: x / 3,
    "add_scalar": lambda x: x + 0.1, "rsub": lambda x: 1 - x, "clamp": lambda x: x.clamp(-0.5, 0.7),
}
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum, "minimum": torch.minimum,
    "fmod": torch.fmod, "remainder": torch.remainder, "atan2": torch.atan2, "hypot": torch.hypot, "copysign": torch.copysign,
    "pow": torch.pow, "add_alpha": lambda a, b: torch.add(a, b, alpha=0.3), "floor_divide": torch.floor_divide,
    "where": lambda a, b: torch.where(a < b, a, b), "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "addcmul": lambda a, b: torch.addcmul(a, a, b, value=0.7), "addcdiv": lambda a, b: torch.addcdiv(a, a, b),  # with a value, Dynamo itself takes it apart and rounds once more
   
    "xlogy": torch.xlogy, "logaddexp": torch.logaddexp,
}
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


def edge_values(dtype):
    info = torch.finfo(dtype)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, float("inf"), float("-inf"), float("nan"), info.max, -info.max, info.tiny,
               -info.tiny, info.smallest_normal / 2, 1e-3, -1e-3, 88.0, -88.0, 20.0, 100.5]
    generator = torch.Generator().manual_seed(5)
    values = torch.cat([torch.tensor(special, dtype=torch.float64), torch.randn(20_000, generator=generator, dtype=torch.float64),
                        torch.randn(20_000, generator=generator, dtype=torch.float64) * 30])
    values = values[torch.randperm(len(values), generator=generator)]
    return values.to(dtype).cuda()


def differing(actual, expected):
    """Elements whose bits differ; any NaN is as good as another."""
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[actual.element_size()]
    return (actual.view(integer) != expected.view(integer)) & ~(actual.isnan() & expected.isnan())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pointwise_rows_are_bit_equal_to_eager(dtype, device):
    a, b = edge_values(dtype), edge_values(dtype).roll(777)

    def rows(a, b):
        return [fn(a) for fn in UNARY.values()] + [fn(a, b) for fn in BINARY.values()]

    names = [*UNARY, *BINARY]
    wrong = []
    results = torch.compile(rows, backend="cxxinductor")(a, b)
    for name, actual, expected in zip(names, results, rows(a, b)):
        places = differing(actual, expected).nonzero().flatten()
        if len(places):
            i = places[0].item()
            wrong.append(f"{name}: {len(places)} of {a.numel()}, first at a={a[i].item()!r} b={b[i].item()!r}: {actual[i].item()!r}, "
                         f"eager {expected[i].item()!r}")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("seed", range(12))
def test_pointwise_chains_are_bit_equal_to_eager(seed, device):
    rng = random.Random(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    steps = [rng.choice([*UNARY.values(), *BINARY.values()]) for _ in range(8)]
    binary = set(BINARY.values())
    a, b = edge_values(dtype), edge_values(dtype).roll(777)

    def chain(a, b):
        for step in steps:
            a = step(a, b) if step in binary else step(a)
        return a

    assert not differing(torch.compile(chain, backend="cxxinductor")(a, b), chain(a, b)).any()


def test_runs_on_the_current_stream(device):
    compiled = torch.compile(lambda x: (x * 2).sum(-1) + 1, backend="cxxinductor")
    x = torch.ones(64, 512, device=device)
    compiled(x)
    side = torch.cuda.Stream()
    for _ in range(20):
        y = torch.zeros(64, 512, device=device)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(5_000_000)  # whoever does not wait for this stream reads zeros
            y.add_(1)
            result = compiled(y)
        side.synchronize()
        assert torch.equal(result, torch.full((64,), 1025.0, device=device))


def test_threads_with_streams_of_their_own(device):
    compiled = torch.compile(lambda x: torch.softmax(x, -1) @ x.t(), backend="cxxinductor")
    inputs = [torch.randn(128, 256, device=device) for _ in range(4)]
    expected = [torch.softmax(x, -1) @ x.t() for x in inputs]
    with torch.no_grad():
        compiled(inputs[0])  # torch compiles in one thread only
    torch.cuda.synchronize()
    errors = []

    def work(x, wanted):
        try:
            with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(100):
                    torch.testing.assert_close(compiled(x), wanted)
        except BaseException as error:  # noqa: BLE001 a thread must hand over whatever happened
            errors.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, expected)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_an_index_out_of_range_is_raised_and_the_device_lives(device):
    compiled = torch.compile(lambda table, i: table[i] * 2, backend="cxxinductor")
    table = torch.randn(10, 4, device=device)
    good, bad = torch.tensor([1, 9, -10], device=device), torch.tensor([1, 10, 0], device=device)
    compiled(table, good)
    with pytest.raises(torch.AcceleratorError, match="index 10 is out of bounds") as error:
        compiled(table, bad)
        torch.cuda.synchronize()
        compiled(table, good)  # kernels run behind: the error reaches the first call after it
    assert isinstance(error.value, cxxinductor.UserError) and isinstance(error.value, IndexError)
    assert "aten.index.Tensor" in str(error.value)
    assert "test_cuda.py:" in str(error.value)
    assert torch.equal(compiled(table, good), table[good] * 2)


def test_a_captured_call_is_replayed_after_a_reset(device):
    def fn(x, w):
        return torch.softmax(x * 2 + torch.tensor([1.0, 2.0], device=x.device).sum(), -1) @ w

    compiled = torch.compile(fn, backend="cxxinductor")
    x, w = torch.randn(64, 64, device=device), torch.randn(64, 64, device=device)
    for _ in range(3):
        compiled(x, w)
    cxxinductor.wait_for_compiles()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = compiled(x, w)
    del compiled
    torch._dynamo.reset()
    gc.collect()
    filler = [torch.full((64, 64), float("nan"), device=device) for _ in range(64)]  # takes what was freed
    x.copy_(torch.randn(64, 64, device=device))
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(y, fn(x, w))
    del filler


def test_prepared_weights_go_when_all_streams_have_read_them(device):
    linear = torch.nn.Linear(2048, 2048, device=device).half().eval()
    compiled = torch.compile(linear, backend="cxxinductor", options={"freezing": True})
    x, side = torch.randn(2048, 2048, device=device).half(), torch.cuda.Stream()
    with torch.no_grad():
        compiled(x)
        torch.cuda.synchronize()
        expected = linear(x)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(100_000_000)
            y = compiled(x)  # reads prepared weights when the sleep is over
        with torch.no_grad():
            linear.weight.mul_(1)  # a write: the next call prepares anew and drops the old ones
        compiled(x)
        fill = [torch.zeros(2048, 2048, device=device, dtype=torch.half) for _ in range(8)]
        torch.cuda.synchronize()
    torch.testing.assert_close(y, expected)
    del fill


def test_a_device_without_an_index_is_the_current_one(device):
    def fn(x):
        return x + torch.ones(4, device="cuda") + torch.arange(4, device=torch.device("cuda"))

    last = torch.cuda.device_count() - 1
    with torch.cuda.device(last):
        x = torch.randn(4, device="cuda")
        y = torch.compile(fn, backend="cxxinductor")(x)
    assert y.device == x.device == torch.device("cuda", last)
    torch.testing.assert_close(y, x + 1 + torch.arange(4, device=x.device))


class Routed(torch.nn.Module):
    """A decoder layer whose attention saves its random state, and whose tokens go to their two best experts."""

    def __init__(self, size=64, experts=8):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(size, 3 * size), torch.nn.Linear(size, size)
        self.router = torch.nn.Linear(size, experts)
        self.down, self.up = torch.nn.Embedding(experts, size), torch.nn.Embedding(experts, size)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        mask = torch.zeros(x.shape[0], 1, x.shape[1], x.shape[1], device=x.device, dtype=x.dtype)
        keep = mask.topk(8, -1).indices
        mask = mask.fill_(-1e4).scatter(-1, keep, 0.0)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).flatten(-2))
        scores, chosen = self.router(x).topk(2, -1)
        weights = torch.nn.functional.silu((self.down(chosen) @ x.unsqueeze(-1)).squeeze(-1)) * scores.softmax(-1)
        return x + (weights.unsqueeze(-2) @ self.up(chosen)).squeeze(-2)


@pytest.mark.parametrize("training", [False, True])
def test_check_eager_sees_results_where_calls_put_them(training, device):
    model = torch.nn.Sequential(Routed(), Routed()).to(device)
    compiled = torch.compile(model, backend="cxxinductor", options={"check": "eager"})
    x = torch.randn(2, 16, 64, device=device, requires_grad=training)
    with torch.set_grad_enabled(training):
        y = compiled(x)
        if training:
            y.sum().backward()
    torch.cuda.synchronize()


def test_large_tensors_take_64_bit_indices(device):
    if torch.cuda.get_device_properties(0).total_memory < 40 << 30:
        pytest.skip("needs 40 GB of device memory")
    x = torch.ones(2**31 + 4096, dtype=torch.int8, device=device)
    x[-1] = 5
    result = torch.compile(lambda x: x + 1, backend="cxxinductor")(x)
    assert result[-1].item() == 6 and result[2**31].item() == 2 and result[0].item() == 2


def test_memory_does_not_grow(device):
    compiled = torch.compile(lambda x: torch.softmax(x @ x.t(), -1).sum(), backend="cxxinductor")
    x = torch.randn(256, 256, device=device)
    for _ in range(10):
        compiled(x)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(1000):
        compiled(x)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before


def kernels_of(run):
    """Names of our kernels that a call launches."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    return [event.name for event in profile.events() if event.name.startswith("k") and event.device_type == torch.autograd.DeviceType.CUDA]


def test_kernels_for_the_sizes_at_hand_come_beside_running_calls():
    def softmax(x):
        return torch.softmax(x.float() * 2, -1).to(x.dtype)

    x = torch.randn(64, 1000, device="cuda", dtype=torch.bfloat16)
    with cxxinductor.reports.collect() as reports:
        compiled = torch.compile(softmax, backend="cxxinductor", dynamic=True)
        torch.testing.assert_close(compiled(x), softmax(x))
    (kernel,) = reports[-1].details["kernels"]
    special = dict(kernel["specializations"])
    assert any("8 | " in sizes for sizes in special.values())
    cxxinductor.wait_for_compiles()
    found = {}
    for columns in (1000, 1001, 8000, 40000, 40001, 30, 3):
        y = torch.randn(33, columns, device="cuda", dtype=torch.bfloat16)
        compiled(y)
        cxxinductor.wait_for_compiles()
        torch.testing.assert_close(compiled(y), softmax(y))
        (found[columns],) = set(kernels_of(lambda y=y: compiled(y)))
    assert found[40001] == kernel["name"] and len(set(found.values())) >= 6
    assert set(found.values()) <= {kernel["name"], *special}


def test_misaligned_inputs_are_read_from_copies_until_their_kernel_is_there():
    whole = torch.randn(4097, device="cuda")
    compiled = torch.compile(lambda x: x.sin() + 1, backend="cxxinductor", dynamic=False)
    compiled(whole[:4096].clone())
    for _ in range(3):
        assert torch.equal(compiled(whole[1:]), whole[1:].sin() + 1)
        cxxinductor.wait_for_compiles()


def test_modules_loaded_by_another_thread_leave_a_capture_good(tmp_path):
    from test_processes import compile_graph, options_of

    options = options_of({"CXXINDUCTOR_CACHE_DIR": str(tmp_path)})
    compile_graph(1, options, "cuda")
    capturing, stop, compiled = threading.Event(), threading.Event(), []

    def compile_others():
        capturing.wait()
        while not stop.is_set():
            compiled.append(compile_graph(len(compiled) + 2, options, "cuda"))

    thread = threading.Thread(target=compile_others)
    thread.start()
    x = torch.randn(1000, device="cuda")
    (x * 2 + 1).sum()  # eager's modules are there before the capture
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, capture_error_mode="global"):
            y = x * 2
            capturing.set()
            while len(compiled) < 5 and thread.is_alive():
                y = y + 1
                stop.wait(0.01)
    finally:
        capturing.set()
        stop.set()
        thread.join()
    graph.replay()
    torch.cuda.synchronize()
    assert len(compiled) >= 5 and y[0].item() > x[0].item() * 2  # the graph ran
    [result] = compiled[-1]([torch.ones(len(compiled) + 1, device="cuda")])
    assert result.eq(1).all()
