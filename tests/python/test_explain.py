"""explain(), the options explain and time, and progress on a terminal."""

import io
import re
import sys
import time

import pytest
import torch

import cxxinductor
from cxxinductor import config, progress

F = torch.nn.functional
PRODUCTS = "matrix products run in a library; as products and sums they would round each product"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.linear = torch.nn.Linear(16, 16)

    def forward(self, x):
        y = self.norm(x)
        return torch.softmax(F.gelu(self.linear(y)) + x, -1), y.sum()


def explained(fn, *inputs, **options):
    with torch.no_grad():
        return cxxinductor.explain(fn, *inputs, options=options)


@pytest.mark.step_by_step
def test_everything_is_said(device):
    model = Model().eval().to(device)
    explanation = explained(model, torch.randn(4, 16, device=device), cache="off")  # a plan from the cache has no times of its stages
    (graph,) = explanation.graphs
    kernels = {kernel["name"]: kernel for kernel in graph.details["kernels"]}
    softmax = next(kernel for name, kernel in kernels.items() if "softmax" in name)
    assert softmax["launches"] == 1 and softmax["bytes_read"] == 512 and softmax["bytes_written"] == 256
    assert [call[0] for call in softmax["calls"]] == ["aten.gelu.default", "aten.add.Tensor", "aten._softmax.default"]
    assert all(call[1] == "test_explain.py" for call in softmax["calls"])
    norm = next(kernel for kernel in kernels.values() if "aten.native_layer_norm.default" in [c[0] for c in kernel["calls"]])
    assert any(call[3] == "norm" for call in norm["calls"])
    assert graph.details["externs"] == ["aten::addmm"]
    assert graph.details["extern_reasons"] == {"aten::addmm": {PRODUCTS}}
    ((producer, consumer, reason, between),) = graph.details["missed_fusions"]
    assert (kernels[producer], kernels[consumer]) == (norm, next(k for k in kernels.values() if k not in (norm, softmax)))
    # The sum computes the norm's result again, from the mean and the deviation of each row.
    assert (reason, between) == ("the reductions run over different variables", 2 * 4 * 4)
    stages = [stage for stage, _ in graph.details["times"]]
    assert stages[0] == "read graph" and {"graph-passes", "lower", "fuse", "select-kernels", "place-memory", "compile kernels"} <= set(stages)
    passes = graph.details["pass_times"]
    names = list(passes)  # in pipeline order
    assert names.index("graph-dead-code") < names.index("graph-cse") < names.index("graph-reinplace") < names.index("loops-dead-code")
    assert stages.index("graph-passes") < stages.index("lower") < stages.index("select-kernels") < stages.index("fit-memory")
    assert sum(passes.values()) <= sum(seconds for stage, seconds in graph.details["times"] if stage.endswith("passes"))
    assert {name: count for name, count in explanation.counters.items() if count} == {"graphs": 1, "kernels": len(kernels), "extern": 1}
    text = str(explanation)
    for said in (softmax["name"], "reads 512 bytes", "fuses aten.gelu.default (test_explain.py:", "1 x aten::addmm",
                 f"aten::addmm: {PRODUCTS}",
                 f"not fused: 1 pairs with {between} bytes between them\n    {producer} -> {consumer}, {between} bytes: {reason}", " ms; slowest passes ", f"slowest passes {max(passes, key=passes.get)} ", "0 graph breaks", "aten_fallback 0 (graphs through ATen), eager_fallback 0 (graphs given back to eager)"):  # fmt: skip
        assert said in text, text
    table = text[text.index("  time: ") :].split("\n")[1:]
    rows = [match[1] for match in (re.match(r"    (\S.*?) +\d+\.\d( \(\d+ runs\))?$", line) for line in table) if match]
    named = [row for row in rows if not row.endswith(" others")]
    assert "compile kernels" in named and named == [stage for stage in stages if stage in named]


@pytest.mark.parametrize(
    "fn, reason",
    [
        (lambda x: torch.sort(x), "kernels cannot sort, search or count"),  # of an op
        (lambda x: x.sum().softmax(0), "its tensor has no dimensions"),  # of a form of an op, by its importer
        (lambda x: x.to(torch.complex64).tan(), "kernels do not compute on c64"),  # of a dtype
        (lambda x: torch.special.airy_ai(x), "no scalar op of the IRs computes it"),
    ],
)
def test_calls_have_a_reason(fn, reason):
    (graph,) = explained(fn, torch.randn(6, 8)).graphs
    assert graph.details["externs"] and {reason} in graph.details["extern_reasons"].values(), graph.details["extern_reasons"]
    assert set(graph.details["extern_reasons"]) == set(graph.details["externs"])


def test_a_custom_op_is_said_to_be_one():
    @torch.library.custom_op("cxxi_explain::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    (graph,) = explained(lambda x: twice(x) + 1, torch.randn(3)).graphs
    assert graph.details["extern_reasons"] == {"cxxi_explain::twice": {"a custom op"}}


@pytest.mark.parametrize(
    "fn, accuracy, details",
    [
        (lambda x: x.t().contiguous(), "exact", []),
        (lambda x: torch.cat([x, x.flip(1)]), "exact", []),
        (lambda x: x * 3 + 1, "bit-equal", []),
        (lambda x: x.amax(1), "exact", []),
        (lambda x: x.sum(1), "order changed", ["sum of 8 elements in f32, in another order than eager's: aten.sum"]),
        (lambda x: (x.bfloat16() * 3 + 1).float(), "bit-equal", ["rounds to bf16 where eager does: aten._to_copy"]),
    ],
)
def test_accuracy_comes_from_the_plan(fn, accuracy, details, device):
    (graph,) = explained(fn, torch.randn(6, 8, device=device)).graphs
    (kernel,) = graph.details["kernels"]
    assert kernel["accuracy"] == accuracy, kernel
    for fact in details:
        assert any(line.startswith(fact) for line in kernel["accuracy_details"]), kernel
    if not details:
        assert kernel["accuracy_details"] == []


def test_accuracy_of_functions_and_of_fast_numerics(device):
    x = torch.randn(6, 8, device=device)
    (graph,) = explained(torch.exp, x).graphs
    assert graph.details["kernels"][0]["accuracy"] == ("bit-equal" if device == "cuda" else "last bits")
    (graph,) = explained(torch.exp, x, numerics="fast").graphs
    assert graph.details["kernels"][0]["accuracy"] == "fast"


def test_graphs_that_are_not_compiled_say_why(device):
    x = torch.randn(4, device=device)
    with pytest.warns(UserWarning):
        explanation = explained(lambda x: x + 1, x, tier="aten")
    assert explanation.counters["aten_fallback"] == 1
    assert "runs op by op through ATen: the option tier=aten asks for it" in str(explanation)


def test_a_call_between_two_kernels_is_named(device):
    def fn(x):
        e = x.exp()
        return (e @ e).tanh() + e

    (graph,) = explained(fn, torch.randn(64, 64, device=device)).graphs
    ((producer, consumer, reason, between),) = graph.details["missed_fusions"]
    assert "exp" in producer and "tanh" in consumer and between == 64 * 64 * 4
    assert reason == "the call aten::mm needs the producer and is needed by the consumer"


def test_the_memory_budget_is_named(device):
    def fn(x, w):
        total = torch.zeros_like(x)
        for i in range(6):
            total = torch.tanh(total + x @ w[i])
        return total

    (graph,) = explained(fn, torch.randn(256, 256, device=device), torch.randn(6, 256, 256, device=device)).graphs
    reasons = {reason for _, _, reason, _ in graph.details["missed_fusions"]}
    assert reasons == {"the fused region would keep more bytes alive than it saves, and the plan is to hold no more than eager"}


def test_options_of_a_compiled_function_hold(device):
    model = Model().eval().to(device, torch.bfloat16).requires_grad_(False)
    x = torch.randn(4, 16, device=device)
    run = lambda x: model.linear(model.norm(x.bfloat16()).float().bfloat16())  # noqa: E731
    for compiled in (torch.compile(run, backend="cxxinductor", options={"numerics": "fast"}), torch.compile(model, backend="cxxinductor", options={"numerics": "fast"})):  # fmt: skip
        argument = x if compiled.__class__.__name__ == "function" else x.bfloat16()
        (graph,) = cxxinductor.explain(compiled, argument).graphs
        assert "fast" in [kernel["accuracy"] for kernel in graph.details["kernels"]]
        (graph,) = cxxinductor.explain(compiled, argument, options={"numerics": "eager"}).graphs
        assert "fast" not in [kernel["accuracy"] for kernel in graph.details["kernels"]]
    model.compile(backend="cxxinductor", options={"tier": "aten"})
    with pytest.warns(UserWarning):
        assert cxxinductor.explain(model, x.bfloat16()).counters["aten_fallback"] == 1


def test_dynamic_of_a_compiled_function_holds(device):
    compiled = torch.compile(lambda x: x.sin() + 1, backend="cxxinductor", dynamic=True)
    (graph,) = explained(compiled, torch.randn(5, 7, device=device)).graphs
    assert graph.compiled.output_strides() == [None], "strides of symbols"
    (graph,) = explained(lambda x: x.sin() + 1, torch.randn(5, 7, device=device)).graphs
    assert graph.compiled.output_strides() == [(7, 1)]


def test_other_backends_cannot_be_explained():
    with pytest.raises(cxxinductor.UserError, match="compiled with backend='cxxinductor'"):
        cxxinductor.explain(torch.compile(lambda x: x + 1, backend="eager"), torch.ones(3))
    with pytest.raises(cxxinductor.UserError, match="explain: found a TorchScript module"):
        cxxinductor.explain(torch.jit.script(torch.nn.Linear(3, 3)), torch.ones(3))


@pytest.mark.step_by_step
def test_what_is_compiled_stays_compiled(device):
    def fn(x):
        return torch.softmax(x * 3, -1)

    compiled, x = torch.compile(fn, backend="cxxinductor"), torch.randn(6, 8, device=device)
    compiled(x)
    for _ in range(10):  # more than Dynamo's limit of recompiles
        assert explained(compiled, x).counters["graphs"] == 1
    before = cxxinductor.counters()
    compiled(x)
    assert cxxinductor.counters() == before


def test_sizes_are_constants_after_others_were_seen(device):
    def fn(x):
        return x * 3

    for rows in (4, 6, 8):
        (graph,) = explained(fn, torch.randn(rows, 8, device=device)).graphs
        assert graph.details["kernels"][0]["bytes_read"] == rows * 8 * 4


def test_graph_breaks_have_reason_and_place(device):
    def fn(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    explanation = explained(fn, torch.randn(3, device=device))
    (found,) = explanation.breaks
    assert len(explanation.graphs) == 2
    assert (found.file, found.line, found.function) == (__file__, fn.__code__.co_firstlineno + 2, "fn")
    assert f"graph break at {__file__}:{found.line}, in fn: Call to `torch._dynamo.graph_break()`" in str(explanation)
    assert "2 graphs; 1 graph breaks" in str(explanation)


def test_a_training_step_shows_the_backward_graph(device):
    model = Model().to(device)
    x = torch.randn(4, 16, device=device)
    assert [graph.kind for graph in cxxinductor.explain(model, x).graphs] == ["forward"]

    def step():
        softmax, total = model(x)
        (softmax.square().sum() + total).backward()

    assert [graph.kind for graph in cxxinductor.explain(step).graphs] == ["forward", "backward"]


def test_memory_is_told_against_eagers(device):
    (graph,) = explained(lambda x: torch.softmax(x @ x, -1), torch.randn(64, 64, device=device)).graphs
    memory = graph.details["memory"]
    assert f"peak memory of what a call allocates: 0.02 MB (eager {memory['eager_peak'] / 1e6:.2f} MB), at least" in str(graph)


@pytest.mark.parametrize("option, said", [("explain", "k0_"), ("time", "compile kernels")])
def test_options_print_after_each_compile(option, said, capsys, device):
    torch.compile(lambda x: x * 2 + 1, backend="cxxinductor", options={option: True})(torch.randn(4, device=device))
    printed = capsys.readouterr()
    assert said in printed.err and printed.out == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watch(monkeypatch, stream, **options):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_POLL_SECONDS", 0.02)
    with progress.shown(config.resolve(options), "forward", delay=0.05):
        time.sleep(0.3)
    return stream.getvalue()


def test_progress_is_shown_on_a_terminal_alone(monkeypatch):
    pytest.importorskip("tqdm")
    assert "cxxinductor compiles the forward graph" in watch(monkeypatch, Terminal())
    assert watch(monkeypatch, io.StringIO()) == ""
    assert watch(monkeypatch, Terminal(), progress=False) == ""


def test_progress_needs_no_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert watch(monkeypatch, Terminal()) == ""


def test_progress_counts_kernels(device):
    given, done = cxxinductor._C.compile_progress()
    torch.compile(lambda x: x * 2 + 1, backend="cxxinductor")(torch.randn(4, device=device))
    assert cxxinductor._C.compile_progress() == (given + 1, done + 1)


def test_a_renamed_function_names_its_successor():
    with pytest.raises(AttributeError, match=r"cxxinductor\.finish_compiles was renamed: use cxxinductor\.wait_for_compiles"):
        cxxinductor.finish_compiles
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        cxxinductor.no_such_name
