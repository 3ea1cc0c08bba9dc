"""Extensions that users get wrong, or change while graphs are compiled: results stay eager's, or an error names the extension."""

import functools
import os
import subprocess
import sys

import pytest
import torch

import cxxinductor
from cxxinductor import UserError
from cxxinductor.registry import identity_of

aten = torch.ops.aten
LIBRARY = torch.library.Library("extension_fault_tests", "DEF")
LIBRARY.define("ident(Tensor x) -> Tensor")
LIBRARY.impl("ident", lambda x: x.clone(), "CompositeExplicitAutograd")
torch.library.register_fake("extension_fault_tests::ident", torch.empty_like, lib=LIBRARY)
ident = torch.ops.extension_fault_tests.ident.default


def compiled(fn, **kwargs):
    torch._dynamo.reset()
    return torch.compile(fn, backend="cxxinductor", **kwargs)


# ---- decompositions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x.view(-1).view_as(x)], ids=["itself", "view"])
def test_results_of_a_decomposition_have_memory_of_their_own(register, device, function):
    register(cxxinductor.register_decomposition, ident, function, version="1")

    def accumulate(s):
        old = ident(s)
        s.add_(1)
        return old

    state = torch.zeros(3, device=device)
    assert compiled(accumulate)(state).tolist() == [0, 0, 0] and state.tolist() == [1, 1, 1]
    a, b = compiled(lambda x: (lambda h: (h, ident(h)))(x * 2))(torch.ones(3, device=device))
    a.zero_()
    assert b.tolist() == [2, 2, 2]


def test_a_decomposition_that_calls_its_op_again_and_again_is_named(register):
    register(cxxinductor.register_decomposition, ident, lambda x: ident(x * 1), version="2")
    with pytest.raises(Exception, match="calls extension_fault_tests.ident.default again and again: return NotImplemented"):
        compiled(lambda x: ident(x) + 1)(torch.ones(3))


# ---- identities ----------------------------------------------------------------------------------------------------

FACTOR = 2.0
TABLE = [1.0]


def make(k):
    def double(x, k=k):
        return x * k

    return double


def read_global(x):
    return x * FACTOR


def read_table(x):
    return x * TABLE[0]


def test_identities_contain_defaults_and_constants(monkeypatch):
    assert identity_of(make(2), "", "f") == identity_of(make(2), "", "f") != identity_of(make(3), "", "f")
    before = identity_of(read_global, "", "f")
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert identity_of(read_global, "", "f") != before
    with pytest.raises(UserError, match="reads the global TABLE, a list.*give version="):
        identity_of(read_table, "", "f")
    with pytest.raises(UserError, match="reads the default k, a Tensor"):
        identity_of(make(torch.ones(1)), "", "f")
    wrapped = functools.wraps(read_global)(make(2))
    assert identity_of(wrapped, "", "f").split()[1] != identity_of(functools.wraps(read_global)(make(3)), "", "f").split()[1]


READS_A_SET = """
from cxxinductor.registry import identity_of

NAMES = frozenset({"relu", "gelu", "silu"})

def reads_a_set(graph):
    return [node for node in graph.nodes if node.name in {"sin", "cos", "tan"} or node.name in NAMES]

print(identity_of(reads_a_set, "", "f"))
"""


def test_identities_are_the_same_in_every_process():
    runs = [
        subprocess.run([sys.executable, "-c", READS_A_SET], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != ""


def replace_target(graph, op, to):
    for node in graph.nodes:
        if node.target is op:
            node.target = to


def test_other_callables_are_not_taken_for_the_same(register):
    first = functools.partial(replace_target, op=aten.sin.default, to=aten.cos.default)
    register(cxxinductor.register_graph_pass, first, when="inference", version="1")
    register(cxxinductor.register_graph_pass, first, when="inference", version="1")
    with pytest.raises(UserError, match="registered already"):
        cxxinductor.register_graph_pass(functools.partial(replace_target, op=aten.exp.default, to=aten.tanh.default), when="inference", version="1")


# ---- changes while a graph is compiled -----------------------------------------------------------------------------


def test_a_compile_uses_what_was_registered_when_it_began(register, device):
    def negate(graph):
        replace_target(graph, aten.exp.default, aten.neg.default)

    def remove_the_next(graph):
        registration.remove()

    register(cxxinductor.register_graph_pass, remove_the_next, when="inference", version="1")
    registration = register(cxxinductor.register_graph_pass, negate, when="inference")
    x = torch.randn(4, device=device)
    torch.testing.assert_close(compiled(lambda x: x.exp() + 1)(x), -x + 1)
    torch.testing.assert_close(compiled(lambda x: x.exp() + 1)(x), x.exp() + 1)


def test_a_text_pass_that_is_removed_still_serves_the_compiles_that_began(register, device):
    def first(text):
        registration.remove()
        return text

    def negate(text):
        return text.replace("= exp(", "= neg(")

    register(cxxinductor.register_graph_pass, first, stage="graph-passes", version="1")
    registration = register(cxxinductor.register_graph_pass, negate, stage="graph-passes")
    x = torch.randn(4, device=device)
    torch.testing.assert_close(compiled(lambda x: x.exp() + 1, options={"cache": "off"})(x), -x + 1)
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.parametrize("function", [lambda text: text + "\ud800", lambda text: (_ for _ in ()).throw(Unprintable())], ids=["surrogate", "unprintable"])
def test_a_text_pass_whose_answer_is_no_text_serves_on(register, device, function):
    registration = register(cxxinductor.register_graph_pass, function, stage="graph-passes", version="1", name="wrong")
    x = torch.randn(4, device=device)
    with pytest.warns(UserWarning, match="raised: (UnicodeEncodeError|Unprintable)"):
        torch.testing.assert_close(compiled(lambda x: x.exp() + 1, options={"cache": "off"})(x), x.exp() + 1)
    registration.remove()
    cxxinductor.reset_counters()
    register(cxxinductor.register_graph_pass, lambda text: text, stage="graph-passes", version="1", name="same")
    torch.testing.assert_close(compiled(lambda x: x.exp() + 2, options={"cache": "off"})(x), x.exp() + 2)
    assert cxxinductor.counters()["aten_fallback"] == 0


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError


def test_a_refused_name_leaves_the_pass_that_has_it(register, device):
    def negate(text):
        return text.replace("= exp(", "= neg(")

    register(cxxinductor.register_graph_pass, negate, stage="graph-passes")
    with pytest.raises(UserError):
        cxxinductor.register_graph_pass(negate, stage="fuse")
    x = torch.randn(4, device=device)
    torch.testing.assert_close(compiled(lambda x: x.exp() + 1, options={"cache": "off"})(x), -x + 1)


# ---- passes --------------------------------------------------------------------------------------------------------


def test_a_literal_of_another_type_is_a_change(register, device):
    def to_real(graph):
        for node in graph.nodes:
            if node.target is aten.mul.Tensor:
                node.args = (node.args[0], 2.0)

    register(cxxinductor.register_graph_pass, to_real, when="inference")
    with pytest.raises(Exception, match=r"(?s)pass to_real \(inference graph\) changed output 0 of the graph: expected int64"):
        compiled(lambda x: x * 2)(torch.arange(5, device=device))


def test_a_write_through_a_view_is_noticed(register, device):
    register(cxxinductor.register_graph_pass, functools.partial(replace_target, op=aten.relu.default, to=aten.relu_.default), when="inference", version="1", name="in_place")
    x = torch.randn(3, 4, device=device)
    with pytest.raises(Exception, match="pass in_place .* changed which inputs the graph writes"):
        compiled(lambda x: x.t().relu() + 1)(x)


def test_what_an_op_reads_is_no_write(register, device):
    def times_one(x):
        return x * 1.0

    register(cxxinductor.register_pattern, times_one, lambda x: x, [torch.empty(3)], version="1", name="times_one")
    a, b = torch.zeros(3, device=device), torch.randn(3, device=device)
    torch.testing.assert_close(compiled(lambda a, b: (torch.mul(b, 1.0, out=a), b + 1)[1])(a, b), b + 1)
    torch.testing.assert_close(a, b)


def test_a_pass_without_an_output_is_named(register, device):
    register(cxxinductor.register_graph_pass, lambda graph: graph.erase_node(graph.output_node()), when="inference", version="1", name="no_output")
    with pytest.raises(Exception, match="pass no_output .* left a graph that is not valid"):
        compiled(lambda x: x + 1)(torch.randn(3, device=device))


# ---- patterns ------------------------------------------------------------------------------------------------------


def test_a_replacement_that_reads_sizes_is_for_these_sizes_alone(register, device):
    def mean(x):
        return x.cos().mean()

    def by_sum(x):
        return x.cos().sum() / x.numel()

    register(cxxinductor.register_pattern, mean, by_sum, [torch.empty(3)])
    for shape, replaced in ((3,), "1 replaced"), ((4, 8), "0 replaced, 1 left"):
        x = torch.randn(shape, device=device)
        report = cxxinductor.explain(lambda x: x.cos().mean() + 1, x)
        assert any(replaced in line for line in report.extensions) or replaced.startswith("0"), report.extensions
        torch.testing.assert_close(compiled(lambda x: x.cos().mean() + 1)(x), x.cos().mean() + 1)


def test_a_pattern_of_several_results_needs_them_all(register, device):
    def both(x):
        h = x * 2.0
        return h.sin(), h.cos()

    def by_sum(x):
        h = x + x
        return h.sin(), h.cos()

    register(cxxinductor.register_pattern, both, by_sum, [torch.empty(2)])
    x = torch.randn(4, device=device)
    torch.testing.assert_close(compiled(lambda x: (x * 2.0).sin() + 1)(x), (x * 2).sin() + 1)
    torch.testing.assert_close(compiled(lambda x: ((x * 2.0).sin() + 1, (x * 2.0).cos()))(x), ((x * 2).sin() + 1, (x * 2).cos()))


def test_a_result_twice_is_refused():
    def twice(x):
        s = x.sin()
        return s, s.contiguous(), x.cos()

    with pytest.raises(UserError, match="returns one result twice"):
        cxxinductor.register_pattern(twice, lambda x: (x.sin(), x.sin(), x.cos()), [torch.empty(3)], version="1")


def test_a_number_does_not_stand_for_a_tensor(register, device):
    def square(x, y):
        return (x - y) * (x - y)

    def power(x, y):
        return torch.pow(x - y, 2)

    register(cxxinductor.register_pattern, square, power, [torch.empty(3), torch.empty(3)], check=lambda x, y: y.shape[-1] >= 4, version="1", name="square")
    x = torch.randn(4, device=device)
    torch.testing.assert_close(compiled(lambda x: (x - 1) * (x - 1))(x), (x - 1) ** 2)
