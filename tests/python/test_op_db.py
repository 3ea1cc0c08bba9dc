"""A sample of torch's operators against eager, a dtype each; `python -m op_db` runs all. OP_DB_SAMPLES=n: n samples in every dtype and form."""

import logging
import os

import pytest
import torch
from op_db.calls import Call, calls, dtypes, forms, operators
from op_db.known import KNOWN, known
from op_db.program import programs
from op_db.run import Finding
from op_db.sweep import sweep

SAMPLES = int(os.environ.get("OP_DB_SAMPLES", 0))
A_GRAPH = 32  # calls: enough that compiling a call costs little, few enough that a failure is found among them soon
QUICK_GRAPHS = 8


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def failures(chosen: list[Call], size: int) -> list[str]:
    found = []
    for program in programs(chosen, size):
        for result in sweep(program):
            finding, call = result.finding, result.calls[0]
            if finding.sort and not result.is_traced_so and not known(call, finding):
                found.append(f"{finding.sort}: {', '.join(map(str, result.calls))}: {finding.text}")
    return found


def quick_calls(position: int, device: str) -> list[Call]:
    """One of each operator, whose dtype, form and sample go through all there are from operator to operator."""
    found = []
    for number, (name, op) in enumerate(operators().items()):
        if number % QUICK_GRAPHS != position or any(name in entry.operators for entry in KNOWN):
            continue
        kinds = [(dtype, form) for dtype in dtypes(op, device) for form in forms(op, dtype, device)]
        for attempt in range(min(3, len(kinds))):
            dtype, form = kinds[(7 * (number // QUICK_GRAPHS) + attempt) % len(kinds)]
            if chosen := calls(op, dtype, device, form, 1 + number % 5):
                found.append(chosen[-1])
                break
    return found


@pytest.mark.parametrize("position", range(QUICK_GRAPHS))
def test_a_call_of_each_operator(position, device):
    found = failures(quick_calls(position, device), A_GRAPH)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.skipif(not SAMPLES, reason="OP_DB_SAMPLES says how many samples of every operator, dtype and form are run")
@pytest.mark.parametrize("name", operators())
def test_operator(name, device):
    op = operators()[name]
    chosen = [call for dtype in dtypes(op, device) for form in forms(op, dtype, device) for call in calls(op, dtype, device, form, SAMPLES)]
    found = failures(chosen, SAMPLES)
    if found:
        pytest.fail("\n".join(found), pytrace=False)
