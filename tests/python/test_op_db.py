"""Every sixth of torch's operators against eager, a call each; `python -m op_db` runs all. OP_DB_SAMPLES=n: n samples of every operator, dtype and form."""

import itertools
import logging
import os
from typing import Iterator

import pytest
import torch
from op_db.calls import Call, calls, dtypes, forms, name_of, operators
from op_db.expected_failures import EXPECTED_FAILURES, ExpectedFailure, expected_failure
from op_db.program import Program, programs
from op_db.run import Finding, check
from op_db.sweep import sweep
from torch.testing._internal.opinfo.core import OpInfo

SAMPLES = int(os.environ.get("OP_DB_SAMPLES", 0))
A_GRAPH = 40  # calls: enough that compiling a call costs little, few enough that a failure is found among them soon
QUICK_GRAPHS = 7
KNOWN_SAMPLES, MOST_TRIED = 6, 30


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
            if finding.kind and not result.is_traced_so and not expected_failure(call, finding):
                found.append(f"{finding.kind}: {', '.join(map(str, result.calls))}: {finding.text}")
    return found


def quick_calls(position: int, device: str) -> list[Call]:
    """One of every sixth operator, whose dtype, form and sample go through all there are from operator to operator."""
    found = []
    for number, (name, op) in enumerate(list(operators().items())[::6]):
        if number % QUICK_GRAPHS != position or any(name in entry.operators for entry in EXPECTED_FAILURES):
            continue
        kinds = [(dtype, form) for dtype in dtypes(op, device) for form in forms(op, dtype, device)]
        for attempt in range(min(3, len(kinds))):
            dtype, form = kinds[(7 * (number // QUICK_GRAPHS) + attempt) % len(kinds)]
            if chosen := calls(op, dtype, device, form, 1 + number % 5):
                found.append(chosen[-1])
                break
    return found


@pytest.mark.parametrize("position", range(QUICK_GRAPHS))
def test_a_call_of_every_sixth_operator(position, device):
    found = failures(quick_calls(position, device), A_GRAPH)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize("entry", EXPECTED_FAILURES, ids=lambda entry: f"{entry.kind} {entry.text}")
def test_what_is_known_to_fail_fails(entry, device):
    if device not in entry.devices:
        pytest.skip(f"does not fail on {device}")
    fixed = []
    for name in entry.operators:
        if finding := unexplained(entry, operators()[name], device):
            fixed.append(f"{name}: {finding.kind or 'right'} {finding.text}")
    if fixed:
        pytest.fail(f"take out of op_db/expected_failures.py ({entry.reason}):\n" + "\n".join(fixed), pytrace=False)


def unexplained(entry: ExpectedFailure, op: OpInfo, device: str) -> Finding | None:
    """None where some call fails in the way of the entry."""
    finding = Finding("", "")
    for call in itertools.islice(covered(entry, op, device), MOST_TRIED):
        finding = check(Program((call,)))
        if entry.explains(call, finding):
            return None
    return finding


def covered(entry: ExpectedFailure, op: OpInfo, device: str) -> Iterator[Call]:
    for dtype in dtypes(op, device):
        for form in forms(op, dtype, device):
            if entry.covers(name_of(op), str(dtype).removeprefix("torch."), form, device):
                yield from calls(op, dtype, device, form, KNOWN_SAMPLES)


@pytest.mark.parametrize("name", operators() if SAMPLES else ())
def test_operator(name, device):
    op = operators()[name]
    chosen = [call for dtype in dtypes(op, device) for form in forms(op, dtype, device) for call in calls(op, dtype, device, form, SAMPLES)]
    found = failures(chosen, SAMPLES)
    if found:
        pytest.fail("\n".join(found), pytrace=False)
