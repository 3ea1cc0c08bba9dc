"""Scatters and writes through views: eager's values, in place, moving no more than what they write."""

import pytest
import torch
import torch.nn.functional as F
from compare import assert_as_good_as_eager, to_double

import cxxinductor

FLOAT = torch.float32
index_put = torch.ops.aten.index_put


def clones(inputs):
    return [x.detach().clone() if isinstance(x, torch.Tensor) else x for x in inputs]


def report(fn, *inputs, options=None):
    """What became of fn's graphs; the inputs stay."""
    return cxxinductor.explain(fn, *clones(inputs), options=options)


def externs(fn, *inputs):
    return [callee for graph in report(fn, *inputs).graphs for callee in graph.details["externs"]]


def bytes_moved(fn, *inputs):
    """By our kernels, when nothing is left to others."""
    found = report(fn, *inputs)
    assert found.counters["aten_fallback"] == 0 and externs(fn, *inputs) == []
    return sum(k["launches"] * (k["bytes_read"] + k["bytes_written"]) for g in found.graphs for k in g.details["kernels"])


def check(fn, *inputs, device, dynamic=None):
    """Values, strides and what the inputs become. On the CPU all sums are in eager's order."""
    ours, theirs = clones(inputs), clones(inputs)
    actual = torch.compile(fn, backend="cxxinductor", dynamic=dynamic)(*ours)
    expected = fn(*theirs)
    assert cxxinductor.counters()["aten_fallback"] == 0 and cxxinductor.counters()["eager_fallback"] == 0
    if device == "cpu":
        for a, e in zip(tree(actual) + ours, tree(expected) + theirs):
            if isinstance(e, torch.Tensor):
                assert a.dtype == e.dtype and a.shape == e.shape
                torch.testing.assert_close(a, e, rtol=0, atol=0, equal_nan=True)
        return
    wide = to_double(clones(inputs))
    assert_as_good_as_eager(actual, expected, fn(*wide))
    assert_as_good_as_eager(ours, theirs, wide, factor=4)


def tree(x):
    return torch.utils._pytree.tree_leaves(x)


def numbers(shape, dtype, device):
    if dtype.is_floating_point:
        return torch.randn(shape).to(device, dtype)
    return torch.randint(0, 9, shape).to(device, dtype)


def unique(count, below, device):
    return torch.randperm(below)[:count].to(device)


ALONG = {
    "scatter_src": lambda x, i, s: x.scatter(1, unique_rows(i), s),
    "scatter_value": lambda x, i, s: x.scatter(1, i, 2),
    "scatter_add": lambda x, i, s: x.scatter_add(1, i, s),
    "scatter_add_first": lambda x, i, s: x.scatter_add(0, i[:, :5] % 6, s),
    "scatter_named_add": lambda x, i, s: torch.scatter(x, 1, i, s, reduce="add"),
    "scatter_named_multiply": lambda x, i, s: torch.scatter(x, 1, i, s, reduce="multiply"),
    "sum": lambda x, i, s: x.scatter_reduce(1, i, s, "sum"),
    "prod": lambda x, i, s: x.scatter_reduce(1, i, s, "prod", include_self=False),
    "mean": lambda x, i, s: x.scatter_reduce(1, i, s, "mean"),
    "mean_alone": lambda x, i, s: x.scatter_reduce(1, i, s, "mean", include_self=False),
    "amax": lambda x, i, s: x.scatter_reduce(1, i, s, "amax"),
    "amax_alone": lambda x, i, s: x.scatter_reduce(1, i, s, "amax", include_self=False),
    "amin": lambda x, i, s: x.scatter_reduce(1, i, s, "amin"),
    "amin_alone": lambda x, i, s: x.scatter_reduce(1, i, s, "amin", include_self=False),
}


def unique_rows(index):
    """Places along dimension 1 that do not meet."""
    return index.argsort(1) % 9


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.int32], ids=str)
@pytest.mark.parametrize("name", ALONG)
def test_along_a_dimension(name, dtype, device):
    x, source = numbers((6, 9), dtype, device), numbers((6, 8), dtype, device)
    check(ALONG[name], x, torch.randint(0, 9, (5, 7)).to(device), source, device=device)


@pytest.mark.parametrize("name", ["scatter_src", "scatter_value", "scatter_add", "sum", "mean", "amax", "prod"])
def test_along_a_dimension_without_calls(name, device):
    x, source = numbers((6, 9), FLOAT, device), numbers((6, 8), FLOAT, device)
    index = torch.randint(0, 9, (5, 7)).to(device)
    calls = [c for c in externs(ALONG[name], x, index, source) if "sort" not in c]
    assert calls == []


BY_SLICES = {
    "index_add": lambda x, i, s: x.index_add(1, i, s),
    "index_add_negated": lambda x, i, s: x.index_add(1, i, s, alpha=-2),
    "index_fill": lambda x, i, s: x.index_fill(1, i, 3),
    "index_fill_tensor": lambda x, i, s: x.index_fill(1, i, torch.tensor(3, dtype=x.dtype)),
    "index_put_add": lambda x, i, s: index_put(x, [None, i], s, True),
    "index_put_both": lambda x, i, s: index_put(x, [i[:5] % 5, i[:5]], s[:, 0], True),
    "index_put_value": lambda x, i, s: x.index_put((i % 5,), torch.ones((), dtype=x.dtype, device=x.device)),
    "index_put_negative": lambda x, i, s: index_put(x, [None, i - 7], s, True),
    "assigned": lambda x, i, s: x.clone().__setitem__((slice(None), i[:3]), s[:, :1]),
    "mask": lambda x, i, s: x.masked_fill(x > 0, 1).index_put((x > 1,), torch.zeros((), dtype=x.dtype, device=x.device)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
@pytest.mark.parametrize("name", BY_SLICES)
def test_by_slices(name, dtype, device):
    x, source = numbers((5, 7, 4), dtype, device), numbers((5, 6, 4), dtype, device)
    check(BY_SLICES[name], x, torch.tensor([0, 6, 2, 2, 5, 2]).to(device), source, device=device)


def test_indices_that_are_apart(device):
    def fn(x, i, j, s):
        return index_put(x, [i, None, j], s, True), index_put(x, [i, None, j], s[0, 0])

    x, s = numbers((5, 7, 4), FLOAT, device), numbers((3, 7), FLOAT, device)
    check(fn, x, torch.tensor([1, 1, 4]).to(device), torch.tensor([0, 0, 3]).to(device), s, device=device)


def test_index_copy_of_distinct_places(device):
    x, source = numbers((5, 7, 4), FLOAT, device), numbers((5, 3, 4), FLOAT, device)
    check(lambda x, i, s: x.index_copy(1, i, s), x, torch.tensor([6, 0, 3]).to(device), source, device=device)
    assert externs(lambda x, i, s: x.index_copy(1, i, s), x, torch.tensor([6, 0, 3]).to(device), source) == []


def test_repeated_places_hold_one_of_the_values(device):
    x, source = torch.zeros(4, 3, device=device), torch.arange(24.0, device=device).view(8, 3)
    index = torch.tensor([1, 1, 3, 1, 3, 3, 1, 1]).to(device)
    result = torch.compile(lambda x, i, s: x.index_put((i,), s), backend="cxxinductor")(x, index, source)
    assert torch.equal(result[[0, 2]], torch.zeros(2, 3, device=device))
    for place in (1, 3):
        candidates = source[index == place]
        for column in range(3):
            assert result[place, column] in candidates[:, column]


def test_empty_and_scalar_indices(device):
    def fn(x, none, one, s):
        return x.index_add(0, none, s[:0]), x.index_copy(0, one, s[0][None]), x.scatter(1, one.view(1, 1), 5.0), x.index_fill(1, one, 2)

    x, s = numbers((4, 4), FLOAT, device), numbers((3, 4), FLOAT, device)
    check(fn, x, torch.zeros(0, dtype=torch.int64, device=device), torch.tensor(2).to(device), s, device=device)


def test_scatters_of_nothing(device):
    def fn(x, none, narrow, pair):
        return x.scatter(1, none, 3.0), x.scatter_add(1, none, x[:, :0]), x.scatter_reduce(1, none, x[:, :0], "prod", include_self=False), narrow.index_add(0, pair, narrow[:2])

    x, narrow = numbers((4, 3), FLOAT, device), numbers((4, 0), FLOAT, device)
    check(fn, x, torch.zeros(4, 0, dtype=torch.int64, device=device), narrow, torch.tensor([0, 1], device=device), device=device)


def test_the_gradient_of_sorting_nothing(device):
    x = torch.randn(4, 0, device=device, requires_grad=True)
    torch.compile(lambda x: x.sort(-1)[0], backend="cxxinductor")(x).sum().backward()
    assert x.grad.shape == (4, 0) and cxxinductor.counters()["aten_fallback"] == 0


def test_indices_of_32_bits(device):
    x, s = numbers((4, 4), FLOAT, device), numbers((3, 4), FLOAT, device)
    check(lambda x, i, s: x.index_add(0, i, s), x, torch.tensor([3, 1, 3], dtype=torch.int32).to(device), s, device=device)


def test_sizes_that_change(device):
    def fn(x, i, s):
        y = x * 2
        y.index_add_(0, i, s)
        y[1:] += 1
        y[:, 2] = 0
        return y

    compiled = torch.compile(fn, backend="cxxinductor", dynamic=True)
    for rows, count in [(9, 4), (20, 7), (33, 5), (5, 3)]:
        x, s = torch.randn(rows, 8, device=device), torch.randn(count, 8, device=device)
        i = torch.randint(0, rows, (count,)).to(device)
        torch.testing.assert_close(compiled(x, i, s), fn(x, i, s))
    assert cxxinductor.counters()["graphs"] <= 2 and cxxinductor.counters()["extern"] == 0


def test_an_index_smaller_than_its_source_in_every_dimension(device):
    def fn(x, i, s):
        return x.scatter_add(2, i, s), x.scatter(2, i % 2, 1.5)

    compiled = torch.compile(fn, backend="cxxinductor", dynamic=True)
    for sizes, smaller in [((16, 5, 9), (11, 4, 7)), ((10, 12, 8), (6, 3, 2)), ((30, 7, 4), (2, 6, 3))]:
        x, s = torch.randn(sizes, device=device), torch.randn(sizes, device=device)
        i = torch.randint(0, sizes[2], smaller).to(device)
        torch.testing.assert_close(compiled(x, i, s), fn(x, i, s))
    counters = cxxinductor.counters()
    assert counters["graphs"] == 1 and counters["extern"] == counters["aten_fallback"] == 0


@pytest.mark.parametrize("integer", [torch.int64, torch.int32], ids=str)
@pytest.mark.parametrize("shape", [(6,), (6, 16), (6, 4, 16)], ids=str)
@pytest.mark.parametrize("dim", [0, -1, 1])
def test_sums_of_16_bits(dim, shape, integer, device):
    """On the CPU ATen sums some of these in f32."""
    dim = dim % len(shape)
    source_shape = [*shape[:dim], 60, *shape[dim + 1 :]]
    x, s = torch.randn(shape).bfloat16().to(device), torch.randn(source_shape).bfloat16().to(device)
    i = torch.randint(0, 4, (60,), dtype=integer).to(device)
    check(lambda x, i, s: x.index_add(dim, i, s), x, i, s, device=device)
    assert externs(lambda x, i, s: x.index_add(dim, i, s), x, i, s) == []


def test_places_that_repeat_are_read_before_they_are_written(device):
    """What is read where an index sends it, and then overwritten there, may be sent to twice."""

    def overwrite(x, i, s):
        y = x * s
        return y.gather(1, i) + y.scatter(1, i, 0)

    def again(x, i, s):
        y = x * s
        taken = y.gather(1, i) * 2
        y.scatter_(1, i, 0.5)
        return y, taken

    x, s = torch.randn(4, 6).to(device), torch.randn(4, 6).to(device)
    index = torch.tensor([[0, 0, 1, 5, 5, 5]]).repeat(4, 1).to(device)
    check(overwrite, x, index, s, device=device)
    check(again, x, index, s, device=device)


def test_gradients_of_a_reduction_without_the_base(device):
    x, w = torch.randn(4, 6).to(device), torch.randn(4, 6).to(device)
    index = torch.randint(0, 6, (4, 6)).to(device)

    def gradient(run):
        leaf = x.clone().requires_grad_()
        return torch.autograd.grad((run(leaf, index) * w).sum(), leaf)[0]

    def fn(x, i):
        return x.scatter_reduce(1, i, x, "sum", include_self=False) * 2

    torch.testing.assert_close(gradient(torch.compile(fn, backend="cxxinductor")), gradient(fn))


@pytest.mark.parametrize("bad", [7, -1])
def test_an_index_out_of_range_raises(bad, device):
    if device == "cuda":
        pytest.skip("raises at the next synchronisation: test_cuda.py")
    x, s = torch.randn(7, 3), torch.randn(2, 3)
    compiled = torch.compile(lambda x, i, s: x.index_add(0, i, s), backend="cxxinductor")
    with pytest.raises(cxxinductor.UserError, match="out of bounds"):
        compiled(x, torch.tensor([2, bad]), s)


# ---- Writes through views --------------------------------------------------------------------------------------------


VIEWS = {
    "slice": lambda x, y: x[1:4].add_(y[:3]),
    "step": lambda x, y: x[::2, 1:].mul_(3),
    "select": lambda x, y: x[2].copy_(y[0]),
    "column": lambda x, y: x[:, 3].fill_(1),
    "nested": lambda x, y: x[1:5][1:3, 2:4].copy_(y[:2, :2]),
    "transposed": lambda x, y: x.t().mul_(2),
    "transposed_slice": lambda x, y: x.t()[1:3].add_(1),
    "diagonal": lambda x, y: x.diagonal().zero_(),
    "diagonal_offset": lambda x, y: x.diagonal(1).copy_(y[0, :5]),
    "index_in_slice": lambda x, y: x[:, 1:].index_fill_(0, torch.tensor([1, 4], device=x.device), 7),
    "put_in_slice": lambda x, y: x[1:].index_put_((torch.tensor([0, 2], device=x.device),), y[:2]),
    "view": lambda x, y: x.view(3, 2, 6)[1].sub_(y[:2]),
    "overlap": lambda x, y: x[1:].copy_(x[:-1].clone()),
    "overlap_sum": lambda x, y: x[1:4].add_(x[2:5].clone()),
    "cast": lambda x, y: x[1:3].copy_(y[:2].double()),
    "as_strided": lambda x, y: (x * 2).as_strided_((3, 4), (6, 1), 7).add_(1),
    "as_strided_scatter": lambda x, y: torch.as_strided_scatter(x + y, y[1:3], (2, 6), (6, 1), 12),
    "as_strided_columns": lambda x, y: torch.as_strided_scatter(x + y, y[:, :2], (6, 2), (6, 2), 1),
    "as_strided_input": lambda x, y: torch.as_strided_scatter(x, y[1:3], (2, 6), (6, 1), 12),
    "as_strided_columns_input": lambda x, y: torch.as_strided_scatter(x, y[:, :2], (6, 2), (6, 2), 1),
    "slice_scatter": lambda x, y: (torch.slice_scatter(x, y[:2], 0, 1, 3), torch.select_scatter(x, y[0], 1, -1)),
    "whole": lambda x, y: x[:].copy_(y),
    "swap": lambda x, y: (lambda old: (x.copy_(y), y.copy_(old)))(x.clone()),
}


@pytest.mark.parametrize("inside", [False, True], ids=["input", "inside"])
@pytest.mark.parametrize("name", VIEWS)
def test_writes_through_views(name, inside, device):
    def fn(x, y):
        x = x * 1.5 if inside else x
        before = x.amax()
        out = VIEWS[name](x, y)
        return before, x + 1, x.t(), (out if name in ("as_strided_scatter", "slice_scatter") else 0)

    check(fn, torch.randn(6, 6, device=device), torch.randn(6, 6, device=device), device=device)


def test_the_version_counter_rises(device):
    x = torch.zeros(4, 4, device=device)
    before = x._version
    torch.compile(lambda x: x[1:3].add_(1), backend="cxxinductor")(x)
    assert x._version > before


def test_inputs_of_odd_strides(device):
    def fn(x, i, s):
        x.index_add_(0, i, s)
        x[1:3] -= 1
        return x.sum(0)

    i, s = torch.tensor([1, 1, 5]).to(device), torch.randn(3, 6, device=device)
    wide = torch.randn(6, 13, device=device)
    ours, theirs = wide.clone(), wide.clone()
    compiled = torch.compile(fn, backend="cxxinductor")
    for view in (lambda w: w[:, ::2][:, :6], lambda w: w[:, 3:9], lambda w: w[:, :6].t()):
        torch.testing.assert_close(compiled(view(ours), i, s), fn(view(theirs), i, s))
        torch.testing.assert_close(ours, theirs)


def test_inputs_that_alias(device):
    def fn(x, y):
        x[1:3] += 1
        return y * 2

    base = torch.arange(16.0, device=device)
    ours, theirs = base.clone(), base.clone()
    for a, b in [((0, 8), (4, 12)), ((0, 8), (0, 8)), ((8, 16), (2, 10))]:
        torch._dynamo.reset()  # AOTAutograd takes the overlap of the first call for that of all
        compiled = torch.compile(fn, backend="cxxinductor")
        torch.testing.assert_close(compiled(ours[slice(*a)], ours[slice(*b)]), fn(theirs[slice(*a)], theirs[slice(*b)]))
        torch.testing.assert_close(ours, theirs)


def test_copies_of_an_updated_input_are_copies(device):
    def fn(x, i):
        x.index_add_(0, i, x[i] * 2)
        return x.clone(), x[1:].clone(), x.reshape(-1).clone()

    x, i = torch.arange(20.0, device=device).view(5, 4), torch.tensor([2, 0], device=device)
    ours, theirs = x.clone(), x.clone()
    found, expected = torch.compile(fn, backend="cxxinductor")(ours, i), fn(theirs, i)
    ours.zero_()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("dynamic", [None, True])
def test_views_of_an_updated_input_are_views_of_it(dynamic, device):
    def fn(x, i):
        x.index_add_(0, i, x[i] * 2)
        return x[None].expand(3, *x.shape), x[1:].t()

    x, i = torch.arange(20.0, device=device).view(5, 4), torch.tensor([2, 0], device=device)
    ours, theirs = x.clone(), x.clone()
    compiled = torch.compile(fn, backend="cxxinductor", dynamic=dynamic)
    for found, expected in zip(compiled(ours, i), fn(theirs, i)):
        assert torch.equal(found, expected) and found.stride() == expected.stride()
        assert found.data_ptr() - ours.data_ptr() == expected.data_ptr() - theirs.data_ptr()
    torch.testing.assert_close(ours, theirs)
    assert bytes_moved(fn, x, i) <= 6 * 2 * 4 * 4 + 3 * 16  # rows that it updates, twice: what they become, and their sums


def test_constants_of_the_function(device):
    def fn(x):
        return x[torch.tensor([2, 0], device=x.device)] + torch.tensor([1.0, 2.0, 3.0], device=x.device)

    check(fn, torch.randn(4, 3, device=device), device=device)


def test_old_values_that_are_read_later(device):
    def fn(x, i, s):
        y = x * 2
        z = y.index_add(0, i, s)
        w = z.index_add(0, i, s)
        return -y, z.amax(), w, y

    x, s = torch.randn(6, 5, device=device), torch.randn(3, 5, device=device)
    check(fn, x, torch.tensor([1, 1, 5]).to(device), s, device=device)


STEPS = [
    lambda t, i, s: t.index_add_(0, i, s),
    lambda t, i, s: t[1:4].mul_(0.5),
    lambda t, i, s: t[:, 2:].copy_(t[:, :-2].clone()),
    lambda t, i, s: t.t()[i[:2]].sum(),
    lambda t, i, s: t.scatter_add_(0, i[:, None].expand(3, 6).contiguous(), s),
    lambda t, i, s: t[i].relu().sum(),
    lambda t, i, s: t.index_put_((i,), s.sum()),
    lambda t, i, s: t[i[0]].add_(1),
    lambda t, i, s: t.select(1, 3).sub_(t.select(1, 2)),
    lambda t, i, s: t.clamp_(-4, 4),
    lambda t, i, s: t.diagonal().add_(t[0]),
    lambda t, i, s: t.view(3, 2, 6)[:, 1].index_fill_(1, i[:1], 3),
    lambda t, i, s: t[::2].index_add_(1, i, s.t()[:3, :3].contiguous()),
    lambda t, i, s: t.add_(t.flip(0)),
]


@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed, device):
    generator = torch.Generator().manual_seed(seed)
    chosen = [int(k) for k in torch.randint(0, len(STEPS), (6,), generator=generator)]
    targets = [int(k) for k in torch.randint(0, 2, (6,), generator=generator)]

    def fn(x, y, i, s):
        tensors, kept = [x, y * 1.0], []
        for step, target in zip(chosen, targets):
            kept.append(STEPS[step](tensors[target], i, s) * 1.0)
            kept.append(tensors[1 - target] + 1 if step % 3 == 0 else tensors[target][0] * 1.0)
        return kept, tensors[1]

    def runs(f):
        return lambda *inputs: f(*inputs)

    x, y, s = (torch.randint(-3, 4, shape).float().to(device) for shape in [(6, 6), (6, 6), (3, 6)])
    i = torch.tensor([4, 1, 5] if seed % 2 else [1, 4, 4]).to(device)
    check(runs(fn), x, y, i, s, device=device)


@pytest.mark.parametrize("checked", ["interp", "eager"])
def test_checked(checked, device):
    """Launches that update memory, against the interpreter and ATen."""

    def fn(x, y, i, s):
        x.index_add_(0, i, s)
        z = y.scatter_add(0, i[:, None].expand(3, 5).contiguous(), s)
        x[1:3] *= 2
        return z, x.sum(0)

    x, y, s = (torch.randn(shape, device=device) for shape in [(6, 5), (6, 5), (3, 5)])
    compiled = torch.compile(fn, backend="cxxinductor", options={"check": checked})
    torch.testing.assert_close(compiled(x.clone(), y, torch.tensor([1, 5, 1]).to(device), s), fn(x, y, torch.tensor([1, 5, 1]).to(device), s))


# ---- Gradients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", [None, 0, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_embedding_backward(padding, dtype, device):
    def step(weight, index):
        return F.embedding(index, weight, padding_idx=padding).float().square().sum()

    def gradient(f, leaf_dtype):
        weight = torch.linspace(-2, 2, 70).view(10, 7).to(device, dtype).to(leaf_dtype).requires_grad_()
        f(weight, torch.tensor([[1, 3, 3, 0], [9, 3, 1, 1]], device=device)).backward()
        return weight.grad

    ours, eager = gradient(torch.compile(step, backend="cxxinductor"), dtype), gradient(step, dtype)
    if device == "cpu":
        assert torch.equal(ours, eager)
    assert_as_good_as_eager([ours], [eager], [gradient(step, torch.float64)])
    assert cxxinductor.counters()["extern"] == 0


def test_embedding_backward_in_any_order(device):
    def step(weight, index):
        return F.embedding(index, weight, padding_idx=1).square().sum()

    weight, index = torch.randn(10, 7, device=device), torch.tensor([[1, 3, 3, 0], [9, 3, 1, 1]], device=device)
    ours, eager = weight.clone().requires_grad_(), weight.clone().requires_grad_()
    torch.compile(step, backend="cxxinductor", options={"numerics": "fast"})(ours, index).backward()
    step(eager, index).backward()
    torch.testing.assert_close(ours.grad, eager.grad)
    assert cxxinductor.counters()["extern"] == 0


def test_gradients_of_scatters(device):
    def fn(x, s, i):
        y = x.sin()
        y = y.index_add(0, i, s.cos()).scatter_add(1, i[None, :].expand(5, 3), s[:, :3].exp().repeat(2, 1)[:5])
        y = torch.cat([y, x.index_select(0, i)])
        return y.gather(1, i[None, :].expand(6, 3)).square().mean()

    def gradients(f, dtype):
        torch.manual_seed(2)
        x, s = (torch.randn(shape, dtype=torch.float64).to(device, dtype).requires_grad_() for shape in [(5, 6), (3, 6)])
        f(x, s, torch.tensor([0, 4, 4], device=device)).backward()
        return [x.grad, s.grad]

    compiled = torch.compile(fn, backend="cxxinductor")
    assert_as_good_as_eager(gradients(compiled, FLOAT), gradients(fn, FLOAT), gradients(fn, torch.float64))


# ---- How much is moved -----------------------------------------------------------------------------------------------

ROWS, WIDTH, UPDATES = 20000, 64, 8
ROW_BYTES = 4 * WIDTH


def test_updates_of_an_input_move_what_they_write(device):
    def fn(x, i, s):
        for k in range(UPDATES):
            x.index_copy_(0, i[k], s[k])
            x[100 * k + 1] = s[k, 0]
            x[200:203, :8] *= 2

    x, s = torch.zeros(ROWS, WIDTH, device=device), torch.randn(UPDATES, 2, WIDTH, device=device)
    i = torch.arange(2 * UPDATES, device=device).view(UPDATES, 2)
    assert bytes_moved(fn, x, i, s) <= UPDATES * 12 * ROW_BYTES
    check(fn, x, i, s, device=device)


def test_updates_of_a_temporary_copy_it_once(device):
    def fn(x, i, s):
        y = x + 1
        for k in range(UPDATES):
            y = y.index_put((i[k],), s[k])
        return y

    x, s = torch.zeros(ROWS, WIDTH, device=device), torch.randn(UPDATES, 2, WIDTH, device=device)
    i = torch.arange(2 * UPDATES, device=device).view(UPDATES, 2)
    assert bytes_moved(fn, x, i, s) <= 2 * ROWS * ROW_BYTES + UPDATES * 8 * ROW_BYTES
    check(fn, x, i, s, device=device)


def test_sums_into_zeros_write_them_once(device):
    def fn(i, s):
        return torch.zeros(ROWS, WIDTH, device=s.device, dtype=s.dtype).index_add(0, i, s)

    i, s = torch.randint(0, ROWS, (32,)).to(device), torch.randn(32, WIDTH, device=device)
    assert bytes_moved(fn, i, s) <= (ROWS + 4 * 32) * ROW_BYTES
    check(fn, i, s, device=device)


def test_a_copy_is_made_where_the_old_value_is_kept(device):
    def fn(x, i, s):
        return x.index_copy(0, i, s), x * 2

    x, s = torch.zeros(ROWS, WIDTH, device=device), torch.randn(2, WIDTH, device=device)
    moved = bytes_moved(fn, x, torch.tensor([3, 5]).to(device), s)
    assert 3 * ROWS * ROW_BYTES <= moved <= 4.1 * ROWS * ROW_BYTES


def test_a_result_is_written_where_it_is_copied_to(device):
    def fn(x, y):
        x.copy_(torch.relu(x + y))
        y.mul_(2)

    x, y = torch.randn(256, 64, device=device), torch.randn(256, 64, device=device)
    size = 256 * 64 * 4
    assert bytes_moved(fn, x, y) == 4 * size
    check(fn, x, y, device=device)


def test_calls_read_windows_of_what_strides_cannot_express(device):
    """The rows of a repeated tensor have gaps between them in eager, by which an alias that a call makes is described."""

    def rows(x):
        v = x.repeat(2, 1)[1::3]
        return torch.diagonal_scatter(v.contiguous(), v.diagonal(0, 0, -1) * 2, 0, 0, -1)

    def repeated(x):
        v = x.flip(0)[:, 1:].expand(2, -1, -1)
        return v.diagonal(0, 1, 2) * 2, v.diagonal(1, 0, 2) + 1

    for fn in (rows, repeated):
        torch._dynamo.reset()
        check(fn, torch.randn(3, 3, device=device).bfloat16(), device=device)
        torch._dynamo.reset()
        check(fn, torch.randn(5, 4, device=device), device=device, dynamic=True)


@pytest.mark.parametrize("fn", [lambda x, index: x.scatter(0, index, 300), lambda x, index: x.index_fill(0, index, -129)], ids=["scatter", "index_fill"])
def test_numbers_that_the_dtype_cannot_hold_raise(fn, device):
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.compile(fn, backend="cxxinductor")(torch.zeros(5, dtype=torch.int8, device=device), torch.tensor([0, 2], device=device))
