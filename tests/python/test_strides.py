"""Strides are eager's, those of dimensions of size 1 too: calls choose memory formats by them."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import cxxinductor
from cxxinductor import eager_strides

SIZES = [(1, 1, 6, 5), (2, 1, 6, 5), (1, 3, 1, 1), (2, 3, 1, 5)]

FORMATS = {
    "channels_last": lambda sizes: torch.randn(sizes).to(memory_format=torch.channels_last),
    "transposed": lambda sizes: torch.randn(sizes[1], sizes[0], sizes[3], sizes[2]).permute(1, 0, 3, 2),
}

# What computes the image that the consumers see.
SOURCES = {
    "image": lambda x: x,
    "relu": F.relu,
    "number": lambda x: x + 1,
    "permuted": lambda x: F.relu((x.permute(0, 2, 3, 1) + 1).permute(0, 3, 1, 2)),
    "pool": lambda x: F.max_pool2d(x, 3, 1, 1),
}

CONSUMERS = {
    "elementwise": lambda x: (-x, x * 2, x + x, x > 0, x**2, F.gelu(x), F.leaky_relu(x), F.hardtanh(x), x.clamp(0, 1)),
    "operands": lambda x: (torch.where(x > 0, x, 1.0), x + torch.ones_like(x).contiguous(), torch.lerp(x, x * 2, 0.3), x.masked_fill(x > 0, 0.0)),
    "casts": lambda x: (x.bfloat16(), x.clone(), x.contiguous(), x.contiguous(memory_format=torch.channels_last), torch.zeros_like(x)),
    "cat": lambda x: (torch.cat([x, x], 1), torch.cat([x, -x], 0), torch.cat([x * 2, x], -1)),
    "pool": lambda x: (F.avg_pool2d(x, 3, 1, 1), F.max_pool2d(x, 3, 1, 1), F.adaptive_avg_pool2d(x, (2, 2)), F.adaptive_max_pool2d(x, (2, 2))),
    "convolution": lambda x: (
        F.conv2d(x, weight(x, 4, x.shape[1], 1, 1)),
        F.conv2d(x, weight(x, 1, x.shape[1], 3, 3), padding=1),
        F.conv2d(x, weight(x, x.shape[1], 1, 3, 3), padding=1, groups=x.shape[1]),
        F.conv_transpose2d(x, weight(x, x.shape[1], 4, 2, 2)),
    ),
    "after_convolution": lambda x: (lambda z: (torch.cat([z, -z], 1), z * 2, F.max_pool2d(z, 2, 1)))(F.conv2d(x, weight(x, 1, x.shape[1], 1, 1), padding=1)),
    "norm": lambda x: (F.layer_norm(x, x.shape[-1:]), F.batch_norm(x, torch.zeros(x.shape[1], device=x.device), torch.ones(x.shape[1], device=x.device))),
    "views": lambda x: (x.unsqueeze(-1), x.mT.unsqueeze(-1) * 2, x[:, 0], x[:, :1], x.transpose(1, 2)),
    "reductions": lambda x: (x.sum(1, keepdim=True), x.mean((-1, -2), keepdim=True), x.softmax(1), x.cumsum(1)),
}


def weight(x, *sizes):
    return torch.full(sizes, 0.5, device=x.device)


def check_strides(fn, *inputs):
    expected = fn(*inputs)
    found = torch.compile(fn, backend="cxxinductor", fullgraph=True)(*inputs)
    torch.testing.assert_close(found, expected)
    wrong = [(name, a.stride(), b.stride()) for name in expected for a, b in zip(found[name], expected[name]) if a.stride() != b.stride()]
    assert not wrong, f"strides, and eager's: {wrong}"
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "x".join(map(str, sizes)))
@pytest.mark.parametrize("memory", FORMATS)
def test_memory_formats_of_images_with_dimensions_of_one(memory, sizes, device):
    x = FORMATS[memory](sizes).to(device)

    def fn(x):
        results = {}
        for source, make in SOURCES.items():
            y = make(x)
            for consumer, use in CONSUMERS.items():
                results[f"{source}, {consumer}"] = use(y)
        return results

    check_strides(fn, x)


def test_convolutions_of_one_channel(device):
    x, w = torch.randn(1, 1, 6, 5, device=device).to(memory_format=torch.channels_last), torch.randn(4, 1, 1, 1, device=device)
    check_strides(lambda x, w: {"": [F.conv2d(F.relu((x.permute(0, 2, 3, 1) + 1).permute(0, 3, 1, 2)), w)]}, x, w)
    torch._dynamo.reset()
    x, w = torch.randn(2, 16, 6, 5, device=device).to(memory_format=torch.channels_last), torch.randn(1, 16, 1, 1, device=device)

    def joined(x, w):
        z = F.conv2d(F.silu(x), w, padding=1)
        return {"": [torch.cat([z, -z], 1)]}

    check_strides(joined, x, w)


def test_gradients_of_images_of_one_channel(device):
    def loss(x, w):
        z = F.conv2d(F.silu(x), w, padding=1)
        return torch.cat([z, -z], 1).square().sum()

    x, w = torch.randn(2, 1, 6, 5, device=device).to(memory_format=torch.channels_last), torch.randn(1, 1, 3, 3, device=device)
    inputs = [x.requires_grad_(), w.requires_grad_()]
    expected = torch.autograd.grad(loss(*inputs), inputs)
    found = torch.autograd.grad(torch.compile(loss, backend="cxxinductor")(*inputs), inputs)
    torch.testing.assert_close(found, expected)
    counters = cxxinductor.counters()
    assert counters["aten_fallback"] == counters["eager_fallback"] == 0


def test_pointwise_strides_are_those_of_tensor_iterator(device):
    """The rule itself, for each pointwise call that eager makes."""
    wrong, calls = [], set()

    class Compare(TorchDispatchMode):
        def __torch_dispatch__(self, target, types, args=(), kwargs=None):
            result = target(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and eager_strides.is_pointwise(target) and not target._schema.is_mutable:
                arguments = dict(zip((argument.name for argument in target._schema.arguments), args)) | (kwargs or {})
                strides = eager_strides.pointwise_strides(arguments, result.shape)
                calls.add(target)
                if strides is not None and strides != result.stride():
                    wrong.append((target, [x.stride() for x in arguments.values() if isinstance(x, torch.Tensor)], result.stride(), strides))
            return result

    with Compare():
        for sizes in SIZES:
            images = [make(sizes).to(device) for make in FORMATS.values()]
            for x in images:
                for consumer in CONSUMERS.values():
                    consumer(x)
                for y in (*images, torch.ones(sizes[-1], device=device), torch.ones(sizes[1], 1, 1, device=device), torch.ones((), device=device), 2):
                    for call in (torch.add, torch.mul, torch.sub, torch.div, torch.gt, torch.fmod, torch.pow):
                        call(x, y)
                    if isinstance(y, torch.Tensor):
                        torch.where(x > y, y, x), torch.maximum(x, y), torch.addcmul(y, x, x), torch.lerp(x, y, 0.5)
    assert len(calls) > 15 and not wrong, wrong


CHANNELS_LAST = {
    "reflect": lambda x: F.pad(x, (1, 2, 1, 1), mode="reflect"),
    "replicate": lambda x: F.pad(x, (1, 2, 1, 1), mode="replicate"),
    "shuffle": lambda x: F.channel_shuffle(x, 2),
    "unpool": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
}


@pytest.mark.parametrize("fn", CHANNELS_LAST.values(), ids=CHANNELS_LAST.keys())
def test_decomposed_ops_give_the_memory_format_of_images(fn, device):
    if device == "cuda" and fn is CHANNELS_LAST["shuffle"]:
        pytest.skip("eager's channel_shuffle on CUDA refuses images in channels-last memory")
    for image in (torch.randn(2, 4, 6, 8), torch.randn(1, 4, 6, 8), torch.randn(2, 4, 6, 8).permute(0, 1, 3, 2)):
        torch._dynamo.reset()
        images = [image.to(device), image.to(device).contiguous(memory_format=torch.channels_last)]
        check_strides(lambda *images: {"": [fn(x) for x in images]}, *images)


def test_strides_of_mixed_layouts(device):
    x, y = torch.randn(2, 6, 4, device=device).transpose(0, -1), torch.randn(4, 6, 1, device=device).abs() + 1
    empty, z = torch.randn(6, 0, device=device).t(), torch.randn(6, 4, dtype=torch.complex64, device=device).t()

    def fn(x, y, empty, z):
        other = x.transpose(0, 1).contiguous().transpose(0, 1)
        return {
            "operands": [x // y, x // other.abs(), torch.copysign(x, y), torch.div(y, x, rounding_mode="trunc"), torch.logaddexp(x[0], other[0].double())],
            "empty": [empty + 1, torch.complex(empty.contiguous(), empty), empty.sqrt()],
            "complex": [z.angle(), z.abs(), z + 1, z.t()[:, None].angle(), x.angle(), (x > 0).angle()],
        }

    check_strides(fn, x, y, empty, z)


def test_gradients_of_activations_of_views(device):
    """TensorIterator gets the operand of a threshold before its gradient."""
    x = torch.randn(4, 16, device=device)

    def fn(x):
        turned = x.view(16, 4).t()
        return turned.relu() * 2, F.threshold(turned, 0.25, 1), x.view(4, 2, 4, 2).transpose(1, 2).relu()

    def gradient(run):
        leaf = x.clone().requires_grad_()
        sum((y * y).sum() for y in run(leaf)).backward()
        return leaf.grad

    torch.testing.assert_close(gradient(torch.compile(fn, backend="cxxinductor")), gradient(fn))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_thresholds_of_narrow_types(dtype, device):
    """The CPU compares in floats, a GPU in the tensor's type."""
    x = torch.tensor([0.001, 0.1, 0.2, 0.3, 1 / 3, 0.7], device=device).to(dtype)

    def fn(x):
        thresholds = (0.001, 0.1, 0.3, 1 / 3, 0.7)
        return [F.threshold(x, t, 20.0) for t in thresholds] + [torch.ops.aten.threshold_backward(x, x, t) for t in thresholds]

    for found, expected in zip(torch.compile(fn, backend="cxxinductor")(x), fn(x)):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
