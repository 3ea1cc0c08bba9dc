"""Exported programs through cxxinductor.load, as they were written and decomposed: right, and compiled whole.

model_zoo.py runs all programs, and models.
"""

import exported_ops  # noqa: F401  (more programs)
import pytest
import torch
from exported_programs import NOTES, PROGRAMS
from run_program import run_program

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
