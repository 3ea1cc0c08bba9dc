"""Decompositions and passes over FX graphs that users register in Python."""

import threading

import pytest
import torch
from children import run_python
from graph_extensions import calls_of, compiled, ops

import cxxinductor
from cxxinductor import UserError

aten = torch.ops.aten


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
        done = run_python(program, version, tmp_path, check=True)
        return int(done.stdout)

    assert writes("-1") > 0
    assert writes("-1") == 0
    assert writes("-2") > 0


# ---- passes --------------------------------------------------------------------------------------------------------


def neg_to_abs(graph):
    """What a program would notice."""
    for node in graph.nodes:
        if node.target is aten.neg.default:
            node.target = aten.abs.default


@pytest.mark.parametrize("when", ["inference", "forward", "joint"])
def test_a_pass_changes_the_graph_of_its_place_alone(device, register, when):
    register(cxxinductor.register_graph_pass, neg_to_abs, when=when)
    x = torch.randn(8, device=device)
    torch.testing.assert_close(compiled(lambda x: -x + 1)(x), (x.abs() if when == "inference" else -x) + 1)
    x.requires_grad_()
    torch.testing.assert_close(compiled(lambda x: (-x).exp() + 1)(x), (-x if when == "inference" else x.abs()).exp() + 1)


def test_a_pass_over_backward_graphs(device, register):
    seen = []

    def double_gradients(graph):
        seen.append(graph)
        output = graph.output_node()
        with graph.inserting_before(output):
            output.args = (tuple(graph.call_function(aten.mul.Tensor, (item, 2)) for item in output.args[0]),)

    register(cxxinductor.register_graph_pass, double_gradients, when="backward", version="1")
    x = torch.randn(8, device=device, requires_grad=True)
    compiled(lambda x: x.exp().sum())(x).backward()
    assert len(seen) == 1
    torch.testing.assert_close(x.grad, 2 * x.exp())


def test_new_nodes_get_metadata_and_outputs_keep_their_strides(device, register):
    def transposed(graph):
        """add(x, 1) as another chain of ops, whose result lies otherwise."""
        for node in graph.nodes:
            if node.target is aten.add.Tensor:
                with graph.inserting_before(node):
                    moved = graph.call_function(aten.permute.default, (node.args[0], [1, 0]))
                    dense = graph.call_function(aten.clone.default, (moved,), {"memory_format": torch.contiguous_format})
                    added = graph.call_function(aten.add.Tensor, (dense, node.args[1]))
                    back = graph.call_function(aten.permute.default, (added, [1, 0]))
                node.replace_all_uses_with(back)
                graph.erase_node(node)

    register(cxxinductor.register_graph_pass, transposed, when="inference", version="1")
    for dynamic in (False, True):
        x = torch.randn(4, 5, device=device)
        result = compiled(lambda x: x + 1, dynamic=dynamic)(x)
        assert result.stride() == (5, 1)
        torch.testing.assert_close(result, x + 1)


def raises(graph):
    raise RuntimeError("no such thing")


def swaps_outputs(graph):
    output = graph.output_node()
    output.args = (tuple(reversed(output.args[0])),)


def drops_outputs(graph):
    output = graph.output_node()
    output.args = (output.args[0][:1],)


def adds_an_input(graph):
    with graph.inserting_before(next(iter(graph.nodes))):
        graph.placeholder("more")


def uses_before_definition(graph):
    first = next(node for node in graph.nodes if node.op == "call_function")
    first.args = (list(graph.nodes)[-2], *first.args[1:])


def calls_a_python_function(graph):
    node = next(node for node in graph.nodes if node.op == "call_function")
    node.target = torch.neg
    del node.meta["val"]


def keeps_the_metadata_of_a_python_function(graph):
    next(node for node in graph.nodes if node.op == "call_function").target = torch.neg


def calls_a_packet_of_overloads(graph):
    next(node for node in graph.nodes if node.op == "call_function").target = aten.neg


def calls_a_method(graph):
    node = next(node for node in graph.nodes if node.op == "call_function")
    with graph.inserting_before(node):
        node.args = (graph.call_method("neg", (node.args[0],)), *node.args[1:])


def reads_an_attribute(graph):
    graph.owning_module.register_buffer("of_the_pass", torch.ones(8))
    node = next(node for node in graph.nodes if node.op == "call_function")
    with graph.inserting_before(node):
        node.args = (graph.get_attr("of_the_pass"), *node.args[1:])


def calls_with_garbage(graph):
    node = next(node for node in graph.nodes if node.op == "call_function")
    node.args = (node.args[0], "garbage")


def returns_garbage(graph):
    output = graph.output_node()
    output.args = (("garbage", *output.args[0][1:]),)


@pytest.mark.parametrize(
    "function, message",
    [
        (raises, "raised RuntimeError: no such thing"),
        (swaps_outputs, r"changed output 0 of the graph: expected float32\[8\].*found float32\[4\]"),
        (drops_outputs, "changed the graph's outputs: expected 2"),
        (adds_an_input, "changed the graph's inputs"),
        (uses_before_definition, "left a graph that is not valid"),
        (calls_a_python_function, r"made .*torch.neg.*expected calls of ops such as torch.ops.aten.add.Tensor"),
        (keeps_the_metadata_of_a_python_function, r"made .*torch.neg.*expected calls of ops such as torch.ops.aten.add.Tensor"),
        (calls_a_packet_of_overloads, "made .*aten.neg.*expected calls of ops such as torch.ops.aten.add.Tensor"),
        (calls_a_method, "made .*call_method.*expected calls of ops such as torch.ops.aten.add.Tensor"),
        (reads_an_attribute, "made .*of_the_pass.*expected calls of ops such as torch.ops.aten.add.Tensor"),
        (calls_with_garbage, "made a call that cannot be"),
        (returns_garbage, "changed output 0 of the graph.*found 'garbage'"),
    ],
)
def test_a_wrong_pass_is_an_error_that_names_it(device, register, function, message):
    register(cxxinductor.register_graph_pass, function, when="inference")
    with pytest.raises(Exception, match=f"(?s)pass {function.__name__} \\(inference graph\\) {message}"):
        compiled(lambda x: (x.exp() + 1, x[:4] * 2))(torch.randn(8, device=device))


def test_a_wrong_pass_over_a_backward_graph_is_an_error(device, register):
    register(cxxinductor.register_graph_pass, raises, when="backward")
    x = torch.randn(8, device=device, requires_grad=True)
    with pytest.raises(Exception, match="pass raises .backward graph. raised RuntimeError: no such thing"):
        compiled(lambda x: x.exp().sum())(x).backward()


def test_a_pass_may_call_functions_of_sizes(device, register):
    def adds_the_larger_size(graph):
        for node in list(graph.nodes):
            if node.target is aten.add.Tensor:
                with graph.inserting_before(node):
                    rows, columns = (graph.call_function(aten.sym_size.int, (node.args[0], i)) for i in range(2))
                    node.args = (node.args[0], graph.call_function(torch.sym_max, (rows, columns)))

    register(cxxinductor.register_graph_pass, adds_the_larger_size, when="inference", version="1")
    x = torch.randn(4, 5, device=device)
    torch.testing.assert_close(compiled(lambda x: x + 1, dynamic=True)(x), x + 5)


def test_a_pass_may_not_drop_what_a_graph_writes(device, register):
    def without_writes(graph):
        for node in reversed(graph.nodes):
            if node.target is aten.copy_.default:
                graph.erase_node(node)

    register(cxxinductor.register_graph_pass, without_writes, when="inference", version="1")
    with pytest.raises(Exception, match="changed which inputs the graph writes"):
        compiled(lambda x: x.add_(1).sum())(torch.randn(8, device=device))


def test_passes_that_are_refused(register):
    with pytest.raises(UserError, match="when: expected one or more of 'joint', 'forward', 'backward', 'inference', found 'eager'"):
        cxxinductor.register_graph_pass(neg_to_abs, when="eager")
    with pytest.raises(UserError, match="expected when=.*or stage="):
        cxxinductor.register_graph_pass(neg_to_abs)
    with pytest.raises(UserError, match="expected when=.*or stage="):
        cxxinductor.register_graph_pass(neg_to_abs, when="forward", stage="lower")
    with pytest.raises(UserError, match="expected one of the stages graph-passes, lower, fuse, loops-passes, found 'plan'"):
        cxxinductor.register_graph_pass(neg_to_abs, stage="plan")
    with pytest.raises(UserError, match="graph-cse is the name of a pass or stage"):
        cxxinductor.register_graph_pass(neg_to_abs, stage="lower", name="graph-cse")
    register(cxxinductor.register_graph_pass, neg_to_abs, when="inference", name="one")
    with pytest.raises(UserError, match="graph pass one is registered already"):
        cxxinductor.register_graph_pass(raises, when="inference", name="one")


def test_passes_run_in_order_once_and_until_they_are_removed(device, register):
    order = []
    first = register(cxxinductor.register_graph_pass, lambda graph: order.append("first"), when="inference", name="first", version="1")
    register(cxxinductor.register_graph_pass, lambda graph: order.append("second"), when=("inference", "forward"), name="second", version="1")
    fn, x = lambda x: x + 1, torch.randn(8, device=device)  # noqa: E731
    compiled(fn)(x)
    first.remove()
    first.remove()
    compiled(fn)(x)
    assert order == ["first", "second", "second"]


def test_registering_is_safe_in_threads(register):
    def many(number):
        for i in range(50):
            kept.append(cxxinductor.register_graph_pass(neg_to_abs, when="backward", name=f"threaded {number} {i}"))

    kept = []
    threads = [threading.Thread(target=many, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [name for name in cxxinductor.graph_passes.REGISTRY.entries() if name.startswith("threaded")]
    assert len(kept) == len(names) == 400
    for registration in kept:
        registration.remove()
    assert not [name for name in cxxinductor.graph_passes.REGISTRY.entries() if name.startswith("threaded")]


def test_explain_names_registered_ops(device):
    overload = ops.registered.default
    cxxinductor.register_op(overload, **{target: "({0} * {1})" for target in ("cuda", "cpu")})
    report = cxxinductor.explain(lambda x: ops.registered(x, 2.0) + 1, torch.randn(8, device=device))
    assert report.extensions == ["registered op graph_extension_tests.registered.default"]
