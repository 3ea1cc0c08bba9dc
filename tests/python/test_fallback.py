"""The graph fallback: whole models through the ATen executor, as they run when a graph cannot be compiled."""

import pytest
import torch
from compare import assert_as_good_as_eager, double_copy, to_double
from test_models import MODELS, first

import cxxinductor
from cxxinductor import _C

ATEN = {"tier": "aten"}


def compiled_by_aten(fn):
    return torch.compile(fn, backend="cxxinductor", options=ATEN)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_models(make, device):
    model, inputs = make(device)
    model = model.to(device).eval().requires_grad_(False)
    with pytest.warns(UserWarning, match="runs op by op through ATen: the option tier=aten asks for it"):
        actual = compiled_by_aten(model)(**inputs)
    assert_as_good_as_eager(first(actual), first(model(**inputs)), first(double_copy(model)(**to_double(inputs))))
    counters = cxxinductor.counters()
    assert counters["aten_fallback"] > 0 and counters["graphs"] == 0 and counters["eager_fallback"] == 0


def test_the_warning_names_the_graph_and_the_line_that_calls_it(device):
    def fn(x):
        return (x + 1).exp()

    run = compiled_by_aten(fn)
    with pytest.warns(UserWarning) as caught:
        run(torch.ones(3, device=device))
    (warning,) = caught
    line = fn.__code__.co_firstlineno
    assert (warning.filename, warning.lineno) == (__file__, line + 5)
    text = str(warning.message)
    assert text.startswith("cxxinductor: the inference graph [0/0] (2 calls, the first is aten.add.Tensor (test_fallback.py:")
    assert f"test_fallback.py:{line + 1}))" in text


def check(fn, *inputs, dynamic=None):
    """fn through the ATen executor and eager, on clones: results and what the inputs became."""
    ours, theirs = [[x.clone() if isinstance(x, torch.Tensor) else x for x in inputs] for _ in range(2)]
    actual = torch.compile(fn, backend="cxxinductor", dynamic=dynamic, options=ATEN)(*ours)
    torch.testing.assert_close((actual, ours), (fn(*theirs), theirs), rtol=1e-5, atol=1e-6)
    assert cxxinductor.counters()["aten_fallback"] > 0 and cxxinductor.counters()["eager_fallback"] == 0
    return actual


@pytest.mark.filterwarnings("ignore:cxxinductor")
class TestSemantics:
    def test_numbers_where_the_schema_says_tensor(self, device):
        def fn(x, n):
            return x * 2, 1 - x, x * True, torch.where(x > 0, x, 0.5), x.to(torch.int32) + 1.5, n * x, x + n

        x = torch.randn(3, 4, device=device)
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            check(fn, x.to(dtype), 3, dynamic=True)

    def test_sizes_that_change(self, device):
        def fn(x):
            return x.reshape(-1, 2) * x.shape[0], x.new_zeros(x.shape[0] * 2), x.shape[0] + 1

        for rows in (4, 6, 10):
            check(fn, torch.randn(rows, 4, device=device), dynamic=True)

    def test_sizes_known_only_at_run_time(self):
        builder = _C.CallGraphBuilder("graph")
        found, where = _C.Sym("Symbol('u0', integer=True)"), ("", 0, "", "")
        x = builder.tensor_input("x", 6, "cpu", 0, [5], [1], 0, 1, "x", False, False)
        results = [("i", 4, "cpu", 0, [found, 1], [1, found], 0, 2, False, False)]
        [indices] = builder.call("aten::nonzero", "", [x], {}, results, False, where)
        results = [("o", 6, "cpu", 0, [found], [1], 0, 3, False, False)]
        [ones] = builder.call("aten::ones", "", [[found]], {}, results, False, where)
        builder.output([indices, ones, found])
        options = _C.Options()
        options.set("tier", "aten")
        compiled = _C.compile(builder, options)
        for x in (torch.tensor([0.0, 1, 0, 2, -3]), torch.zeros(5)):
            actual = compiled([x])
            torch.testing.assert_close(actual[:2], [x.nonzero(), torch.ones(x.count_nonzero())])
            assert actual[2] == x.count_nonzero()

    def test_mutation_and_aliases(self, device):
        def fn(x, y):
            x.add_(1)
            y[1:].mul_(x[0, 0])
            return x, x.t(), y[0]

        x = torch.randn(3, 3, device=device)
        version = x._version
        a, b, _ = compiled_by_aten(fn)(x, torch.randn(3, device=device))
        assert a is x and b._base is x and x._version > version
        check(fn, x, torch.randn(3, device=device))

    def test_gradients(self, device):
        def fn(x, w):
            return torch.nn.functional.layer_norm(x @ w, (5,)).relu().sum()

        x, w = torch.randn(4, 3, device=device), torch.randn(3, 5, device=device)
        gradients = []
        for f in (fn, compiled_by_aten(fn)):
            leaves = [t.clone().requires_grad_() for t in (x, w)]
            gradients.append(torch.autograd.grad(f(*leaves), leaves))
        torch.testing.assert_close(gradients[1], gradients[0])

    def test_random_numbers_are_eagers(self, device):
        def fn(x):
            return torch.nn.functional.dropout(x, 0.5), torch.rand_like(x)

        x = torch.randn(100, device=device)
        torch.manual_seed(3)
        expected = fn(x)
        torch.manual_seed(3)
        torch.testing.assert_close(compiled_by_aten(fn)(x), expected, rtol=0, atol=0)

    def test_lists_and_missing_results(self, device):
        def fn(x):
            a, b = x.split(2)
            values, indices = x.max(1)
            return torch.cat([b, a]), torch.stack([a, b]), values, torch.nn.functional.max_pool2d(x[None, None], 2)

        check(fn, torch.randn(4, 6, device=device))


@pytest.mark.filterwarnings("ignore:cxxinductor")
def test_sizes_from_data_and_what_is_asserted_of_them(device):
    """Such graphs are compiled, assertions included."""

    def fn(x):
        places = x.nonzero()
        n = places.shape[0]
        torch._check(n >= 2)
        torch._check(n != 4)
        return places + 1, x.new_ones(n) * x.sum()

    def numbers(*values):
        return torch.tensor(values, device=device)

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(fn, backend="cxxinductor", fullgraph=True)
        for x in (numbers(1.0, 0, 2, 0, 0), numbers(3.0, 0, 2, 0, 1), numbers(1.0, 2, 3, 4, 5)):
            torch.testing.assert_close(compiled(x), fn(x))
        assert cxxinductor.counters()["aten_fallback"] == 0 and cxxinductor.counters()["eager_fallback"] == 0
        for x in (numbers(0.0, 0, 2, 0, 0), numbers(3.0, 1, 2, 0, 1)):
            with pytest.raises(RuntimeError, match="Runtime assertion failed"):
                compiled(x)


@pytest.mark.filterwarnings("ignore:cxxinductor")
def test_slices_whose_ends_are_data(device):
    x, ends = torch.randn(6, 3, device=device), torch.tensor([1, 3, 4])
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        compiled = torch.compile(torch.tensor_split, backend="cxxinductor", fullgraph=True)
        for at in (ends, ends + 1):
            torch.testing.assert_close(compiled(x, at), torch.tensor_split(x, at))
    assert cxxinductor.counters()["eager_fallback"] == 0


def test_integers_beyond_64_bits_run_in_eager_mode():
    x = torch.arange(4)
    with pytest.warns(UserWarning, match="takes 9223372036854775808, which is no integer of 64 bits"):
        result = torch.compile(lambda x: x + 2**63, backend="cxxinductor")(x)
    assert torch.equal(result, x + 2**63)
