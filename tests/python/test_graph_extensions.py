"""Decompositions that users register in Python."""

import subprocess
import sys

import pytest
import torch

import cxxinductor
from cxxinductor import UserError

aten = torch.ops.aten
LIBRARY = torch.library.Library("graph_extension_tests", "DEF")
ops = torch.ops.graph_extension_tests


def _scaled(x, factor=2.0):
    return x * factor


LIBRARY.define("scaled(Tensor x, float factor=2.0) -> Tensor")
LIBRARY.impl("scaled", _scaled, "CompositeExplicitAutograd")
torch.library.register_fake("graph_extension_tests::scaled", lambda x, factor=2.0: torch.empty_like(x), lib=LIBRARY)
torch.library.register_autograd(
    "graph_extension_tests::scaled",
    lambda ctx, grad: (ops.scaled(grad, ctx.factor), None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1] if len(inputs) > 1 else 2.0),
    lib=LIBRARY,
)


@pytest.fixture
def register(request):
    """Registers for one test."""

    def register(function, *args, **kwargs):
        registration = function(*args, **kwargs)
        request.addfinalizer(registration.remove)
        return registration

    return register


def compiled(fn, **kwargs):
    torch._dynamo.reset()
    return torch.compile(fn, backend="cxxinductor", **kwargs)


def calls_of(fn, *inputs, **kwargs):
    """The result, and how often ATen was called."""
    cxxinductor.reset_counters()
    result = compiled(fn, **kwargs)(*inputs)
    return result, cxxinductor.counters()["extern"]


# ---- decompositions ------------------------------------------------------------------------------------------------


def decompose_scaled(x, factor=2.0):
    return x * factor


def test_a_custom_op_is_decomposed(device, register):
    x = torch.randn(4, 5, device=device)
    fn = lambda x: ops.scaled(x + 1, 3.0) * 2  # noqa: E731
    assert calls_of(fn, x)[1] == 1
    register(cxxinductor.register_decomposition, ops.scaled.default, decompose_scaled)
    result, calls = calls_of(fn, x)
    assert calls == 0
    torch.testing.assert_close(result, fn(x))


def test_a_decomposition_holds_in_training_and_for_sizes_that_are_symbols(device, register):
    register(cxxinductor.register_decomposition, ops.scaled.default, decompose_scaled)
    fn = compiled(lambda x: (ops.scaled(x, 3.0).exp() * 2).sum(), dynamic=True)
    for n in (3, 8):
        x = torch.randn(n, 5, device=device, requires_grad=True)
        cxxinductor.reset_counters()
        fn(x).backward()
        cxxinductor.wait_for_compiles()
        assert cxxinductor.counters()["extern"] == 0
        torch.testing.assert_close(x.grad, 6 * (3 * x).exp())


def test_a_decomposition_under_autocast(device, register):
    register(cxxinductor.register_decomposition, ops.scaled.default, decompose_scaled)
    w = torch.randn(8, 8, device=device)

    def fn(x):
        with torch.autocast(device, dtype=torch.bfloat16):
            return ops.scaled(x @ w, 3.0)

    x = torch.randn(4, 8, device=device)
    result = compiled(fn)(x)
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result, fn(x), rtol=2e-2, atol=1e-1)


def test_an_op_of_pytorch_that_is_imported_whole_may_be_decomposed(device, register):
    register(cxxinductor.register_decomposition, aten.silu.default, lambda x: x * torch.sigmoid(x), version="1")
    x = torch.randn(100, device=device)
    report = cxxinductor.explain(lambda x: torch.nn.functional.silu(x), x)
    assert [line for line in report.extensions if line.startswith("decomposition <lambda> of aten.silu")]
    assert "extension: decomposition <lambda> of aten.silu" in str(report)
    assert "sigmoid" in str(report.graphs[0].details["kernels"])


def test_results_of_a_decomposition_lie_as_those_of_the_op(device, register):
    register(cxxinductor.register_decomposition, ops.scaled.default, lambda x, factor=2.0: (x.transpose(0, 1) * factor).contiguous().transpose(0, 1), version="1")
    x = torch.randn(4, 5, device=device)
    result = compiled(lambda x: ops.scaled(x))(x)
    assert result.stride() == (5, 1)
    torch.testing.assert_close(result, x * 2)


def test_a_decomposition_may_leave_a_call(device, register):
    register(cxxinductor.register_decomposition, ops.scaled.default, lambda x, factor=2.0: NotImplemented if factor == 2.0 else x * factor, version="1")
    x = torch.randn(4, device=device)
    assert calls_of(lambda x: ops.scaled(x), x)[1] == 1
    assert calls_of(lambda x: ops.scaled(x, 3.0), x)[1] == 0


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x, factor=2.0: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda x, factor=2.0: x.double(), r"expected float32\[4\] on \w+(:0)?, as the op returns it, found float64\[4\]"),
        (lambda x, factor=2.0: x.sum(), r"expected float32\[4\].*found float32\[\]"),
        (lambda x, factor=2.0: (x, x), "expected 1 results|as the op returns it, found"),
        (lambda x, factor=2.0: "text", "as the op returns it, found 'text'"),
        (lambda x: x, "raised TypeError"),
    ],
)
def test_a_wrong_decomposition_is_an_error_that_names_it(device, register, function, message):
    register(cxxinductor.register_decomposition, ops.scaled.default, function, version="1")
    with pytest.raises(Exception, match=f"(?s)the decomposition <lambda> of graph_extension_tests.scaled.default.*({message})"):
        compiled(lambda x: ops.scaled(x, 3.0))(torch.randn(4, device=device))


def test_decompositions_that_are_refused(register):
    with pytest.raises(UserError, match="expected an overload"):
        cxxinductor.register_decomposition(ops.scaled, decompose_scaled)
    with pytest.raises(UserError, match="PyTorch itself takes aten.linear.default apart"):
        cxxinductor.register_decomposition(aten.linear.default, decompose_scaled)
    with pytest.raises(UserError, match="writes into its arguments"):
        cxxinductor.register_decomposition(aten.add_.Tensor, decompose_scaled)
    with pytest.raises(UserError, match="returns a view"):
        cxxinductor.register_decomposition(aten.view.default, decompose_scaled)
    with pytest.raises(UserError, match="is a lambda.*give version="):
        cxxinductor.register_decomposition(ops.scaled.default, lambda x: x)
    two = 2
    def with_closure(x, factor=2.0):  # fmt: skip
        return x * two
    with pytest.raises(UserError, match="reads variables of the function around it"):
        cxxinductor.register_decomposition(ops.scaled.default, with_closure)
    with pytest.raises(UserError, match="is not a plain function"):
        cxxinductor.register_decomposition(ops.scaled.default, torch.neg)
    with pytest.raises(UserError, match="expected a function, found 3"):
        cxxinductor.register_decomposition(ops.scaled.default, 3)
    register(cxxinductor.register_decomposition, ops.scaled.default, decompose_scaled)
    cxxinductor.register_decomposition(ops.scaled.default, decompose_scaled)  # the same again
    with pytest.raises(UserError, match="registered already.*remove"):
        cxxinductor.register_decomposition(ops.scaled.default, decompose_scaled, version="2")


def test_a_changed_version_compiles_anew(tmp_path):
    """In processes with one cache of AOTAutograd's results: another version is another key."""
    program = """
import sys, torch, cxxinductor
def neg(x):
    return x * float(sys.argv[1])
cxxinductor.register_decomposition(torch.ops.aten.neg.default, neg, version=sys.argv[1])
x = torch.arange(10.0)
with torch.no_grad():
    result = torch.compile(lambda x: -x + 1, backend="cxxinductor", options={"cache_dir": sys.argv[2]})(x)
torch.testing.assert_close(result, x * float(sys.argv[1]) + 1)
print(cxxinductor.counters()["cache_writes"])
"""

    def writes(version):
        done = subprocess.run([sys.executable, "-c", program, version, str(tmp_path)], check=True, capture_output=True, text=True)
        return int(done.stdout)

    assert writes("-1") > 0
    assert writes("-1") == 0
    assert writes("-2") > 0


def test_explain_names_registered_ops(device):
    overload = ops.scaled.default
    cxxinductor.register_op(overload, **{target: "({0} * {1})" for target in ("cuda", "cpu")})
    report = cxxinductor.explain(lambda x: ops.scaled(x, 2.0) + 1, torch.randn(8, device=device))
    assert report.extensions == ["registered op graph_extension_tests.scaled.default"]
