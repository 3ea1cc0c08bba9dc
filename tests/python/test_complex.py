"""Complex tensors are computed as pairs of real ones: kernels, gradients, bits, and what still runs as calls."""

import pytest
import torch
from torch.utils._pytree import tree_leaves

import cxxinductor


def check(function, *inputs):
    """Compiled and eager agree in values, dtypes and strides."""
    expected = function(*inputs)
    found = torch.compile(function, backend="cxxinductor", fullgraph=True)(*inputs)
    torch.testing.assert_close(found, expected, equal_nan=True, check_stride=True)


def complex_tensor(*sizes, dtype=torch.complex64, device="cpu", seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, dtype=dtype, generator=generator).to(device)


ARITHMETIC = {
    "add": lambda z, w: z + w,
    "sub_alpha": lambda z, w: torch.sub(z, w, alpha=2),
    "add_complex_alpha": lambda z, w: torch.add(z, w, alpha=1 - 2j),
    "mul": lambda z, w: z * w,
    "div": lambda z, w: z / w,
    "real_number": lambda z, w: (z * 2.5 - 1) / 3,
    "complex_number": lambda z, w: (2 - 1j) * z + (0.5 + 1j),
    "number_by_tensor": lambda z, w: (1 + 2j) / z,
    "real_tensor": lambda z, w: z * w.real + w.imag,
    "conjugate": lambda z, w: z * w.conj(),
    "square": lambda z, w: z**2,
    "exp": lambda z, w: torch.exp(z),
    "abs": lambda z, w: z.abs() + torch.angle(w),
    "sign": lambda z, w: torch.sgn(z),
    "polar": lambda z, w: torch.polar(z.abs(), w.angle()),
    "parts": lambda z, w: torch.complex(z.imag, w.real) + z.real,
    "compare": lambda z, w: (z == z.clone(), z != w),
    "where": lambda z, w: torch.where(z.real > 0, z, w),
    "masked_fill": lambda z, w: z.masked_fill(w.real > 0, 1 - 1j),
    "sum": lambda z, w: (z.sum(), (z * w).mean(-1), z.cumsum(0)),
    "moves": lambda z, w: torch.cat([z.t(), w.t()])[1:3].flip(0).reshape(-1),
    "double": lambda z, w: z.to(torch.complex128) * w,
    "views": lambda z, w: torch.view_as_complex(torch.view_as_real(z).flip(-1).contiguous()) * w,
}


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_arithmetic(name, dtype, device):
    z, w = (complex_tensor(5, 7, dtype=dtype, device=device, seed=s) for s in (1, 2))
    check(ARITHMETIC[name], z, w)
    counts = cxxinductor.counters()
    assert counts["aten_fallback"] == counts["eager_fallback"] == 0
    assert counts["kernels"] > 0


def test_comparing_a_complex_number_with_a_real_tensor(device):
    number, real = torch.tensor(1 + 0j, device=device), torch.tensor([1.0, 2.0, float("nan")], device=device)
    check(lambda z, x: (z == x, x == z, z != x, x != z, z == x.long()), number, real)
    check(lambda z, x: (z == x, x != z), number.expand(2, 3) + 1j, real)
    counts = cxxinductor.counters()
    assert counts["aten_fallback"] == counts["eager_fallback"] == 0


def test_exponentials_at_infinity(device):
    ends = [-float("inf"), float("inf"), float("nan"), 0.0, -0.0, 1.0, -200.0]
    z = torch.tensor([complex(re, im) for re in ends for im in ends], device=device)
    check(torch.exp, z)


CASTS = {"bool": torch.bool, "int": torch.int32, "float": torch.float32, "half": torch.float16, "double": torch.complex128}


@pytest.mark.parametrize("dtype", CASTS.values(), ids=CASTS.keys())
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_casts(dtype, device):
    nan = float("nan")
    z = torch.tensor([0j, 2j, 1 + 0j, -0.5j, complex(nan, 0), complex(0, nan), -0.0 - 0.0j], device=device)
    z = z if dtype in (torch.bool, torch.complex128) else z.nan_to_num()
    check(lambda t: (t.to(dtype), torch.where(t.bool(), t, 3)), z)
    counts = cxxinductor.counters()
    assert counts["aten_fallback"] == counts["eager_fallback"] == 0


REALS = [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", REALS, ids=lambda dtype: str(dtype).split(".")[1])
def test_arithmetic_with_real_types(dtype, device):
    z, real = complex_tensor(4, device=device), torch.tensor([1, 0, 1, 1], device=device).to(dtype)

    def arithmetic(z, real):
        pairs = [(z, real), (real, z), (real, 2j), (2j, real), (z[0], real), (z, real[0])]
        return [f(a, b) for a, b in pairs for f in (lambda a, b: a + b, lambda a, b: 1 * a - 1 * b, lambda a, b: a * b)] + [z / (real + 1), real / z, z == real]

    check(arithmetic, z, real)
    counts = cxxinductor.counters()
    assert counts["aten_fallback"] == counts["eager_fallback"] == 0


def test_arithmetic_is_one_kernel(device):
    z, w = complex_tensor(16, 16, device=device), complex_tensor(16, 16, device=device, seed=1)
    check(lambda a, b: (a * b + 1).abs().sum(-1), z, w)
    assert cxxinductor.counters()["kernels"] == 1


def rotary(x, frequencies):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * frequencies[:, None, :]).flatten(3).type_as(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rotary_embedding_of_complex_frequencies(dtype, device):
    x = torch.randn(2, 6, 4, 16, device=device).to(dtype)
    frequencies = torch.polar(torch.ones(6, 8), torch.randn(6, 8)).to(device)
    check(rotary, x, frequencies)
    counts = cxxinductor.counters()
    assert counts["aten_fallback"] == counts["eager_fallback"] == 0 and counts["kernels"] == 1


def test_gradients(device):
    def loss(z, w):
        return torch.view_as_real(z * w.conj() / (1 + z.abs())).square().sum() + (z.exp() * w).real.mean()

    z, w = (complex_tensor(4, 6, device=device, seed=s).requires_grad_() for s in (3, 4))
    expected = torch.autograd.grad(loss(z, w), (z, w))
    found = torch.autograd.grad(torch.compile(loss, backend="cxxinductor")(z, w), (z, w))
    torch.testing.assert_close(found, expected)
    counts = cxxinductor.counters()
    assert counts["aten_fallback"] == counts["eager_fallback"] == 0


def test_rotary_embedding_has_gradients(device):
    x = torch.randn(2, 6, 4, 16, device=device, requires_grad=True)
    frequencies = torch.polar(torch.ones(6, 8), torch.randn(6, 8)).to(device)
    weight = torch.randn(2, 6, 4, 16, device=device)
    (expected,) = torch.autograd.grad((rotary(x, frequencies) * weight).sum(), x)
    (found,) = torch.autograd.grad((torch.compile(rotary, backend="cxxinductor")(x, frequencies) * weight).sum(), x)
    torch.testing.assert_close(found, expected)
    assert cxxinductor.counters()["aten_fallback"] == 0


def test_bits_of_inputs_and_outputs(device):
    z = complex_tensor(3, 4, device=device)
    flagged = z.conj()
    for function in (lambda t: t * 2, lambda t: (t * 2).conj(), lambda t: t.conj().imag + 1):
        torch._dynamo.reset()
        expected, found = function(flagged), torch.compile(function, backend="cxxinductor")(flagged)
        torch.testing.assert_close(found, expected)
        assert (found.is_conj(), found.is_neg()) == (expected.is_conj(), expected.is_neg())
    assert cxxinductor.counters()["aten_fallback"] == 0


NEGATIVE = {
    "imag_of_input": lambda t: t.conj().imag,
    "imag_of_result": lambda t: (t + 1).conj().imag,
    "imag_of_call": lambda t: torch.fft.fft(t).conj().imag,
    "complex": lambda t: torch._neg_view(t),
    "complex_result": lambda t: torch._neg_view(t * 2),
    "both_bits": lambda t: torch._neg_view(t * 2).conj(),
    "undone": lambda t: torch._neg_view((t + 1).conj()).imag,
    "real": lambda t: torch._neg_view(t.real * 2),
    "view": lambda t: (t + 1).conj().imag[1:].t(),
    "alias_of_call": lambda t: (t + 1).conj().imag.diagonal(),
    "read_too": lambda t: (t + 1).conj().imag.square() - (t + 1).conj().imag,
}


@pytest.mark.parametrize("function", NEGATIVE.values(), ids=NEGATIVE.keys())
def test_results_with_the_negative_bit(function, device):
    z = complex_tensor(3, 4, device=device)
    expected, found = function(z), torch.compile(function, backend="cxxinductor", fullgraph=True)(z)
    torch.testing.assert_close(found, expected, check_stride=True)
    assert (found.is_conj(), found.is_neg()) == (expected.is_conj(), expected.is_neg())
    counts = cxxinductor.counters()
    assert counts["aten_fallback"] == counts["eager_fallback"] == 0


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_complex_of_halves_passes_through_calls(device):
    def fn(x):
        z = x * 2j
        return z, z.real + 1, (z * z).to(torch.complex64) * 1j, z.t(), x.sin()

    x = complex_tensor(3, 4, device=device).real.half()
    check(fn, x)
    counts = cxxinductor.counters()
    assert counts["aten_fallback"] == counts["eager_fallback"] == 0 and counts["kernels"] > 0


VIEWS = {
    "moves": lambda z: (lambda v: (v, v.t(), v[1:], v.view(-1)))(z * 2),
    "slice": lambda z: (z * 2)[1:, 2:],
    "parts": lambda z: (lambda v: (v.real, v, v.imag[1:], torch.view_as_real(v)))(z * 2),
    "bits": lambda z: (lambda v: (v.conj(), v, v.conj().t(), v.conj().imag, v.mH.mH))(z * 2),
    "bits_of_input": lambda z: (z.conj().t(), torch.fft.fft(z.conj()), z.real[1:]),
    "flagged_twice": lambda z: (lambda v: (torch.fft.fft(v), v, v.conj()))((z * 2).conj()),
    "expanded": lambda z: (z[0] * 2).expand(3, 4),
    "expanded_slice": lambda z: (z[0] * 2).expand(3, 4)[1:, 1:2],
    "expanded_argument": lambda z: torch.fft.fft((z[0] * 2).expand(3, 4)),
    "meshgrid": lambda z: torch.meshgrid(z[0, :3] + 1, z[:, 0] - 1, indexing="ij"),
    "diagonal": lambda z: ((-z).diagonal(1), z.diagonal().sin(), (-z).unfold(-1, 2, 1)),
    "swapped": lambda z: z.renorm(2, 0, 1.0).swapaxes(0, -1)[1:],
    "pieces": lambda z: (z + 1).split(2, 1),
    "of_call": lambda z: (lambda v: (v.t(), v, v[1:].real))(torch.fft.fft(z)),
    "of_parts": lambda z: (lambda v: (v, torch.view_as_complex(v).t()))(torch.view_as_real(z * 2) + 1),
    "negated": lambda z: (lambda v: (v, torch._neg_view(v)))(z.real * 2),
}


def offsets(tensors):
    """Where each lies in the memory of the first that it shares memory with."""
    bases = [next(other for other in tensors if other.untyped_storage().data_ptr() == t.untyped_storage().data_ptr()) for t in tensors]
    return [(next(i for i, t in enumerate(tensors) if t is base), t.storage_offset(), t.stride()) for t, base in zip(tensors, bases)]


@pytest.mark.parametrize("function", VIEWS.values(), ids=VIEWS.keys())
def test_views_share_memory(function, device):
    z = complex_tensor(3, 4, device=device)
    expected, found = (tree_leaves((z, f(z))) for f in (function, torch.compile(function, backend="cxxinductor", fullgraph=True)))
    torch.testing.assert_close(found, expected)
    assert offsets(found) == offsets(expected)
    assert [(t.is_conj(), t.is_neg()) for t in found] == [(t.is_conj(), t.is_neg()) for t in expected]
    assert cxxinductor.counters()["aten_fallback"] == 0


def test_views_of_written_inputs(device):
    def step(z):
        before = z.t() * 1
        v = z.t()
        z.mul_(2j)
        return v, before.t(), v.conj()

    inputs = complex_tensor(3, 4, device=device), complex_tensor(3, 4, device=device)
    expected, found = [inputs[0], *step(inputs[0])], [inputs[1], *torch.compile(step, backend="cxxinductor", fullgraph=True)(inputs[1])]
    torch.testing.assert_close(found, expected)
    assert offsets(found) == offsets(expected)


def test_strided_inputs_and_results(device):
    z = complex_tensor(6, 8, device=device).t()[::2]
    check(lambda t: (t * 2, t.conj_physical() + 1, (t * t).t()), z)
    assert cxxinductor.counters()["aten_fallback"] == 0


def test_input_written_in_place(device):
    def step(z, w):
        z.mul_(w)
        return z.abs()

    z, w = complex_tensor(4, 4, device=device), complex_tensor(4, 4, device=device, seed=1)
    expected_z, found_z = z.clone(), z.clone()
    expected, found = step(expected_z, w), torch.compile(step, backend="cxxinductor")(found_z, w)
    torch.testing.assert_close((found, found_z), (expected, expected_z))
    assert cxxinductor.counters()["aten_fallback"] == 0


def test_calls_get_interleaved_tensors(device):
    def filtered(x, response):
        spectrum = torch.fft.rfft(x)
        return torch.fft.irfft(spectrum * response, n=x.shape[-1]), (spectrum @ spectrum.mT).abs()

    x, response = torch.randn(4, 32, device=device), complex_tensor(17, device=device)
    check(filtered, x, response)
    counts = cxxinductor.counters()
    assert counts["aten_fallback"] == 0 and counts["kernels"] > 0 and counts["extern"] > 0


def test_changing_sizes(device):
    function = torch.compile(lambda z: (z * z.conj()).real.sum(-1), backend="cxxinductor", dynamic=True)
    for size in (3, 5, 9):
        z = complex_tensor(size, 4, device=device)
        torch.testing.assert_close(function(z), (z * z.conj()).real.sum(-1))
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.parametrize("z", [complex(float("inf"), 0), complex(0, float("-inf")), complex(float("nan"), 1), 0j, 1e30 + 1e30j])
def test_edge_values(z, device):
    tensor = torch.tensor([z, 1 + 1j], device=device)
    check(lambda t: (t * 2.0, t.abs(), t + 1, 1.0 / (t + 3), torch.isnan(t), torch.isinf(t)), tensor)


def test_nan_to_num(device):
    nan, inf = float("nan"), float("inf")
    z = torch.tensor([[complex(nan, 1), complex(-inf, nan)], [complex(2, inf), 1 - 1j]], device=device)
    check(lambda t: (t.nan_to_num(), t.t().nan_to_num(1.0, 2.0, 3.0), t.conj().nan_to_num(posinf=5.0)), z)
    assert cxxinductor.counters()["aten_fallback"] == 0


def test_equal_results_are_tensors_of_their_own(device):
    x, y = (torch.randn(8, dtype=torch.complex64, device=device) for _ in range(2))
    a, b, c = torch.compile(lambda x, y: (x * y, x * y, torch.complex(x.real, x.imag)), backend="cxxinductor")(x, y)
    assert len({t.untyped_storage().data_ptr() for t in (x, a, b, c)}) == 4
    a.zero_()
    torch.testing.assert_close(b, x * y)


@pytest.mark.parametrize("fn", [lambda z: (z * 2).conj(), lambda z: z.tril().conj(), lambda z: z.roll(1, 0).conj()], ids=["mul", "tril", "roll"])
def test_gradients_of_conjugate_views(fn, device):
    z = torch.randn(4, 4, dtype=torch.complex64, device=device)

    def gradient(fn):
        leaf = z.clone().requires_grad_()
        fn(leaf).abs().sum().backward()
        return leaf.grad

    torch.testing.assert_close(gradient(torch.compile(fn, backend="cxxinductor")), gradient(fn))


@pytest.mark.parametrize("name", ["index_put", "index_add", "scatter"])
def test_scatters_of_real_values_raise(name, device):
    x, i, s = torch.zeros(4, 3, dtype=torch.complex64, device=device), torch.tensor([1, 2], device=device), torch.ones(2, 3, device=device)
    fn = {
        "index_put": lambda x, i, s: x.index_put((i,), s),
        "index_add": lambda x, i, s: x.index_add(0, i, s),
        "scatter": lambda x, i, s: x.scatter(0, i[:, None].expand(2, 3), s),
    }[name]
    for run in (fn, torch.compile(fn, backend="cxxinductor")):
        with pytest.raises(RuntimeError):
            run(x, i, s)
