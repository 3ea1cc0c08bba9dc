"""Exported programs through cxxinductor.load, as they were written and decomposed: right, and compiled whole.

model_zoo.py runs all programs, and models.
"""

import exported_ops  # noqa: F401  (more programs)
import pytest
import torch
from exported_programs import NOTES, PROGRAMS
from run_program import exported, run_program
from torch.utils._pytree import tree_leaves

import cxxinductor

QUICK = (
    "cond", "cond_of_sizes", "nested_cond", "loop", "loop_of_dynamic_rows", "scan_cells", "mapped_rows", "autocast", "no_grad", "divided_sizes",
    "sizes_that_decide", "integers_from_tensors", "buffer_updates", "tied_weights", "nested_arguments", "custom_op_that_writes",
    "custom_op_that_writes_an_argument", "rotary_of_complex",
)  # fmt: skip


@pytest.mark.parametrize("decomposed", [False, True], ids=["as_written", "decomposed"])
@pytest.mark.parametrize("name", QUICK)
def test_program(name, decomposed):
    torch.manual_seed(0)
    outcome = run_program(PROGRAMS[name](), decomposed=decomposed)
    assert outcome.error == ""
    assert outcome.fallback == ""
    assert outcome.kernels > 0


def test_subgraphs_are_compiled():
    outcome = run_program(PROGRAMS["loop"]())
    assert outcome.graphs == 3
    assert "subgraph @while_loop_cond_graph_0" in outcome.explanation
    assert "subgraph @while_loop_body_graph_0" in outcome.explanation


def test_sizes_that_decide_have_a_form_each():
    outcome = run_program(PROGRAMS["sizes_that_decide"]())
    forms = [line for line in outcome.explanation.splitlines() if " where " in line and line.startswith("model ")]
    assert len(forms) >= 3 and len(set(forms)) == len(forms)
    assert outcome.graphs == len(forms)


def test_a_package_has_the_form_of_one_outcome(tmp_path):
    """Others are compiled when their sizes come."""
    given = PROGRAMS["sizes_that_decide"]()
    calls = [(given.args, given.kwargs), *((args, {}) for args in given.others)]
    cxxinductor.package(exported(given, False), tmp_path / "model.cxxi")
    model = cxxinductor.load(tmp_path / "model.cxxi", options={"trust": True})
    for args, kwargs in calls * 2:
        found, expected = model.run(*args, **kwargs), given.module(*args, **kwargs)
        for a, b in zip(tree_leaves(found), tree_leaves(expected), strict=True):
            torch.testing.assert_close(a, b)
    forms = [line for line in model.explain().splitlines() if " where " in line and line.startswith("model ")]
    assert len(forms) >= 3 and len(set(forms)) == len(forms)


class WritesBoth(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(3))

    def forward(self, x, y):
        x.add_(1)
        y.mul_(2)
        self.b.add_(1)
        return x + y * self.b


@pytest.mark.parametrize("packaged", [False, True], ids=["file", "package"])
def test_inputs_that_share_memory(tmp_path, packaged):
    path = tmp_path / "model"
    program = torch.export.export(WritesBoth(), (torch.ones(3), torch.ones(3)))
    cxxinductor.package(program, path) if packaged else torch.export.save(program, path)
    model, eager = cxxinductor.load(path), program.module()
    for make in (lambda m: (m[:3], m[3:6]), lambda m: (m[:3], m[:3]), lambda m: (m[:3], m[2:5])):
        found, expected = torch.arange(8.0), torch.arange(8.0)
        torch.testing.assert_close(model.run(*make(found.split(8)[0])), eager(*make(expected.split(8)[0])))
        torch.testing.assert_close(found, expected)
    torch.testing.assert_close(model.run(model.weight("b"), torch.ones(3)), eager(eager.b, torch.ones(3)))


class TiedAndCounting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = torch.nn.Embedding(5, 8), torch.nn.Linear(8, 5, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, tokens):
        self.calls.add_(1)
        return torch.relu(self.head(torch.tanh(self.words(tokens)))) * self.calls


def test_weights_that_share_memory_stay_compiled(tmp_path):
    """Writes to another input are no reason to run op by op."""
    tokens = torch.arange(5)
    torch.export.save(torch.export.export(TiedAndCounting(), (tokens,)), tmp_path / "model.pt2")
    model = cxxinductor.load(tmp_path / "model.pt2")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        model.run(tokens)
    names = {event.name for event in profile.events()}
    assert not names & {"aten::relu", "aten::tanh"}, names


class Scattered(torch.nn.Module):
    def forward(self, x, i, s):
        return x.index_add(0, i, s)


@pytest.mark.parametrize("packaged", [False, True], ids=["file", "package"])
def test_deterministic_algorithms_have_a_form_of_their_own(device, tmp_path, packaged):
    """Whoever asks for them after loading gets them, and loses them again."""
    x, s, i = torch.randn(8, 64, device=device), torch.randn(4096, 64, device=device), torch.randint(8, (4096,), device=device)
    path = tmp_path / "model"
    program = torch.export.export(Scattered(), (x, i, s))
    cxxinductor.package(program, path) if packaged else torch.export.save(program, path)
    model = cxxinductor.load(path, options={"trust": packaged})
    expected = Scattered()(x, i, s)
    for deterministic in (False, True, False, True):
        torch.use_deterministic_algorithms(deterministic)
        try:
            torch.testing.assert_close(model.run(x, i, s), expected, rtol=1e-4, atol=1e-3)
            if deterministic:
                assert torch.equal(model.run(x, i, s), model.run(x, i, s))
        finally:
            torch.use_deterministic_algorithms(False)
    titles = [line for line in model.explain().splitlines() if line.startswith("model ")]
    assert [("algorithms are deterministic" in title) for title in titles] == [False, True]


class Halved(torch.nn.Module):
    def forward(self, x):
        return x / 2, torch.zeros(3)


@pytest.mark.parametrize("exported_under", [torch.float32, torch.float64])
def test_the_default_dtype_of_a_call_counts(tmp_path, exported_under):
    """As in eager, whatever it was when the model was exported or loaded."""
    x, path = torch.arange(5), tmp_path / "model.pt2"
    models = []
    try:
        torch.set_default_dtype(exported_under)
        torch.export.save(torch.export.export(Halved(), (x,)), path)
        for loaded_under in (torch.float32, torch.float64):
            torch.set_default_dtype(loaded_under)
            models.append(cxxinductor.load(path))
        for model in models * 2:
            for dtype in (torch.float32, torch.float64):
                torch.set_default_dtype(dtype)
                for found, expected in zip(model.run(x), Halved()(x), strict=True):
                    assert found.dtype == expected.dtype and torch.equal(found, expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_uncompiled_calls_are_the_same():
    for name in ("cond_of_sizes", "loop", "scan_cells", "mapped_rows", "autocast", "custom_op_that_writes", "divided_sizes"):
        torch.manual_seed(0)
        outcome = run_program(PROGRAMS[name](), options={"tier": "aten"})
        assert outcome.error == "" and outcome.kernels == 0, name


def test_ops_in_subgraphs_have_to_be_allowed():
    from exported_programs import Function, Program, custom_in_a_branch

    given = Program(Function(custom_in_a_branch), (torch.ones(3, 4),))
    outcome = run_program(given)
    assert "UserError" in outcome.error and "exported_programs::scale" in outcome.error and "allow_ops" in outcome.error
    given.options = {"allow_ops": "exported_programs"}
    assert run_program(given).error == ""


def test_sizes_are_checked_against_what_follows_from_them(tmp_path):
    program = PROGRAMS["divided_sizes"]()
    file = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(program.module, program.args, dynamic_shapes=program.dynamic_shapes), file)
    model = cxxinductor.load(file)
    with pytest.raises(cxxinductor.UserError, match="size"):
        model.run(torch.randn(10, 6))


@pytest.mark.parametrize("decomposed", [False, True], ids=["as_written", "decomposed"])
def test_effects_keep_their_order(decomposed):
    NOTES.clear()
    assert run_program(PROGRAMS["effects"](), decomposed=decomposed).error == ""
    numbers = [number for number, _ in NOTES]
    assert numbers[-3:] == [1, 2, 3] and NOTES[-3:] == NOTES[-6:-3]  # of eager, then of the loaded model
