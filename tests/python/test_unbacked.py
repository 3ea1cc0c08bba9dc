"""Sizes that are data: nonzero, masks, unique, repeats and item() are calls in compiled graphs, one compile for all data."""

import pytest
import torch
import torch.nn.functional as F

import cxxinductor
from cxxinductor import eager_strides
from compare import strides_of


def check(fn, *calls, gradients=False, dynamic=None, options=None):
    """Runs each of `calls`, lists of inputs, through one compile of one whole graph; returns the compiled function."""
    compiled = torch.compile(fn, backend="cxxinductor", fullgraph=True, dynamic=dynamic, options=options)
    graphs = None
    for inputs in calls:
        ours, theirs = [[x.clone().requires_grad_(gradients and x.is_floating_point()) for x in inputs] for _ in range(2)]
        found, expected = (f(*x) for f, x in ((compiled, ours), (fn, theirs)))
        assert_equal(found, expected)
        if gradients:
            for result in (found, expected):
                sum(x.square().sum() for x in (result if isinstance(result, tuple) else (result,)) if x.requires_grad).backward()
            for a, b in zip(ours, theirs):
                torch.testing.assert_close(a.grad, b.grad)
        counters = cxxinductor.counters()
        assert counters["eager_fallback"] == counters["aten_fallback"] == 0
        assert graphs in (None, counters["graphs"])
        graphs = counters["graphs"]
    return compiled


def assert_equal(found, expected):
    torch.testing.assert_close(found, expected)
    for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected))):
        assert type(a) is type(b)
        if isinstance(a, torch.Tensor):
            assert strides_of(a) == strides_of(b)


def data(*counts, size=12, device="cpu", dtype=torch.float32):
    """Vectors of which `counts` elements are positive."""
    vectors = []
    for count in counts:
        x = -torch.rand(size) - 0.5
        x[torch.randperm(size)[:count]] *= -1
        vectors.append([x.to(device, dtype)])
    return vectors


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64])
def test_masks(dtype, device):
    some = [[(x[0] * 4).to(dtype)] for x in data(3, 0, 1, 12, device=device)]
    check(lambda x: x[x > 0] * 2 + 1, *some)
    check(lambda x: torch.masked_select(x, x > 0).sum() + x, *some)
    check(lambda x: (x > 0).nonzero() * 2, *some)
    check(lambda x: torch.where(x > 0)[0] + 1, *some)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.nonzero() * 2,
        lambda x: -x.nonzero(),
        lambda x: x[x[:, 0] > 0].t() * 2,
        lambda x: -x[x[:, 0] > 0].t(),
        lambda x: (x.nonzero().t() * 2)[1:] + 1,
    ],
)
def test_strides_of_results_without_elements(fn, device):
    for x in (torch.zeros(3, 4, device=device), torch.ones(3, 4, device=device)):
        expected, found = fn(x), torch.compile(fn, backend="cxxinductor", fullgraph=True)(x)
        assert (found.shape, found.stride()) == (expected.shape, expected.stride())
        torch.testing.assert_close(found, expected)


def test_strides_without_elements_of_equal_sizes(device, monkeypatch):
    """nonzero as GPUs lay it out, whose strides without elements are others than its sizes say."""
    on_this_device = eager_strides._strides_when_empty
    monkeypatch.setattr(
        eager_strides,
        "_strides_when_empty",
        lambda node, symbol: (1, 1) if node.target == torch.ops.aten.nonzero.default else on_this_device(node, symbol),
    )

    def fn(x, y):
        a, b = x.nonzero(), y.nonzero()
        torch._check(a.shape[0] == b.shape[0])
        return a * 2 + b

    check(fn, [torch.tensor([1, 0, 1], device=device), torch.tensor([0, 2, 2], device=device)])


def test_rows_of_a_matrix(device):
    rows = [[torch.cat([x[:, None], torch.randn(12, 5, device=device)], 1)] for (x,) in data(4, 0, 1, 12, device=device)]

    def fn(x):
        chosen = x[x[:, 0] > 0]
        return F.softmax(chosen, -1), (chosen @ chosen.t()).sum(), chosen.t().contiguous(), chosen.amax(-1)

    check(fn, *rows)


def test_columns_have_eagers_strides_when_there_are_none(device):
    def fn(x):
        columns = x[None].expand(3, -1).contiguous()
        picked = torch.zeros(3, (x > 0).nonzero().shape[0], device=x.device) + 1
        return picked, columns

    compiled = torch.compile(fn, backend="cxxinductor", fullgraph=True)
    for (x,) in data(5, 0, device=device):
        found, expected = compiled(x), fn(x)
        assert [t.stride() for t in found] == [t.stride() for t in expected]
        assert_equal(found, expected)


def test_gradients_through_masks(device):
    some = data(3, 0, 1, 12, device=device)
    check(lambda x: torch.masked_select(x, x > 0).exp(), *some, gradients=True)
    check(lambda x: x[x > 0].sigmoid() * 3, *some, gradients=True)
    check(lambda x: x[(x > 0).nonzero().squeeze(1)].exp().sum() + x.sin(), *some, gradients=True)


def test_calls_that_are_merged(device):
    """AOTAutograd merges what is alike in training: of two equal masks one is left, and its size under two names."""
    rows = [[x[:, None] * torch.randn(12, 4, device=device)] for (x,) in data(3, 0, 12, device=device)]
    check(lambda x: x[x[:, 0] > 0].t() @ x[x[:, 0] > 0], *rows, gradients=True)
    check(lambda x: x[x[:, 0] > 0].sin().sum() + x[x[:, 0] > 0].cos().sum(), *rows, gradients=True)


def test_softmax_over_sizes_that_are_data(device):
    def fn(x):
        rows = torch.cat([x[x[:, 0] > 0] * 2, x[x[:, 0] <= 0] + 1])
        return rows.softmax(0), rows.log_softmax(1)

    def margin_loss(x):
        return F.soft_margin_loss(x, x.detach().sign())

    rows = [[x[:, None] * torch.randn(12, 4, device=device)] for (x,) in data(3, 0, 12, device=device)]
    check(fn, *rows, gradients=True)
    check(lambda x: margin_loss(x[x > 0]), *data(3, 12, device=device), gradients=True)


@pytest.mark.parametrize("bound", [float("nan"), 0.25])
def test_one_bound_that_is_data(bound, device):
    """ATen takes the element where a single bound is NaN."""
    x, n = torch.randn(8, device=device), torch.tensor(bound, device=device)
    for fn in (lambda x, n: x.clamp(max=n.item()), lambda x, n: x.clamp(min=n.item()) + 1, lambda x, n: x.clamp(-1, n.item())):
        torch._dynamo.reset()
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            torch.testing.assert_close(torch.compile(fn, backend="cxxinductor", fullgraph=True)(x, n), fn(x, n), equal_nan=True)


def test_writes_through_masks(device):
    def fn(x):
        y = x.clone()
        y[y > 0] = y[y > 0] * 10
        return y + 1

    check(fn, *data(3, 0, 12, device=device))


def test_repeats(device):
    repeats = [[torch.randn(4, 3, device=device), torch.tensor(r, device=device)] for r in ([1, 0, 2, 3], [0, 0, 0, 0], [0, 1, 0, 0])]
    check(lambda x, r: x.repeat_interleave(r, dim=0) * 2, *repeats)
    check(lambda x, r: x.repeat_interleave(r, dim=0).sin(), *repeats, gradients=True)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bool])
def test_unique(dtype, device):
    values = [[torch.randint(0, high, (9,), device=device).to(dtype)] for high in (4, 1, 100)]
    check(lambda x: torch.unique(x, return_inverse=True, return_counts=True), *values)
    check(lambda x: torch.unique_consecutive(x, return_counts=True)[0].sin() + 1, *values)


def test_positions_of_unique(device):
    values = [[torch.randint(0, high, (9,), device=device)] for high in (4, 1, 100)]
    check(lambda x: torch.unique(x, return_counts=True)[1] * 2, *values)
    check(lambda x: torch.unique_consecutive(x, return_inverse=True)[1] + 1, *values)


def test_positions_that_pytorch_records_as_values(device):
    compiled = torch.compile(lambda x: torch.unique(x, return_counts=True)[1] * 2, backend="cxxinductor", fullgraph=True)
    with pytest.warns(UserWarning, match="result 2 of aten._unique2.default is recorded with the dtype of the values"):
        found = compiled(torch.tensor([0.5, 0.5, 2.0], device=device))
    assert_equal(found, torch.tensor([4, 2], device=device))


def test_unique_rows(device):
    values = [[torch.randint(0, 3, (9, 2), device=device)] for _ in range(3)]
    check(lambda x: torch.unique(x, dim=0, return_counts=True), *values)


def test_item_in_arithmetic(device):
    numbers = [[torch.randn(7, device=device), torch.tensor(n, device=device)] for n in (3, 0, -2)]
    check(lambda x, n: x * n.item() + 1, *numbers)
    check(lambda x, n: x * n.float().item() + n.float().item(), *numbers)
    check(lambda x, n: (x + 1) * (n > 0).item(), *numbers)
    check(lambda x, n: x * n.float().item(), *numbers, gradients=True)
    check(lambda x, n: (x * n.item()).sin() * (n > 0).item(), *numbers, gradients=True)


def test_item_as_an_output(device):
    numbers = [[torch.randn(7, device=device), torch.tensor(n, device=device)] for n in (3, 0, -2)]
    check(lambda x, n: (x + n.item(), n.item(), (n > 0).item(), n.float().item()), *numbers)


def test_item_as_a_size(device):
    def fn(x, n):
        n = n.sum().item()
        torch._check(n >= 0)
        torch._check(n <= x.shape[0])
        return x[:n] * 2, torch.zeros(n, device=x.device) + 1, torch.arange(n, device=x.device) * 3

    sizes = [[torch.randn(7, device=device), torch.tensor([n], device=device)] for n in (3, 0, 1, 7)]
    compiled = check(fn, *sizes)
    with pytest.raises(RuntimeError, match="<= 7"):
        compiled(sizes[0][0], torch.tensor([8], device=device))
    with pytest.raises(RuntimeError, match=">= 0"):
        compiled(sizes[0][0], torch.tensor([-1], device=device))
    assert_equal(compiled(*sizes[0]), fn(*sizes[0]))


def test_item_as_an_index(device):
    def fn(x, n):
        n = n.sum().item()
        torch._check(n >= 0)
        torch._check(n < x.shape[0])
        return x[n] * 2, x[n:] + 1

    check(fn, *[[torch.randn(7, 3, device=device), torch.tensor([n], device=device)] for n in (3, 0, 6)])


def test_split_by_sizes_that_are_data(device):
    def fn(x, sizes):
        return tuple((part * (i + 1)).exp() for i, part in enumerate(torch.split(x, sizes.tolist())))

    splits = [[torch.randn(16, device=device), torch.tensor(s, device=device)] for s in ([3, 8, 5], [0, 16, 0], [1, 1, 14])]
    compiled = check(fn, *splits)
    with pytest.raises(RuntimeError, match="u"):
        compiled(splits[0][0], torch.tensor([3, 8, 6], device=device))


def test_sizes_of_sizes(device):
    check(lambda x: torch.masked_select(x, x > 0).gt(1).nonzero().float().sum(0), *data(3, 0, 12, device=device))
    check(lambda x: x[x > 0][x[x > 0] > 1] * 2, *data(3, 0, 12, device=device))


def test_sizes_that_must_be_equal(device):
    def fn(x, y):
        a, b = x.nonzero(), y.nonzero()
        torch._check(a.shape[0] == b.shape[0])
        return a * 2 + b

    pairs = [[torch.tensor(a, device=device), torch.tensor(b, device=device)] for a, b in (([1, 0, 1], [0, 2, 2]), ([0, 0, 0], [0, 0, 0]))]
    compiled = check(fn, *pairs)
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        compiled(torch.tensor([1, 0, 1], device=device), torch.tensor([1, 1, 1], device=device))


def test_beside_dynamic_sizes(device):
    calls = [[torch.randn(n, 4, device=device)] for n in (6, 9, 17)]
    check(lambda x: x[x[:, 0] > 0].softmax(-1) * x.shape[0], *calls, dynamic=True)
    check(lambda x: x[x[:, 0] > 0].exp(), *calls, dynamic=True, gradients=True)


def test_what_surrounds_the_calls_is_fused(device):
    def fn(x):
        chosen = ((x * 2).sin() + 1)[x > 0]
        return (chosen * 3).exp() + 1

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        (graph,) = cxxinductor.explain(fn, *data(5, device=device)[0]).graphs
    assert len(graph.details["kernels"]) <= 2 and graph.details["externs"] == ["aten::index"]


@pytest.mark.parametrize("reference", ["interp", "eager"])
def test_checked_step_by_step(reference, device):
    def fn(x, n):
        chosen = x[x > 0]
        return (chosen * n.item()).exp(), chosen.sum()

    calls = [[x, torch.tensor(n, device=device)] for (x,), n in zip(data(3, 0, 12, device=device), (1, 2, -1))]
    check(fn, *calls, options={"check": reference})


def test_memory_counts_sizes_that_are_data(device):
    def fn(x):
        chosen = x[x > 0]
        return (chosen.exp() @ chosen.sin()) * 2

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        (graph,) = cxxinductor.explain(fn, *data(5, size=4096, device=device)[0]).graphs
    memory = graph.details["memory"]
    assert 0 < memory["peak"] <= memory["eager_peak"]


class Router(torch.nn.Module):
    """Top-k routing as JetMoE has it: tokens sorted by expert, one product per expert over as many tokens as chose it."""

    def __init__(self, experts=4, chosen=2, width=8):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts, bias=False)
        self.weight = torch.nn.Parameter(torch.randn(experts, width, width) / 3)
        self.chosen = chosen

    def forward(self, x):
        logits, index = self.gate(x).topk(self.chosen, dim=1)
        gates = logits.softmax(1)
        sizes = F.one_hot(index, self.weight.shape[0]).sum((0, 1)).tolist()
        order = index.flatten().argsort(stable=True)
        token = order.div(self.chosen, rounding_mode="trunc")
        parts = [F.silu(part @ w) for part, w in zip(x[token].split(sizes), self.weight)]
        return torch.zeros_like(x).index_add(0, token, torch.cat(parts) * gates.flatten()[order][:, None])


def test_router(device):
    model = Router().to(device)
    compiled = torch.compile(model, backend="cxxinductor", fullgraph=True)
    for _ in range(3):
        x = torch.randn(10, 8, device=device)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        for module in (compiled, model):
            module.zero_grad()
            module(x).square().sum().backward()
            gradients = [p.grad.clone() for p in model.parameters()]
            module.expected = gradients
        for a, b in zip(compiled.expected, model.expected):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert cxxinductor.counters()["aten_fallback"] == cxxinductor.counters()["eager_fallback"] == 0


@pytest.mark.parametrize("name", ["jetmoe", "mixtral", "qwen2_moe"])
def test_mixtures_of_experts(name, device):
    transformers = pytest.importorskip("transformers")
    tiny = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    tiny |= {"num_key_value_heads": 2, "pad_token_id": 0}
    own = {
        "jetmoe": {"num_local_experts": 4, "num_experts_per_tok": 2, "kv_channels": 8},
        "mixtral": {"num_local_experts": 4},
        "qwen2_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16},
    }
    config = transformers.AutoConfig.for_model(name, **tiny, **own[name])
    config._experts_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).to(device).eval()
    flags = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    with torch._dynamo.config.patch(flags), torch.no_grad():
        compiled = torch.compile(model, backend="cxxinductor")
        for seed in range(2):
            torch.manual_seed(seed)
            ids = torch.randint(1, 64, (2, 9), device=device)
            found, expected = (m(ids, use_cache=False).logits for m in (compiled, model))
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert cxxinductor.counters()["aten_fallback"] == cxxinductor.counters()["eager_fallback"] == 0


@pytest.fixture(scope="module")
def blocks():
    """A custom op that returns four elements for each positive one: no result has the size that data give."""

    @torch.library.custom_op("cxxinductor_test::blocks", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0].repeat_interleave(4)

    op.register_fake(lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size() * 4))
    return op


@pytest.mark.filterwarnings("ignore:cxxinductor. this graph runs")
def test_a_size_that_nothing_gives_falls_back(blocks, device):
    fns = [lambda x: blocks(x) * 2, lambda x: torch.zeros(blocks(x).shape[0], device=x.device) + 1]
    for fn in fns:
        compiled = torch.compile(fn, backend="cxxinductor", fullgraph=True)
        with cxxinductor.reports.collect() as found:
            for (x,) in data(3, 0, 12, device=device):
                assert_equal(compiled(x), fn(x))
        # As far as it goes, the report is that of a compiled graph.
        assert found[0].details["eager_reason"] and found[0].details["memory"] is None and found[0].details["kernels"] == []


@pytest.mark.filterwarnings("ignore:cxxinductor. this graph runs")
def test_a_float_in_integer_calls_falls_back(device):
    def fn(x, n):
        return torch.full((3,), n.float().item(), dtype=torch.int64, device=x.device) + x[:3].long()

    compiled = torch.compile(fn, backend="cxxinductor", fullgraph=True)
    for n in (3, -2):
        x, n = torch.randn(7, device=device), torch.tensor(n, device=device)
        assert_equal(compiled(x, n), fn(x, n))


def test_floats_saved_for_backward(device):
    def fn(x, n):
        return (x * n.float().item()).sin() * (n.float().item() + 1)

    check(fn, *[[torch.randn(7, device=device), torch.tensor(n, device=device)] for n in (3, 0, -2)], gradients=True)


def test_a_failed_assertion_leaves_inputs_alone(device):
    def fn(x, n):
        y = x.exp()
        n = n.sum().item()
        torch._check(n >= 2)
        x.add_(y)
        return y * n

    compiled = torch.compile(fn, backend="cxxinductor", fullgraph=True)
    for n in (3, 5):
        (ours, theirs), n = (torch.ones(7, device=device) for _ in range(2)), torch.tensor([n], device=device)
        assert_equal(compiled(ours, n), fn(theirs, n))
        assert_equal(ours, theirs)
    x = torch.ones(7, device=device)
    with pytest.raises(RuntimeError, match="u0 >= 2"):
        compiled(x, torch.tensor([1], device=device))
    assert_equal(x, torch.ones(7, device=device))


def test_constrained_ranges(device):
    def fn(x, n):
        n = n.sum().item()
        torch.sym_constrain_range_for_size(n, min=2, max=5)
        return torch.zeros(n, device=x.device) + x.sum()

    compiled = check(fn, *[[torch.randn(7, device=device), torch.tensor([n], device=device)] for n in (3, 2, 5)])
    for n in (1, 6):
        with pytest.raises(RuntimeError, match="u0 <= 5: u0 is 6" if n > 5 else "u0 >= 2: u0 is 1"):
            compiled(torch.randn(7, device=device), torch.tensor([n], device=device))


def test_relations_are_asserted(device):
    def fn(x, n):
        a, b = n.tolist()
        torch._check(a >= 0)
        torch._check(b >= a)
        torch._check(a + b <= x.shape[0])
        torch._check(a * 2 != b)
        return x[:a] * 2, x[:b] + 1, torch.ones(a + b, device=x.device) * 3

    compiled = check(fn, *[[torch.randn(7, device=device), torch.tensor(n, device=device)] for n in ([3, 4], [0, 7], [1, 1])])
    for n, message in {(3, 5): "u0 . u1 <= 7", (2, 1): "u1 >= u0|u0 <= u1|u0 - u1|u1 - u0", (2, 4): "Ne"}.items():
        with pytest.raises(RuntimeError, match=message):
            compiled(torch.randn(7, device=device), torch.tensor(n, device=device))


def test_without_capture_a_model_is_several_graphs(device):
    compiled = torch.compile(lambda x: (x + 1)[x > 0] * 2, backend="cxxinductor")
    for (x,) in data(3, 0, 12, device=device):
        assert_equal(compiled(x), (x + 1)[x > 0] * 2)
    assert cxxinductor.counters()["aten_fallback"] == cxxinductor.counters()["eager_fallback"] == 0


def test_sizes_of_nested_tensors_fall_back(device):
    x = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged, device=device)
    with pytest.warns(UserWarning, match="a size that differs from row to row, of a nested tensor"):
        found = torch.compile(lambda x: x * 2, backend="cxxinductor")(x)
    assert_equal(found.values(), x.values() * 2)
