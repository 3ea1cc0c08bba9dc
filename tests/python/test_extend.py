"""Ops and reductions that users register."""


import pytest
import torch
from children import run_python

import cxxinductor
from cxxinductor import UserError

LIBRARY = torch.library.Library("extend_tests", "DEF")
_REGISTERED = set()


def op(name: str, signature: str, implementation):
    """The overload of extend_tests::name, defined once in a process."""
    if name not in _REGISTERED:
        _REGISTERED.add(name)
        LIBRARY.define(f"{name}{signature}")
        LIBRARY.impl(name, implementation, "CompositeExplicitAutograd")
        torch.library.register_fake(f"extend_tests::{name}", implementation, lib=LIBRARY)
    return getattr(torch.ops.extend_tests, name).default


def compiled(fn, **options):
    torch._dynamo.reset()
    return torch.compile(fn, backend="cxxinductor", options=options or None)


def kernels_and_calls(fn, *inputs, **options):
    cxxinductor.reset_counters()
    result = compiled(fn, **options)(*inputs)
    counters = cxxinductor.counters()
    return result, counters["kernels"], counters["extern"] + counters["aten_fallback"]


SWISH = dict(
    cuda="swish({0}, {1})",
    cuda_source="template <class T> __device__ T swish(T x, T beta) { return x / (T(1) + exp(-beta * x)); }",
    cpu="swish({0}, {1})",
    cpu_source="template <class T> inline T swish(T x, T beta) { return x / (T(1) + T(__builtin_exp(-beta * x))); }",
    definition="result = mul(x, sigmoid(mul(beta, x)))",
    transcendental=True,
)


def swish():
    overload = op("swish", "(Tensor x, float beta) -> Tensor", lambda x, beta: x * torch.sigmoid(beta * x))
    cxxinductor.register_op(overload, **SWISH)
    return overload


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_an_op_is_fused_with_what_is_around_it(device, dtype):
    swish_op = swish()

    def fn(x, y):
        return (swish_op(x + y, 1.5) * y).sum(-1)

    x, y = torch.randn(8, 100, device=device, dtype=dtype), torch.randn(8, 100, device=device, dtype=dtype)
    result, kernels, calls = kernels_and_calls(fn, x, y)
    assert (kernels, calls) == (1, 0)
    torch.testing.assert_close(result, fn(x, y))


def test_float_does_not_stand_for_double(device):
    overload = op("halved", "(Tensor x) -> Tensor", lambda x: x / 2)
    cxxinductor.register_op(
        overload, cuda="halved({0})", cuda_source="__device__ float halved(float x) { return x / 2; }",
        cpu="halved({0})", cpu_source="inline float halved(float x) { return x / 2; }",
    )  # fmt: skip
    x = torch.randn(100, device=device)
    assert kernels_and_calls(lambda x: overload(x) + 1, x)[1:] == (1, 0)
    with pytest.warns(UserWarning, match="extend_tests.halved is of type float for float64: make its function a template"):
        assert torch.equal(compiled(lambda x: overload(x) + 1)(x.double()), x.double() / 2 + 1)


def test_an_op_of_two_tensors_is_broadcast_and_promoted(device):
    overload = op("squared_distance", "(Tensor a, Tensor b) -> Tensor", lambda a, b: (a - b) * (a - b))
    text = "(({0} - {1}) * ({0} - {1}))"
    cxxinductor.register_op(overload, cuda=text, cpu=text, types="numeric")
    for a, b in ((torch.randn(5, 1), torch.randn(7)), (torch.arange(6).reshape(2, 3), torch.arange(3)), (torch.randn(4), torch.tensor(2))):
        a, b = a.to(device), b.to(device)
        result, kernels, calls = kernels_and_calls(lambda a, b: overload(a, b), a, b)
        assert (kernels, calls) == (1, 0)
        torch.testing.assert_close(result, overload(a, b))


def test_sizes_may_be_symbols(device):
    swish_op = swish()
    fn = compiled(lambda x: swish_op(x, 0.5) + 1)
    for n in (3, 8, 17):
        x = torch.randn(n, 5, device=device)
        torch.testing.assert_close(fn(x), swish_op(x, 0.5) + 1)


OF_OTHER_SIZES = {
    "outer": ("(Tensor a, Tensor b) -> Tensor", lambda a, b: a[:, None] * b, "({0} * {1})"),
    "joined": ("(Tensor a, Tensor b) -> Tensor", lambda a, b: torch.cat([a, b]), "({0} + {1})"),
}


@pytest.mark.parametrize("name", OF_OTHER_SIZES)
def test_operands_that_do_not_broadcast_run_as_calls(device, name):
    signature, implementation, text = OF_OTHER_SIZES[name]
    overload = op(name, signature, implementation)
    cxxinductor.register_op(overload, cuda=text, cpu=text)
    a, b = torch.randn(3, device=device), torch.randn(4, device=device)
    result, kernels, calls = kernels_and_calls(lambda a, b: overload(a, b) * 2, a, b)
    assert (kernels, calls) == (1, 1)
    assert torch.equal(result, overload(a, b) * 2)


@pytest.mark.parametrize("dynamic", [False, True])
def test_results_of_other_sizes_run_as_calls(device, dynamic):
    overload = op("one_more", "(Tensor x) -> Tensor", lambda x: torch.cat([x, x[:1]]))
    cxxinductor.register_op(overload, cuda="({0})", cpu="({0})")
    x = torch.randn(6, device=device)
    if dynamic:
        torch._dynamo.mark_dynamic(x, 0)
    result, kernels, calls = kernels_and_calls(lambda x: overload(x) * 2, x)
    assert (kernels, calls) == (1, 1)
    assert torch.equal(result, overload(x) * 2)


def test_check_compares_with_the_definition(device):
    swish_op = swish()
    x = torch.randn(64, device=device)
    for check in ("interp", "eager"):
        torch.testing.assert_close(compiled(lambda x: swish_op(x, 2.0) * 2, check=check)(x), swish_op(x, 2.0) * 2)


def test_check_finds_text_that_is_not_the_op(device):
    overload = op("wrong", "(Tensor x) -> Tensor", lambda x: x + 1)
    cxxinductor.register_op(overload, cuda="({0} + {T}(2))", cpu="({0} + {T}(2))", definition="result = add(x, 1)")
    with pytest.raises(cxxinductor.KernelMismatch):
        compiled(lambda x: overload(x), check="interp")(torch.randn(64, device=device))


def test_a_device_without_an_expression_calls_the_op(device):
    overload = op(f"elsewhere_{device}", "(Tensor x) -> Tensor", lambda x: x * 3)
    cxxinductor.register_op(overload, **{"cpu" if device == "cuda" else "cuda": "({0} * {T}(3))"})
    x = torch.randn(10, device=device)
    result, _, calls = kernels_and_calls(lambda x: overload(x) + 1, x)
    assert calls == 1
    torch.testing.assert_close(result, x * 3 + 1)


def test_a_result_of_another_dtype_calls_the_op(device):
    overload = op("is_large", "(Tensor x) -> Tensor", lambda x: x > 1)
    cxxinductor.register_op(overload, cuda="({0} > {T}(1))", cpu="({0} > {T}(1))")
    x = torch.randn(10, device=device)
    result, _, calls = kernels_and_calls(lambda x: overload(x).logical_not(), x)
    assert calls == 1
    torch.testing.assert_close(result, x <= 1)


def spread():
    def implementation(x, dim=(), keepdim=False):
        dims = list(dim) or list(range(x.dim()))
        return x.amax(dims, keepdim) - x.amin(dims, keepdim)

    overload = op("spread", "(Tensor x, int[] dim=[], bool keepdim=False) -> Tensor", implementation)
    cxxinductor.register_reduction(
        overload,
        state="low:T high:T",
        results="spread:T",
        start="low = highest, high = lowest",
        lift="low = x, high = x",
        merge="low = minimum(a.low, b.low), high = maximum(a.high, b.high)",
        finish="spread = sub(high, low)",
        order_matters=False,
    )
    return overload


@pytest.mark.parametrize("shape, dims", [((8, 100), [1]), ((100, 9), [0]), ((4, 5, 6), [0, 2]), ((7, 11), []), ((3, 4000), [-1])])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
def test_a_reduction_is_fused(device, shape, dims, dtype):
    spread_op = spread()
    x = (torch.randn(shape, device=device) * 50).to(dtype)
    for keepdim in (False, True):
        result, _, calls = kernels_and_calls(lambda x: spread_op(x * 2, dims, keepdim) + 1, x)
        assert calls == 0
        torch.testing.assert_close(result, spread_op(x * 2, dims, keepdim) + 1)


def test_a_reduction_of_several_results(device):
    def implementation(x, dim):
        return x.mean(dim), x.var(dim, correction=0) * x.size(dim[0])

    overload = op("moments", "(Tensor x, int[] dim) -> (Tensor, Tensor)", implementation)
    cxxinductor.register_reduction(
        overload,
        state="n:T mean:T m2:T",
        results="mean:T m2:T",
        start="n = 0, mean = 0, m2 = 0",
        lift="n = 1, mean = x, m2 = 0",
        merge="n = add(a.n, b.n), delta = sub(b.mean, a.mean), share = where(eq(n, 0), 0, div(b.n, n)),"
        "mean = add(a.mean, mul(delta, share)), m2 = add(add(a.m2, b.m2), mul(mul(mul(delta, delta), a.n), share))",
    )
    x = torch.randn(16, 300, device=device)
    (mean, m2), kernels, calls = kernels_and_calls(lambda x: overload(x + 1, [1]), x)
    assert (kernels, calls) == (1, 0)
    torch.testing.assert_close(mean, (x + 1).mean(1))
    torch.testing.assert_close(m2, (x + 1).var(1, correction=0) * 300, rtol=1e-4, atol=1e-4)


def test_text_that_changed_compiles_anew(tmp_path):
    """In two processes with one cache: the second registers another text."""
    program = """
import sys, torch, cxxinductor
lib = torch.library.Library("changing", "DEF")
lib.define("scaled(Tensor x) -> Tensor")
lib.impl("scaled", lambda x: x * float(sys.argv[1]), "CompositeExplicitAutograd")
torch.library.register_fake("changing::scaled", lambda x: torch.empty_like(x), lib=lib)
cxxinductor.register_op(torch.ops.changing.scaled.default, cpu="({0} * scale({0}))", cpu_source=f"template <class T> inline T scale(T) {{ return T({sys.argv[1]}); }}")
x = torch.arange(10.0)
result = torch.compile(lambda x: torch.ops.changing.scaled(x) + 1, backend="cxxinductor", options={"cache_dir": sys.argv[2]})(x)
torch.testing.assert_close(result, x * float(sys.argv[1]) + 1)
print(cxxinductor.counters()["extern"], cxxinductor.counters()["cache_writes"] > 0)
"""

    def run(factor: str) -> str:
        return run_python(program, factor, tmp_path, check=True).stdout.strip()

    assert run("2") == "0 True"
    assert run("2") == "0 False"
    assert run("3") == "0 True"


@pytest.mark.parametrize("name, texts", [("expression", {}), ("source", {"cuda_source": "no C++", "cpu_source": "no C++"})])
def test_text_that_does_not_compile_is_shown_as_the_users_and_calls_the_op(device, name, texts):
    overload = op(f"broken_{name}", "(Tensor x) -> Tensor", lambda x: x + 1)
    cxxinductor.register_op(overload, cuda="broken_function({0})", cpu="broken_function({0})", **texts)
    x = torch.randn(64, device=device)
    with pytest.warns(UserWarning) as warned:
        torch.testing.assert_close(compiled(lambda x: overload(x) * 2)(x), (x + 1) * 2)
    (message,) = (str(w.message) for w in warned if "cxxinductor" in str(w.message))
    assert f"a kernel that applies extend_tests.broken_{name}, registered by register_op, does not compile" in message
    assert "start the program again, or register none of them for it" in message and "bug of cxxinductor" not in message
    assert ("broken_function" if not texts else f"extend_tests.broken_{name}") in message


def test_arguments_by_name_and_defaults_are_fused(device):
    overload = op("ramp", "(Tensor x, float low=0.5, *, Scalar high=6) -> Tensor", lambda x, low=0.5, *, high=6: x.clamp(low, high))
    cxxinductor.register_op(
        overload, **{target: "({0} < {1} ? {T}({1}) : {0} > {2} ? {T}({2}) : {0})" for target in ("cuda", "cpu")}, definition="result = x"
    )
    x = torch.randn(100, device=device) * 10
    calls_of = [
        lambda x: overload(x),
        lambda x: overload(x, 1.0),
        lambda x: overload(x=x, low=-1.0),
        lambda x: overload(x, high=3),
        lambda x: overload(low=-2.0, high=2, x=x),
    ]
    for fn in calls_of:
        result, kernels, calls = kernels_and_calls(lambda x: fn(x + 1) * 2, x)
        assert (kernels, calls) == (1, 0)
        torch.testing.assert_close(result, fn(x + 1) * 2)


def test_a_reduction_takes_arguments_by_name_and_defaults(device):
    spread_op, x = spread(), torch.randn(8, 30, device=device)
    for fn in (lambda x: spread_op(x), lambda x: spread_op(x, keepdim=True, dim=[1]), lambda x: spread_op(x=x, dim=[0])):
        result, _, calls = kernels_and_calls(lambda x: fn(x * 2) + 1, x)
        assert calls == 0
        torch.testing.assert_close(result, fn(x * 2) + 1)


def test_what_is_not_valid_is_refused():
    with pytest.raises(UserError, match="expected an overload of an op"):
        cxxinductor.register_op("extend_tests::swish", cpu="{0}")
    with pytest.raises(UserError, match="aten::relu is an op of PyTorch"):
        cxxinductor.register_op(torch.ops.aten.relu.default, cpu="{0}")
    with pytest.raises(UserError, match="expected an op that returns a tensor"):
        cxxinductor.register_op(op("two", "(Tensor x) -> (Tensor, Tensor)", lambda x: (x, x)), cpu="{0}")
    with pytest.raises(UserError, match="expected arguments that are tensors and numbers"):
        cxxinductor.register_op(op("listed", "(Tensor[] x) -> Tensor", lambda x: x[0]), cpu="{0}")
    with pytest.raises(UserError, match="'floating', 'integral' or 'numeric'"):
        cxxinductor.register_op(op("typed", "(Tensor x) -> Tensor", lambda x: x.clone()), cpu="{0}", types="complex")
    with pytest.raises(UserError, match=r"expected arguments \(Tensor, int\[\] dim, bool keepdim\)"):
        cxxinductor.register_reduction(swish(), state="s:T", results="s:T", start="s = 0", lift="s = x", merge="s = add(a.s, b.s)")
    with pytest.raises(UserError, match="registered already"):
        cxxinductor.register_op(swish(), cpu="({0} + {1})")


RECORDED = """
import torch, cxxinductor
library = torch.library.Library("recorded", "DEF")
library.define("swish(Tensor x, float beta=1.5) -> Tensor")
library.impl("swish", lambda x, beta=1.5: x * torch.sigmoid(beta * x), "CompositeExplicitAutograd")
library.define("spread(Tensor x, int[] dim, bool keepdim=False) -> Tensor")
library.impl("spread", lambda x, dim, keepdim=False: x.amax(dim, keepdim) - x.amin(dim, keepdim), "CompositeExplicitAutograd")
cxxinductor.register_op(torch.ops.recorded.swish.default, cpu="({0} / (1 + __builtin_expf(-{1} * {0})))",
                        cuda="({0} / (1 + expf(-{1} * {0})))", standard_result=STANDARD)
cxxinductor.register_reduction(torch.ops.recorded.spread.default, state="low:T high:T", results="spread:T", start="low = highest, high = lowest",
                               lift="low = x, high = x", merge="low = minimum(a.low, b.low), high = maximum(a.high, b.high)",
                               finish="spread = sub(high, low)", standard_result=STANDARD)
cxxinductor.register_device(backing="BACKING", options={"wait": True})
fn = lambda x: torch.ops.recorded.spread(torch.ops.recorded.swish(x + 1) * 2, [1])
x = torch.randn(8, 50)
cxxinductor.reset_counters()
torch.testing.assert_close(fn(x.to("cxxi")).cpu(), fn(x))
counters = cxxinductor.counters()
print(counters["kernels"], counters["extern"] + counters["aten_fallback"], cxxinductor.device_counters()["runs"])
"""


@pytest.mark.parametrize("standard", [True, False])
def test_the_recorded_device_fuses_ops_with_a_standard_result(device, standard):
    program = RECORDED.replace("STANDARD", str(standard)).replace("BACKING", device)
    out = run_python(program, check=True).stdout.split()
    assert (out[:2] == ["1", "0"]) == standard, out
