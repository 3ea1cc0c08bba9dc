"""What a compiled graph must mean, beyond values: mutation, aliasing, shapes, gradients, random numbers, options."""

import math
import re
import threading

import pytest
import torch
from compare import assert_as_good_as_eager, assert_same_bits, to_double

import cxxinductor


def check(fn, *inputs, dynamic=None, options=None):
    """Runs fn compiled and eager on clones of inputs; compares results and what the inputs became."""
    ours, theirs = [[x.clone() if isinstance(x, torch.Tensor) else x for x in inputs] for _ in range(2)]
    actual = torch.compile(fn, backend="cxxinductor", dynamic=dynamic, options=options or {})(*ours)
    expected = fn(*theirs)
    reference = fn(*to_double([x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]))
    assert_as_good_as_eager(actual, expected, reference)
    for a, e in zip(ours, theirs):
        if isinstance(e, torch.Tensor):
            torch.testing.assert_close(a, e, rtol=1e-5, atol=1e-6, equal_nan=True)
    return actual


def test_entry_point_is_found_without_an_import():
    assert "cxxinductor" in torch._dynamo.list_backends()


@pytest.mark.step_by_step
def test_pointwise_chain_is_one_kernel(device):
    def fn(x, y):
        return torch.nn.functional.gelu(x + 1) * y.sigmoid() - x

    explanation = cxxinductor.explain(fn, torch.randn(8, 33, device=device), torch.randn(8, 33, device=device))
    assert {name: count for name, count in explanation.counters.items() if count} == {"graphs": 1, "kernels": 1}


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "rms_norm"])
def test_row_functions_are_one_kernel(name, device):
    f = torch.nn.functional
    functions = {
        "softmax": lambda x: f.softmax(x, -1),
        "log_softmax": lambda x: f.log_softmax(x, -1),
        "layer_norm": lambda x: f.layer_norm(x, (x.shape[-1],)),
        "rms_norm": lambda x: f.rms_norm(x, (x.shape[-1],)),
    }
    x = torch.randn(6, 4, 70, device=device)
    check(functions[name], x)
    assert cxxinductor.explain(functions[name], x).counters["kernels"] == 1


def test_cross_entropy(device):
    x, target = torch.randn(12, 50, device=device), torch.randint(0, 50, (12,), device=device)
    check(torch.nn.functional.cross_entropy, x, target)


def test_reductions(device):
    def fn(x):
        return x.sum(), x.mean(0), x.amax((1, 2)), x.argmax(1), x.var(2), x.std(), (x > 0).any(1), x.norm(dim=-1)

    check(fn, torch.randn(5, 7, 9, device=device))


def test_views_and_copies(device):
    def fn(x):
        a = x.permute(2, 0, 1).reshape(4, -1) * 2
        b = torch.cat([x[:, ::2], x[:, 1:2]], 1)
        return a, b, torch.nn.functional.pad(x, (1, 2), value=3.0), x.flip(0) + 1, x.unfold(0, 2, 1).sum(-1)

    check(fn, torch.randn(6, 5, 4, device=device))


def test_embedding_and_indexing(device):
    def fn(weight, index):
        return torch.nn.functional.embedding(index, weight), weight[index], weight.gather(0, index[:, :4]), weight[:, -1]

    check(fn, torch.randn(10, 4, device=device), torch.randint(0, 10, (3, 5), device=device))


def test_input_mutation(device):
    def fn(x, y):
        x.mul_(2).add_(y)
        y[1:3] += 1
        return x.sum()

    check(fn, torch.randn(5, 4, device=device), torch.randn(5, 4, device=device))


def test_mutation_raises_the_version_counter(device):
    x = torch.randn(4, device=device)
    before = x._version
    torch.compile(lambda t: t.add_(1), backend="cxxinductor")(x)
    assert x._version > before


def test_outputs_alias_as_in_eager(device):
    def fn(x):
        return x.t(), x[1], x + 1

    x = torch.randn(4, 4, device=device)
    t, row, fresh = torch.compile(fn, backend="cxxinductor")(x)
    assert t.data_ptr() == x.data_ptr() and row.data_ptr() == x[1].data_ptr()
    assert fresh.data_ptr() != x.data_ptr()
    assert t.stride() == x.t().stride()


def test_parts_of_one_result_alias_as_in_eager(device):
    def fn(x):
        return torch.logsumexp(x, -2, keepdim=True).unflatten(-1, (2, -1)).unbind(-2)

    a, b = torch.compile(fn, backend="cxxinductor")(torch.randn(2, 2, device=device))
    assert b.data_ptr() - a.data_ptr() == 4


def test_results_alias_where_sizes_are_symbols(device):
    def fn(x):
        y = x + 1
        return y, y.view(2, 2, 2, 8)

    first, second = torch.compile(fn, backend="cxxinductor", dynamic=True)(torch.randn(4, 16, device=device))
    first.fill_(7)
    assert (second == 7).all()


def test_views_of_what_a_graph_writes_have_eagers_strides(device):
    def fn(x):
        x[:, 0].div_(2)
        return x.unfold(0, 2, 2)

    x, y = (torch.arange(30.0, device=device).view(10, 3)[1:9, 1:2] for _ in range(2))
    found, expected = torch.compile(fn, backend="cxxinductor", dynamic=True)(x), fn(y)
    assert found.stride() == expected.stride() and torch.equal(found, expected) and torch.equal(x, y)


def test_views_of_nothing_in_memory_have_eagers_offset(device):
    x = torch.arange(12.0, device=device).view(2, 6)[1:1, 2:5]
    found = torch.compile(lambda x: x.chunk(2, 1)[-1], backend="cxxinductor", dynamic=True)(x)
    assert (found.shape, found.storage_offset()) == ((0, 1), 10)


def test_batch_norm_lays_its_result_out_as_eager_does(device):
    x = torch.randn(8, 31, device=device).t()
    check(lambda x: torch.nn.functional.batch_norm(x, None, None, training=True) + 1, x)


@pytest.mark.parametrize("name", ["hardswish", "hardsigmoid"])
def test_sixths_in_double_precision(name, device):
    x = torch.linspace(-5, 5, 1001, dtype=torch.float64, device=device)
    function = getattr(torch.nn.functional, name)
    torch.testing.assert_close(torch.compile(function, backend="cxxinductor")(x), function(x), rtol=1e-15, atol=1e-15)


def test_output_survives_the_next_call(device):
    fn = torch.compile(lambda x: torch.softmax(x, -1) @ x, backend="cxxinductor")
    x = torch.randn(8, 8, device=device)
    kept = fn(x)
    copy = kept.clone()
    for _ in range(3):
        fn(torch.randn(8, 8, device=device))
    assert torch.equal(kept, copy)


def test_changing_sizes(device):
    def fn(x, y):
        return torch.softmax(x + y, -1) * x.shape[0]

    compiled = torch.compile(fn, backend="cxxinductor", dynamic=True)
    for rows, columns in [(4, 9), (7, 30), (33, 2), (5, 64)]:
        x, y = torch.randn(rows, columns, device=device), torch.randn(columns, device=device)
        torch.testing.assert_close(compiled(x, y), fn(x, y))
    assert cxxinductor.counters()["graphs"] <= 2


def test_guards_of_dynamic_models_make_no_tensors(device, monkeypatch):
    """Dynamo's own guards make a tensor of each float of the model at every call."""
    made = []
    as_tensor = torch._as_tensor_fullprec
    monkeypatch.setattr(torch, "_as_tensor_fullprec", lambda x: made.append(x) or as_tensor(x))
    norm = torch.nn.LayerNorm(16).to(device)
    norm.scale = 0.5

    def fn(x, factor):
        return norm(x) * norm.scale + factor

    compiled = torch.compile(fn, backend="cxxinductor", dynamic=True)
    x = torch.randn(3, 16, device=device)
    compiled(x, 1.5)
    made.clear()
    torch.testing.assert_close(compiled(x[:2], 1.5), fn(x[:2], 1.5))
    assert 1e-05 not in made  # eps, which the graph does not ask for; the factors are inputs of the graph
    for factor in (2.5, float("nan"), -0.0):
        torch.testing.assert_close(compiled(x, factor), fn(x, factor), equal_nan=True)
    norm.eps, norm.scale = 0.1, 3.0
    torch.testing.assert_close(compiled(x, 1.5), fn(x, 1.5))


def test_empty_and_scalar_tensors(device):
    check(lambda x: (x * 2, x.sum(0)), torch.randn(0, 3, device=device))
    check(lambda x: x.exp() + 1, torch.randn((), device=device))


def test_strided_and_expanded_inputs(device):
    base = torch.randn(12, 10, device=device)
    fn = torch.compile(lambda a, b: a.sin() + b, backend="cxxinductor")
    for a, b in [(base[::2, 1:6], base[:6, 5:]), (base.t(), base.t()), (base[0].expand(12, 10), base)]:
        torch.testing.assert_close(fn(a, b), a.sin() + b)


def test_gradients(device):
    def fn(x, w, b):
        return torch.nn.functional.layer_norm(torch.nn.functional.gelu(x @ w + b), (6,)).exp().mean()

    def grads(f, dtype):
        torch.manual_seed(1)
        leaves = [torch.randn(s, dtype=torch.float64).to(device, dtype).requires_grad_() for s in [(5, 4), (4, 6), (6,)]]
        f(*leaves).backward()
        return [leaf.grad for leaf in leaves]

    assert_as_good_as_eager(
        grads(torch.compile(fn, backend="cxxinductor"), torch.float32), grads(fn, torch.float32), grads(fn, torch.float64),
        factor=5.0,  # six-element sums that nearly cancel: their order decides the last digits
    )


def test_dropout_uses_torchs_generator(device):
    fn = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5), backend="cxxinductor")
    x = torch.ones(1000, device=device)
    torch.manual_seed(3)
    first, second = fn(x), fn(x)
    torch.manual_seed(3)
    assert torch.equal(first, fn(x)) and not torch.equal(first, second)


def test_unknown_op_is_an_extern(device):
    explanation = cxxinductor.explain(lambda x: torch.sort(x * 2, 1)[0] + 1, torch.randn(4, 5, device=device))
    assert explanation.counters["extern"] == 1 and explanation.counters["kernels"] == 2
    check(lambda x: torch.sort(x * 2, 1)[0] + 1, torch.randn(4, 5, device=device))


BAD_OPTIONS = [
    ({"max_atotune": True}, "numerics"),
    ({"numerics": "wrong"}, "eager"),
    ({1: 2}, "expected names, found int 1"),
    ({"cache_dir": "a\0b"}, "expected text without NUL"),
    ({"cache_dir": "\udcff"}, "expected text without NUL and lone surrogates"),
    ({"a\udcff": 1}, "expected names, found str"),
    ([1], "expected a dict of names and values, found list"),
]


@pytest.mark.parametrize("options, message", BAD_OPTIONS)
def test_bad_options_say_what_is_known(options, message, device):
    with pytest.raises(Exception, match=message):
        torch.compile(lambda x: x + 1, backend="cxxinductor", options=options)(torch.ones(2, device=device))


def test_four_threads_call_at_once(device):
    fn = torch.compile(lambda x: torch.softmax(x * 3, -1) @ x.t(), backend="cxxinductor")
    inputs = [torch.randn(16, 16, device=device) for _ in range(4)]
    expected = [fn(x) for x in inputs]
    wrong = []

    def work(i):
        for _ in range(50):
            if not torch.equal(fn(inputs[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_thousand_calls_do_not_grow(device):
    import resource

    fn = torch.compile(lambda x: torch.softmax(x @ x, -1) + 1, backend="cxxinductor")
    x = torch.randn(64, 64, device=device)
    for _ in range(200):
        fn(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1000):
        fn(x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096, "KiB grown"


def test_short_scans_are_kernels_long_ones_calls(device):
    def scans(x, mask):
        return x.cumsum(1), x.cumprod(0), mask.cumsum(-1), x.to(torch.int32).cumsum(1, dtype=torch.int16)

    x, mask = torch.randn(4, 33, device=device), torch.rand(3, 2, 17, device=device) < 0.5
    explanation = cxxinductor.explain(scans, x, mask)
    assert not any(graph.details["externs"] for graph in explanation.graphs)
    for actual, expected in zip(torch.compile(scans, backend="cxxinductor")(x, mask), scans(x, mask)):
        assert actual.dtype == expected.dtype
        torch.testing.assert_close(actual, expected)
    long = torch.randn(4, 5000, device=device)
    assert cxxinductor.explain(lambda x: x.cumsum(1), long).counters["extern"] == 1


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_take(shape, device):
    x, index = torch.randn(4, 5, device=device), torch.randint(-20, 20, shape, device=device)
    check(torch.take, x, index)
    assert cxxinductor.counters()["eager_fallback"] == cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.parametrize("function", [torch.slice_scatter, torch.select_scatter, torch.diagonal_scatter], ids=lambda f: f.__name__)
def test_results_whose_strides_leave_gaps_as_those_of_the_input(function, device):
    x = torch.randn(12, 8, device=device)[::2].t()
    arguments = {torch.slice_scatter: (0, 1, 3), torch.select_scatter: (0, 1), torch.diagonal_scatter: (1,)}[function]
    source = torch.randn({torch.slice_scatter: (2, 6), torch.select_scatter: (6,), torch.diagonal_scatter: (5,)}[function], device=device)
    assert function(x, source, *arguments).stride() == (1, 16)
    actual = torch.compile(function, backend="cxxinductor")(x, source, *arguments)
    assert actual.stride() == (1, 16) and torch.equal(actual, function(x, source, *arguments))


def test_calls_whose_recorded_dtype_errs_for_results_of_no_elements(device):
    x = torch.zeros(0, 2, device=device)
    actual = torch.compile(lambda x: torch.unique_consecutive(x), backend="cxxinductor")(x)
    assert actual.shape == torch.unique_consecutive(x).shape and cxxinductor.counters()["eager_fallback"] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["elu", "selu", "celu", "logsigmoid", "prelu"])
def test_activations_train_without_calls(name, dtype, device):
    function = getattr(torch.nn.functional, name)
    values = torch.linspace(-9, 9, 63).to(device, dtype)
    values[:3] = torch.tensor([math.inf, -math.inf, 0.0])
    leaves = [values.requires_grad_(), *([torch.tensor([0.3], device=device, dtype=dtype, requires_grad=True)] if name == "prelu" else [])]
    tangent = torch.linspace(1, 2, 63).to(device, dtype)

    def gradients(function):
        return [torch.autograd.grad(function(*leaves), leaves, tangent)[0]]

    torch.testing.assert_close(gradients(torch.compile(function, backend="cxxinductor")), gradients(function), rtol=1e-6, atol=0, equal_nan=True)
    assert cxxinductor.counters()["extern"] == cxxinductor.counters()["aten_fallback"] == cxxinductor.counters()["eager_fallback"] == 0


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, -1, math.inf, -math.inf])
def test_norms_without_calls(order, device):
    x = torch.randn(5, 7, device=device)
    x[0, 0] = 0
    check(lambda x: torch.linalg.vector_norm(x, order, dim=1), x)
    for keepdim in (False, True):
        check(lambda x: torch.linalg.vector_norm(x, order, dim=1, keepdim=keepdim), x[:, :1])
    check(lambda x: torch.linalg.vector_norm(x, order), x.bfloat16())
    assert cxxinductor.counters()["extern"] == 0


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_loss_between_two_dtypes(reduction, device):
    """It has the input's dtype; torch's recording says the promoted one."""
    x, y = torch.randn(5, 7, device=device), torch.randn(5, 7, device=device)
    for args in ((x.half(), y), (x, y.double())):
        check(lambda x, y: torch.nn.functional.huber_loss(x, y, reduction=reduction), *args)


@pytest.mark.parametrize("decimals", [-1, 0, 2])
def test_rounding_to_decimals_without_calls(decimals, device):
    x = torch.tensor([0.005, -0.015, 2.675, 25.0, 35.0, math.nan, -math.inf], device=device)
    actual = torch.compile(torch.round, backend="cxxinductor")(x, decimals=decimals)
    torch.testing.assert_close(actual, torch.round(x, decimals=decimals), rtol=0, atol=0, equal_nan=True)
    assert cxxinductor.counters()["extern"] == 0


def test_lerp_by_weights_without_calls(device):
    check(torch.lerp, torch.randn(6, 5, device=device), torch.randn(6, 1, device=device), torch.rand(5, device=device))
    assert cxxinductor.counters()["extern"] == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
def test_signbit(dtype, device):
    x = torch.tensor([-0.0, 0.0, 1, -1, math.nan, -math.inf] * 8).to(device, dtype)
    for values in (x, x.reshape(2, -1).t()):
        check(torch.signbit, values)
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_of_a_tensor_without_dimensions(keepdim, device):
    def fn(x):
        spread = [f(x, dim, correction=0, keepdim=keepdim) for f in (torch.var, torch.std) for dim in (0, -1, None)]
        moments = torch.var_mean(x, 0, correction=0, keepdim=keepdim)
        return (*spread, *moments, torch.linalg.vector_norm(x, dim=0, keepdim=keepdim), x.sum(0, keepdim), x.amax(0, keepdim))

    check(fn, torch.tensor(2.5, device=device))
    assert cxxinductor.counters()["extern"] == cxxinductor.counters()["aten_fallback"] == 0


EXTREMES = {
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "max.dim": lambda x: x.max(0),
    "min.dim": lambda x: x.min(0)[0] + 1,
    "amax": lambda x: x.amax(0),
    "argmax": lambda x: x.argmax(0),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", EXTREMES.values(), ids=EXTREMES.keys())
def test_extremes_of_no_elements_raise_as_in_eager(function, dynamic, device):
    empty = torch.ones(0, 3, device=device)
    compiled = torch.compile(function, backend="cxxinductor", dynamic=dynamic)
    torch.testing.assert_close(compiled(torch.ones(4, 3, device=device)), function(torch.ones(4, 3, device=device)))
    with pytest.raises(Exception, match="non-zero size|numel\\(\\) == 0|zero-size dimension"):
        compiled(empty)


ZEROS_AND_NANS = {
    "one_bound": lambda x, y: (x.clamp(max=math.nan), x.clamp(min=math.nan), x.clamp_max(math.nan), x.clamp(math.nan, 1)),
    "bounds": lambda x, y: (x.clamp(0, 1), x.clamp(-1, 0), x.clamp(min=-0.0), x.clamp(max=-0.0), x.clamp_min(0), x.clamp_max(0)),
    "activations": lambda x, y: (torch.nn.functional.relu6(x), torch.nn.functional.hardtanh(x, 0, 1), x.relu()),
    # C++ leaves the sign to compilers: eager's kernel of bf16 takes the other zero.
    "fmin": lambda x, y: (torch.fmin(x, y), torch.fmax(x, y)) if x.dtype != torch.bfloat16 else (),
    "roots": lambda x, y: (x**0.5, x**-0.5, x**-1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=lambda dtype: str(dtype).split(".")[1])
def test_bounds_by_tensors_take_the_zeros_of_eager(dtype, device):
    special = torch.tensor([0.0, -0.0, 1, -1, 0.25, math.nan, math.inf, -0.25], dtype=dtype, device=device)
    # Whole vectors: eager's kernels take the other zero of the last elements of a tensor.
    x, y = (grid.reshape(-1).contiguous() for grid in torch.meshgrid(special, special, indexing="ij"))
    zeros = special[:2]

    def clamp(x, y):
        return x.clamp(y, y + 1), x.clamp(min=y), x.clamp(max=y), x.clamp_min(y), x.clamp_max(y), x.clamp(zeros[0], zeros[1]), x.clamp(zeros[1], zeros[0])

    assert_same_bits(torch.compile(clamp, backend="cxxinductor")(x, y), clamp(x, y))


def quotients(x, y):
    return [torch.div(x, y, rounding_mode=mode) for mode in (None, "trunc", "floor")]


def pairs_of(dtype, device):
    """Quotients near integers, small and large ones; none beyond the largest float, where eager's remainder on the CPU is NaN."""
    generator = torch.Generator().manual_seed(0)
    tenths = torch.randint(-400, 400, (2, 1 << 15), generator=generator) / 10
    wide = torch.randn(2, 1 << 15, generator=generator) * torch.exp(3 * torch.randn(2, 1 << 15, generator=generator))
    return torch.cat([tenths, wide], 1).to(dtype).to(device)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=lambda dtype: str(dtype).split(".")[1])
def test_rounded_quotients_are_those_of_eager(dtype, device):
    x, y = pairs_of(dtype, device)
    run = torch.compile(lambda x, y: [*quotients(x, y), torch.remainder(x, y), torch.fmod(x, y)], backend="cxxinductor")
    assert_same_bits(run(x, y), [*quotients(x, y), torch.remainder(x, y), torch.fmod(x, y)])
    tenth = torch.tensor([1.5, 0.3], dtype=dtype, device=device)
    assert_same_bits(torch.compile(quotients, backend="cxxinductor")(*tenth), quotients(*tenth))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=lambda dtype: str(dtype).split(".")[1])
@pytest.mark.parametrize("number", [0.3, -0.7, 3, 0])
def test_quotients_with_numbers_are_those_of_eager(number, dtype, device):
    x = pairs_of(dtype, device).flatten()

    def by_number(x):
        return [*quotients(x, number), number // x]

    assert_same_bits(torch.compile(by_number, backend="cxxinductor")(x), by_number(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=lambda dtype: str(dtype).split(".")[1])
@pytest.mark.parametrize("one", ["host", "rank 0", "element"])
def test_one_element_beside_narrow_tensors_enters_kernels_as_in_eager(one, dtype, device):
    x, other = pairs_of(dtype, device).flatten(), torch.tensor(0.3, device="cpu" if one == "host" else device)
    if one == "element":
        other = other.reshape(1).to(dtype)

    def beside(x, other):
        return [*quotients(x, other), *quotients(other, x), x * other, other * x]

    assert_same_bits(torch.compile(beside, backend="cxxinductor")(x, other), beside(x, other))


@pytest.mark.parametrize("divide", [lambda x: x // 0, lambda x: x % 0, lambda x: torch.fmod(x, 0), lambda x: torch.div(x, 0, rounding_mode="trunc")])
def test_division_of_integers_by_zero_raises_on_the_cpu(divide):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.compile(lambda x: divide(x) + 1, backend="cxxinductor")(torch.arange(8))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_moments_of_no_elements_are_those_of_eager(shape, dynamic, device):
    def moments(x):
        return [*torch.var_mean(x, 0), *torch.std_mean(x), *torch.var_mean(x, -1, correction=0)]

    x = torch.randn(shape, device=device)
    assert_same_bits(torch.compile(moments, backend="cxxinductor", dynamic=dynamic)(x), moments(x))


ACCUMULATED = {
    "var": lambda x: x.var(-1),
    "std": lambda x: x.std(0),
    "var_mean": lambda x: torch.var_mean(x, -1, correction=0),
    "cumsum": lambda x: x.cumsum(-1),
    "cumprod": lambda x: (x / x.abs().max()).cumprod(-1),
}


@pytest.mark.parametrize("mean, deviation", [(0, 1), (1e4, 1), (1e4, 1e-1), (0, 1e-23)])
@pytest.mark.parametrize("function", ACCUMULATED.values(), ids=ACCUMULATED.keys())
def test_cpu_accumulates_f32_in_f64_as_eager_does(function, mean, deviation):
    x = mean + deviation * torch.randn(64, 96, generator=torch.Generator().manual_seed(0))
    actual, expected = torch.compile(function, backend="cxxinductor")(x), function(x)
    torch.testing.assert_close(actual, expected, rtol=2**-23, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=lambda dtype: str(dtype).split(".")[1])
@pytest.mark.parametrize("function", ZEROS_AND_NANS.values(), ids=ZEROS_AND_NANS.keys())
def test_signs_of_zeros_and_nans_are_those_of_eager(function, dtype, device):
    special = torch.tensor([0.0, -0.0, 1, -1, 0.5, math.nan, math.inf, -math.inf], dtype=dtype, device=device)
    x, y = (grid.reshape(-1).contiguous() for grid in torch.meshgrid(special, special, indexing="ij"))
    for size in (64, 63):  # vectors, and what is left of them
        for actual, expected in zip(torch.compile(function, backend="cxxinductor")(x[:size], y[:size]), function(x[:size], y[:size])):
            # MKL's square root of doubles is a unit of the last place off on some CPUs: of 0.5, for one.
            tolerance = 2**-52 if dtype == torch.float64 and device == "cpu" else 0
            torch.testing.assert_close(actual, expected, rtol=tolerance, atol=0, equal_nan=True)
            assert torch.equal(actual.signbit() & ~actual.isnan(), expected.signbit() & ~expected.isnan())


def test_argmax_of_bool(device):
    """Eager raises on the CPU."""
    x = torch.tensor([True, False], device=device)
    for function in (torch.argmax, torch.argmin):
        compiled = torch.compile(function, backend="cxxinductor")
        try:
            expected = function(x)
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=re.escape(str(error).split("\n", maxsplit=1)[0])):
                compiled(x)
        else:
            assert torch.equal(compiled(x), expected)
