"""Matrix products as kernels of ours: shapes, alignments, layouts and epilogues, against eager, and what the option chooses."""

import pytest
import torch
import torch.nn.functional as F
from compare import assert_as_good_as_eager, double_copy, to_double

from cxxinductor import reports

SHAPES = [(512, 512, 512), (1024, 1024, 1024), (256, 768, 3072), (77, 1000, 264), (333, 136, 40), (64, 48, 2048), (2048, 64, 128),
          (129, 257, 520), (16, 16, 16), (1000, 24, 8000)]
DTYPES = [torch.bfloat16, torch.float16]
EPILOGUES = {
    "none": lambda y, b, r: y,
    "bias_gelu": lambda y, b, r: F.gelu(y + b),
    "bias_residual": lambda y, b, r: y + b + r,
    "tanh_gelu_times_residual": lambda y, b, r: F.gelu(y + b, approximate="tanh") * r,
    "two_outputs": lambda y, b, r: (F.relu(y), y * r),
    "f32_output": lambda y, b, r: y.float() * 0.5 + r,
    "column_sum_apart": lambda y, b, r: (F.silu(y + b)).float().sum(0),
    "turned_output": lambda y, b, r: (y + r).t().contiguous(),
}
LAYOUTS = {
    "rows_rows": lambda a, b: (a, b),
    "rows_columns": lambda a, b: (a, b.t().contiguous().t()),
    "columns_rows": lambda a, b: (a.t().contiguous().t(), b),
    "columns_columns": lambda a, b: (a.t().contiguous().t(), b.t().contiguous().t()),
    "slices": lambda a, b: (torch.cat([a, a], 1)[:, : a.shape[1]], torch.cat([b, b], 1)[:, : b.shape[1]]),
}


def matrices(m, n, k, dtype, device):
    a, b = torch.randn(m, k, device=device, dtype=dtype), torch.randn(k, n, device=device, dtype=dtype) * k**-0.5
    return a, b, torch.randn(n, device=device, dtype=dtype), torch.randn(m, n, device=device, dtype=dtype)


def library_calls(fn, *args, how):
    """How many products of the compiled function are the library's; its results must be as good as eager's."""
    with reports.collect() as graphs:
        actual = torch.compile(fn, backend="cxxinductor", options={"epilogue_fusion": how}, dynamic=False)(*args)
    assert_as_good_as_eager(actual, fn(*args), fn(*to_double(args)))
    assert all(not graph.details["fallback_reason"] for graph in graphs)
    return sum("mm" in callee for graph in graphs for callee in graph.details["externs"])


@pytest.mark.parametrize("how", ["always", "auto", "never"])
def test_values_that_the_option_takes(how, device):
    a, b, c, r = matrices(64, 48, 32, torch.bfloat16, device)
    found = library_calls(lambda a, b, r: torch.mm(a, b) + r, a, b, r, how=how)
    if how == "never" or device == "cpu":
        assert found == 1
    elif how == "always":
        assert found == 0


def test_other_values_are_refused(device):
    a, b, c, r = matrices(64, 48, 32, torch.bfloat16, device)
    with pytest.raises(Exception, match="epilogue_fusion.*always"):
        torch.compile(torch.mm, backend="cxxinductor", options={"epilogue_fusion": "sometimes"})(a, b)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_epilogues(epilogue, dtype, device):
    fn = EPILOGUES[epilogue]
    problems = [matrices(m, n, k, dtype, device) for m, n, k in SHAPES]
    found = library_calls(lambda problems: [fn(torch.mm(a, b), c, r) for a, b, c, r in problems], problems, how="always")
    assert found <= sum(n % 8 != 0 or k % 8 != 0 for m, n, k in SHAPES)


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, device):
    problems = []
    for m, n, k in SHAPES:
        a, b, c, r = matrices((m + 7) // 8 * 8, (n + 7) // 8 * 8, k, torch.bfloat16, device)
        problems.append((*LAYOUTS[layout](a, b), r[:, :1]))
    assert library_calls(lambda problems: [F.relu(torch.mm(a, b)) + r for a, b, r in problems], problems, how="always") == 0


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_linear_layers_in_three_dimensions(dtype, device):
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 264)).to(device, dtype)
    x = torch.randn(4, 96, 256, device=device, dtype=dtype)
    double = double_copy(model)
    with torch.no_grad():
        actual = torch.compile(model, backend="cxxinductor", options={"epilogue_fusion": "always"})(x)
        assert_as_good_as_eager(actual, model(x), double(x.double()))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_batches(dtype, device):
    q, k = (torch.randn(6, 100, 64, device=device, dtype=dtype) for _ in range(2))
    mask = torch.randn(6, 100, 100, device=device, dtype=dtype)
    assert library_calls(lambda q, k, mask: torch.bmm(q, k.transpose(1, 2)) * 0.125 + mask, q, k, mask, how="always") == 0
    c = torch.randn(6, 100, 104, device=device, dtype=dtype)
    v = torch.randn(6, 64, 104, device=device, dtype=dtype)
    assert library_calls(lambda c, q, v: F.relu(torch.baddbmm(c, q, v)), c, q, v, how="always") == 0


@pytest.mark.gpu
def test_pointers_that_are_not_aligned(device):
    """The kernel's other variant: one that a guard on alignment chooses at the call."""
    flat = torch.randn(64 * 64 + 1, device=device, dtype=torch.bfloat16)
    b, r = torch.randn(64, 64, device=device, dtype=torch.bfloat16), torch.randn(64, 64, device=device, dtype=torch.bfloat16)
    fn = torch.compile(lambda a, b, r: torch.mm(a, b) + r, backend="cxxinductor", options={"epilogue_fusion": "always"})
    for a in (flat[:-1].view(64, 64), flat[1:].view(64, 64)):
        assert_as_good_as_eager(fn(a, b, r), torch.mm(a, b) + r, torch.mm(a.double(), b.double()) + r.double())


@pytest.mark.gpu
def test_every_number_of_rows_through_one_kernel(device):
    b, c = torch.randn(128, 64, device=device, dtype=torch.bfloat16) * 0.1, torch.randn(64, device=device, dtype=torch.bfloat16)
    fn = torch.compile(lambda a: F.gelu(torch.mm(a, b) + c), backend="cxxinductor", dynamic=True, options={"epilogue_fusion": "always"})
    for rows in (2, 3, 17, 64, 65, 1000, 4099):
        a = torch.randn(rows, 128, device=device, dtype=torch.bfloat16)
        assert_as_good_as_eager(fn(a), F.gelu(torch.mm(a, b) + c), F.gelu(torch.mm(a.double(), b.double()) + c.double()))


@pytest.mark.gpu
def test_infinities_and_nan_stay_where_they_are(device):
    a, b, c, r = matrices(96, 64, 72, torch.bfloat16, device)
    a[3, 5], a[40, 71], b[9, 60] = float("inf"), float("nan"), float("-inf")
    library_calls(lambda a, b, r: torch.mm(a, b) * 2 + r, a, b, r, how="always")


@pytest.mark.gpu
def test_gradients_through_products(device):
    x = torch.randn(96, 64, device=device, dtype=torch.bfloat16, requires_grad=True)
    w = (torch.randn(64, 128, device=device, dtype=torch.bfloat16) * 0.1).requires_grad_()
    c = torch.randn(128, device=device, dtype=torch.bfloat16, requires_grad=True)

    def grads(fn, *args):
        args = [a.detach().requires_grad_() for a in args]
        fn(*args).float().square().sum().backward()
        return [a.grad for a in args]

    def step(x, w, c):
        return F.gelu(torch.addmm(c, x, w))

    actual = grads(torch.compile(step, backend="cxxinductor", options={"epilogue_fusion": "always"}), x, w, c)
    assert_as_good_as_eager(actual, grads(step, x, w, c), grads(step, *(a.double() for a in (x, w, c))))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows, columns", [(4099, 30001), (4096, 30002), (4096, 30004), (5, 12_000_001)])
def test_rows_of_the_result_alone_are_unaligned(rows, columns, dtype, device):
    """Several products of the library, whose rows are aligned, in place of one."""
    depth = 1024 if rows > 8 else 400
    x, w = torch.randn(rows, depth, device=device, dtype=dtype), torch.randn(columns, depth, device=device, dtype=dtype)
    compiled = torch.compile(torch.mm, backend="cxxinductor", options={"epilogue_fusion": "never"}, dynamic=False)
    compiled(x, w.t())
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        found = compiled(x, w.t())
    calls = sum(event.name == "aten::mm" for event in profile.events())
    assert calls == 2 + min(rows, {1: 8, 2: 4, 4: 2}[columns & -columns & 7])
    for part in range(0, columns, 10_000):  # all of it in doubles would take gigabytes
        exact = x.double() @ w[part : part + 10_000].t().double()
        error = (found[:, part : part + 10_000] - exact).abs().max()
        assert error <= 2 * (torch.mm(x, w[part : part + 10_000].t()) - exact).abs().max() + 1e-3
