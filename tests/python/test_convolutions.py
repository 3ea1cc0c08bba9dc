"""Convolutions on a GPU write their results into memory of the plan's; elements, strides and errors are those of eager."""

import contextlib
import copy
import re

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode

import cxxinductor
from test_text import compile_text, graph

gpu = pytest.mark.gpu
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
# Eager's strides and algorithms: no pass changes the layout of what a convolution reads.
AS_EAGER = {"skip_passes": "graph-channels-last"}


def copied():
    return cxxinductor.counters()["copied_results"]


# ---- Plans, without a GPU --------------------------------------------------------------------------------------------


def planned(fn, *shapes, device="cuda", dtype=torch.float32, memory_format=torch.contiguous_format):
    """Of each convolution of the plan: whether the plan provides its result's memory."""
    with FakeTensorMode():
        inputs = [torch.empty(shape, device=device, dtype=dtype) for shape in shapes]
        inputs = [x.to(memory_format=memory_format) if x.dim() == 4 else x for x in inputs]
        text = cxxinductor.plan_text(fn, *inputs, options=AS_EAGER)
    calls = re.findall(r'extern "aten::convolution"\(.*', text)
    assert ("extern_owned" in text) == any("planned_out" not in call for call in calls), text
    return ["planned_out" in call for call in calls]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_results_are_planned(dtype, layout):
    def net(x, w, d, b):
        x = torch.relu(F.conv2d(x, w, b, padding=1))
        return torch.relu(F.conv2d(x, d, stride=2, groups=16)), F.conv2d(x, w, dilation=2)

    assert planned(net, (2, 16, 32, 32), (16, 16, 3, 3), (16, 1, 3, 3), (16,), dtype=dtype, memory_format=LAYOUTS[layout]) == [True] * 3


def test_results_of_one_and_three_dimensions():
    assert planned(F.conv1d, (2, 16, 32), (16, 16, 3)) == [True]
    assert planned(F.conv3d, (2, 16, 8, 8, 8), (16, 16, 3, 3, 3)) == [True]


def test_what_no_backend_writes_in_place_is_memory_of_atens():
    assert planned(lambda x, w: F.conv3d(x, w, groups=16), (2, 16, 8, 8, 8), (16, 1, 3, 3, 3)) == [False]
    assert planned(F.conv_transpose2d, (2, 16, 8, 8), (16, 16, 3, 3)) == [False]
    assert planned(F.conv2d, (2, 16, 8, 8), (16, 16, 3, 3), device="cpu") == [False]


@pytest.mark.parametrize("channels, is_slice", [(1, False), (2, True), (3, False), (4, True)])
def test_slices_of_concatenations_begin_where_a_result_of_eager_might(channels, is_slice):
    # cuDNN chooses an algorithm by the alignment of its operands, up to 32 bytes: a channel has 16.
    with FakeTensorMode():
        inputs = [torch.empty(shape, device="cuda") for shape in ((1, channels, 2, 2), (1, 64, 2, 2), (64, 64, 1, 1))]
        text = cxxinductor.plan_text(lambda z, x, w: torch.cat([z.sin(), F.conv2d(x, w)], 1), *inputs)
    assert (re.search(r"buffer @\S+ f32\[1, 64, 2, 2\] .* slice of ", text) is not None) == is_slice


def test_a_call_without_such_a_backend_is_copied_into_the_plans_memory():
    text = graph(
        '%0: f32[2, 4, 5, 5] = extern "aten::convolution"($0, $1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) with (%x, %w) alias [-1] planned_out',
        "%1 = relu(%0)",
        inputs="%x: f32[2, 3, 7, 7], %w: f32[4, 3, 3, 3]",
        result="%0, %1",
    )
    x, w, before = torch.randn(2, 3, 7, 7), torch.randn(4, 3, 3, 3), copied()
    y, z = compile_text(text)([x, w])
    wanted = F.conv2d(x, w)
    assert torch.equal(y, wanted) and torch.equal(z, wanted.relu())
    assert copied() == before + 1


# ---- Against eager, bit by bit ---------------------------------------------------------------------------------------


def assert_bits_of_eager(fn, *inputs, names=str, calls=2):
    torch._dynamo.reset()
    run = torch.compile(fn, backend="cxxinductor", options=AS_EAGER)
    wanted = fn(*inputs)
    before, found = copied(), None
    for _ in range(calls):
        found = run(*inputs)
    for i, (f, w) in enumerate(zip(found, wanted, strict=True)):
        assert (f.stride(), f.dtype) == (w.stride(), w.dtype), names(i)
        torch.testing.assert_close(f, w, rtol=0, atol=0, equal_nan=True, msg=lambda text: f"{names(i)}: {text}")
    assert copied() == before


def around(convolve):
    """A convolution behind a kernel, before one, and as a result of the graph."""

    def fn(x, w, b=None):
        y = convolve(x * 2, w, b)
        return torch.relu(y) + 1, convolve(x, w, b)

    return fn


def made(shape, dtype=torch.float32, memory_format=torch.contiguous_format):
    x = torch.randn(shape, device="cuda").to(dtype)
    return x.to(memory_format=memory_format) if x.dim() == 4 else x


# Sizes of input and weight, keywords.
CASES = {
    "plain": ((4, 16, 28, 28), (32, 16, 3, 3), {"padding": 1}),
    "pointwise": ((4, 64, 14, 14), (128, 64, 1, 1), {}),
    "strided": ((4, 3, 64, 64), (32, 3, 7, 7), {"stride": 2, "padding": 3}),
    "dilated": ((4, 16, 28, 28), (16, 16, 3, 3), {"dilation": 2}),
    "groups": ((4, 16, 28, 28), (32, 4, 3, 3), {"groups": 4}),
    "depthwise": ((4, 32, 28, 28), (32, 1, 3, 3), {"groups": 32, "padding": 1}),
    "depthwise_strided": ((4, 32, 28, 28), (64, 1, 5, 5), {"groups": 32, "stride": 2}),
    "depthwise_dilated": ((4, 32, 28, 28), (32, 1, 3, 3), {"groups": 32, "dilation": 2}),
    "one_channel": ((4, 1, 28, 28), (8, 1, 3, 3), {}),
    "to_one_channel": ((4, 8, 28, 28), (1, 8, 3, 3), {}),
    "to_one_pixel": ((4, 8, 3, 3), (16, 8, 3, 3), {}),
    "all_ones": ((1, 1, 3, 3), (1, 1, 3, 3), {}),
    "one_row": ((2, 8, 1, 40), (8, 8, 1, 3), {}),
    "one_image": ((1, 16, 28, 28), (32, 16, 3, 3), {}),
    "odd": ((3, 5, 17, 13), (7, 5, 3, 2), {"padding": (2, 1), "stride": (1, 2)}),
    "padding_same": ((2, 8, 17, 17), (8, 8, 3, 3), {"padding": "same"}),
}


@gpu
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@torch.no_grad()
def test_two_dimensions(dtype, layout):
    """All cases in one graph, with a bias and without."""

    def fn(inputs):
        found = []
        for (x, w, b), (_, _, keywords) in zip(inputs, CASES.values()):
            found += around(lambda x, w, b: F.conv2d(x, w, b, **keywords))(x, w)
            found += around(lambda x, w, b: F.conv2d(x, w, b, **keywords))(x, w, b)
        return found

    def names(number):
        return f"{list(CASES)[number // 4]}, {'no bias' if number % 4 < 2 else 'bias'}, {'before a kernel' if number % 2 == 0 else 'a result'}"

    inputs = [(made(x, dtype, LAYOUTS[layout]), made(w, dtype, LAYOUTS[layout]), made(w[:1], dtype)) for x, w, _ in CASES.values()]
    assert_bits_of_eager(fn, inputs, names=names)


@gpu
@pytest.mark.parametrize("layouts", [("contiguous", "channels_last"), ("channels_last", "contiguous")])
@torch.no_grad()
def test_input_and_weight_of_different_layouts(layouts):
    x, w = made((4, 16, 28, 28), torch.float16, LAYOUTS[layouts[0]]), made((32, 16, 3, 3), torch.float16, LAYOUTS[layouts[1]])
    assert_bits_of_eager(around(F.conv2d), x, w)


@gpu
@torch.no_grad()
def test_operands_with_gaps_and_turned_ones():
    x, w = made((4, 28, 28, 32)).permute(0, 3, 1, 2)[:, ::2], made((3, 3, 16, 32)).permute(3, 2, 0, 1)
    assert_bits_of_eager(around(F.conv2d), x, w)
    assert_bits_of_eager(around(F.conv1d), made((4, 40, 16)).transpose(1, 2), made((3, 16, 8)).permute(2, 1, 0))


@gpu
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@torch.no_grad()
def test_one_dimension(dtype, bias):
    b = [made((32,), dtype)] * bias
    assert_bits_of_eager(around(lambda x, w, b: F.conv1d(x, w, b, padding=2, stride=2, dilation=2)), made((4, 16, 100), dtype), made((32, 16, 3), dtype), *b)
    assert_bits_of_eager(around(lambda x, w, b: F.conv1d(x, w, b, groups=32)), made((4, 32, 100), dtype), made((32, 1, 3), dtype), *b)


@gpu
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last_3d])
@torch.no_grad()
def test_three_dimensions(layout):
    x, w = made((2, 8, 10, 10, 10)).to(memory_format=layout), made((16, 8, 3, 3, 3)).to(memory_format=layout)
    assert_bits_of_eager(around(F.conv3d), x, w, made((16,)))
    assert_bits_of_eager(around(lambda x, w, b: F.conv3d(x, w, b, groups=8)), x, made((8, 1, 3, 3, 3)), made((8,)))


@gpu
@torch.no_grad()
def test_transposed():
    assert_bits_of_eager(around(lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, output_padding=1)), made((2, 8, 10, 10)), made((8, 16, 3, 3)), made((16,)))
    assert_bits_of_eager(around(F.conv_transpose1d), made((2, 8, 10)), made((8, 16, 3)), made((16,)))


@gpu
@pytest.mark.parametrize("layout", LAYOUTS)
@torch.no_grad()
def test_empty_batches_and_batches_that_vary(layout):
    torch._dynamo.reset()
    w, d, b = made((16, 8, 3, 3), memory_format=LAYOUTS[layout]), made((16, 1, 3, 3), memory_format=LAYOUTS[layout]), made((16,))

    def fn(x):
        y = torch.relu(F.conv2d(x, w, b, padding=1))
        return y, F.conv2d(y, d, groups=16) + 1

    run = torch.compile(fn, backend="cxxinductor", options=AS_EAGER, dynamic=True)
    before = copied()
    for batch in (4, 7, 0, 1, 64, 0, 3):
        x = made((batch, 8, 20, 20), memory_format=LAYOUTS[layout])
        for f, wanted in zip(run(x), fn(x), strict=True):
            assert f.stride() == wanted.stride() or batch == 0
            torch.testing.assert_close(f, wanted, rtol=0, atol=0)
    assert copied() == before
    assert_bits_of_eager(fn, made((0, 8, 20, 20)))


@contextlib.contextmanager
def algorithms(deterministic):
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


SETTINGS = {
    "deterministic": lambda: torch.backends.cudnn.flags(enabled=True, deterministic=True),
    "benchmark": lambda: torch.backends.cudnn.flags(enabled=True, benchmark=True),
    "tf32": lambda: torch.backends.cudnn.flags(enabled=True, allow_tf32=True),
    "no_tf32": lambda: torch.backends.cudnn.flags(enabled=True, allow_tf32=False),
    "deterministic_algorithms": lambda: algorithms(True),
}


@gpu
@pytest.mark.parametrize("setting", SETTINGS)
@torch.no_grad()
def test_settings_are_those_of_each_call(setting):
    torch._dynamo.reset()
    fn = around(lambda x, w, b: F.conv2d(x, w, b, padding=1))
    inputs = made((8, 64, 28, 28)), made((64, 64, 3, 3)), made((64,))
    run = torch.compile(fn, backend="cxxinductor", options=AS_EAGER)
    run(*inputs)
    before = copied()
    with SETTINGS[setting]():
        for _ in range(2):
            for f, w in zip(run(*inputs), fn(*inputs), strict=True):
                torch.testing.assert_close(f, w, rtol=0, atol=0)
    for f, w in zip(run(*inputs), fn(*inputs), strict=True):
        torch.testing.assert_close(f, w, rtol=0, atol=0)
    assert copied() == before


@gpu
@pytest.mark.parametrize("options", [AS_EAGER, {**AS_EAGER, "cuda_graphs": "at_once"}], ids=["steps", "recorded"])
@torch.no_grad()
def test_cudnn_turned_off_after_the_compile(options):
    torch._dynamo.reset()
    fn = around(lambda x, w, b: F.conv2d(x, w, b, padding=1))
    inputs = made((2, 16, 28, 28)), made((16, 16, 3, 3)), made((16,))
    run = torch.compile(fn, backend="cxxinductor", options=options)
    run(*inputs)
    with torch.backends.cudnn.flags(enabled=False):
        wanted, before, found = fn(*inputs), copied(), run(*inputs)
        assert copied() == before + 2
    for f, w in zip(found, wanted, strict=True):
        torch.testing.assert_close(f, w, rtol=0, atol=0)
    for f, w in zip(run(*inputs), fn(*inputs), strict=True):
        torch.testing.assert_close(f, w, rtol=0, atol=0)
    assert copied() == before + 2


@gpu
@torch.no_grad()
def test_a_layout_that_the_backend_does_not_write():
    # Without cuDNN depthwise convolutions are channels-first: copied into the channels-last result that was planned.
    torch._dynamo.reset()
    fn = around(lambda x, w, b: F.conv2d(x, w, b, groups=32))
    x, w = made((4, 32, 28, 28), memory_format=torch.channels_last), made((32, 1, 3, 3), memory_format=torch.channels_last)
    run = torch.compile(fn, backend="cxxinductor", options=AS_EAGER)
    run(x, w)
    with torch.backends.cudnn.flags(enabled=False):
        wanted, before, found = fn(x, w), copied(), run(x, w)
        assert copied() == before + 2
    for f, w in zip(found, wanted, strict=True):
        torch.testing.assert_close(f, w, rtol=0, atol=0)


@gpu
@torch.no_grad()
def test_errors_are_those_of_eager():
    text = graph(
        '%0: f32[2, 4, 5, 5] = extern "aten::convolution"($0, $1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) with (%x, %w) alias [-1] planned_out',
        inputs="%x: f32[2, 3, 7, 7], %w: f16[4, 3, 3, 3]",
    ).replace("graph @f(", "graph @f on cuda:0 (")
    with pytest.raises(RuntimeError, match="should be the same"):
        compile_text(text)([made((2, 3, 7, 7)), made((4, 3, 3, 3), torch.float16)])


@gpu
@torch.no_grad()
def test_results_that_lie_in_a_concatenation():
    def fn(x, w, v):
        return (torch.cat([F.conv2d(x, w, padding=1), torch.relu(F.conv2d(x, v)), F.conv2d(x, v)], 1),)

    for channels in (8, 3):  # the second one begins where no library would
        x = made((1, 8, 21, 21))
        assert_bits_of_eager(fn, x, made((channels, 8, 3, 3)), made((8, 8, 1, 1)))


# ---- Training and recordings -----------------------------------------------------------------------------------------


class Net(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        conv, norm = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.layers = torch.nn.Sequential(
            conv(3, width, 3, padding=1), norm(width), torch.nn.SiLU(), conv(width, width, 3, padding=1, groups=width, bias=False), norm(width),
            torch.nn.SiLU(), conv(width, 2 * width, 1, bias=False), norm(2 * width), torch.nn.ReLU(),
            conv(2 * width, width, 3, stride=2, padding=1), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(width, 10),
        )

    def forward(self, x):
        return self.layers(x)


def train(options, memory_format):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Net().cuda().to(memory_format=memory_format).train()
    run = torch.compile(model, backend="cxxinductor", options=options)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        x = torch.randn(8, 3, 32, 32, device="cuda").to(memory_format=memory_format)
        loss = F.cross_entropy(run(x), torch.arange(8, device="cuda"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@gpu
@pytest.mark.parametrize("layout", LAYOUTS)
def test_training(layout):
    with torch.backends.cudnn.flags(enabled=True, deterministic=True):
        cxxinductor.reset_counters()
        plain = train({}, LAYOUTS[layout])
        recorded = train({"cuda_graphs": "on"}, LAYOUTS[layout])
        assert recorded == pytest.approx(plain, rel=1e-5)
        assert cxxinductor.counters()["graph_replays"] > 0 and copied() == 0


@gpu
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("settings", [{"kernel_size": 7, "padding": 3}, {"kernel_size": (3, 5), "padding": (0, 4)}, {"kernel_size": 3, "padding": 2, "dilation": 2},
                                      {"kernel_size": 5, "stride": 2, "padding": 2}], ids=str)
def test_gradients_of_depthwise_convolutions(settings, dtype, layout):
    """Against f64: none is further off than eager's, but for roundings. The input's gradient is a convolution, the bias's a sum of ours."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(32, 32, groups=32, **settings).to("cuda", dtype)
    x = torch.randn(4, 32, 24, 24, device="cuda", dtype=dtype).to(memory_format=LAYOUTS[layout])

    def gradients(module, x):
        x = x.detach().requires_grad_()
        out = module(torch.nn.functional.silu(x))
        weights = torch.linspace(-1, 1, out.numel(), device="cuda").view(out.shape).to(out.dtype)
        return torch.autograd.grad((out * weights).sum(), [x, *module.parameters()])

    exact = gradients(copy.deepcopy(layer).double(), x.double())
    eager = gradients(layer, x)
    ours = gradients(torch.compile(layer, backend="cxxinductor"), x)
    for theirs, found, right in zip(eager, ours, exact):
        assert found.stride() == theirs.stride()
        error, eagers_error = ((each.double() - right).abs().max() / right.abs().max() for each in (found, theirs))
        assert error <= 1.1 * eagers_error + 2 * torch.finfo(dtype).eps


@gpu
@torch.no_grad()
def test_large_results_are_recorded():
    """Results of ATen's own above 32 MiB are not: a recording holds them twice."""
    torch._dynamo.reset()
    w, v = made((64, 64, 3, 3), torch.bfloat16), made((64, 1, 3, 3), torch.bfloat16)

    def fn(x):
        for _ in range(3):
            x = torch.relu(F.conv2d(x, w, padding=1))
            x = torch.relu(F.conv2d(x, v, padding=1, groups=64))
        return x.sum((2, 3))

    # 50 MiB. With channels last cuDNN converts nothing: its conversions leave old addresses between their arguments.
    inputs = [made((16, 64, 160, 160), torch.bfloat16).to(memory_format=torch.channels_last) for _ in range(4)]
    plain = torch.compile(fn, backend="cxxinductor")
    wanted = [plain(x) for x in inputs]
    torch._dynamo.reset()
    run = torch.compile(fn, backend="cxxinductor", options={"cuda_graphs": "on"})
    cxxinductor.reset_counters()
    with cxxinductor.reports.collect() as reports:
        for x in inputs * 3:
            run(x)
    before = cxxinductor.counters()["graph_replays"]
    found = [run(x) for x in inputs]
    counters, text = cxxinductor.counters(), reports[0].compiled.describe("fn", 0.0)
    assert "CUDA graphs (on): no step is excluded" in text, text
    # How many stretches hold them follows from memory.
    replays = counters["graph_replays"] - before
    assert replays > 0 and replays % len(inputs) == 0, (counters, text)
    assert counters["graph_refusals"] == 0 and counters["copied_results"] == 0, (counters, text)
    for f, wanted_one in zip(found, wanted):
        torch.testing.assert_close(f, wanted_one, rtol=0, atol=0)
