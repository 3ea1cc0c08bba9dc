"""docs/coverage.md is what the sweep makes: rows of every 17th operator, its numbers, its operators; and each call has a reason of its own."""

import logging
import re

import pytest
from op_db import coverage
from op_db.calls import operators

EVERY = 17


@pytest.fixture(scope="module")
def page():
    return coverage.PAGE.read_text()


def test_every_operator_has_a_row(page):
    rows = coverage.parse(page)
    assert sorted(row.operator for row in rows) == sorted(operators())


def test_the_page_is_what_its_rows_make(page):
    order = list(operators())
    assert coverage.render(sorted(coverage.parse(page), key=lambda row: order.index(row.operator))) == page


def test_every_call_has_a_reason(page):
    without = [line for line in page.splitlines() if re.search("does not know it|cover other forms", line)]
    assert not without, "state the reason in csrc/frontend/call_reasons.cpp, or in the importer (decline):\n" + "\n".join(without)


@pytest.mark.parametrize("part", range(4))
def test_rows_are_fresh(page, part):
    logging.disable(logging.ERROR)
    rows = {row.operator: row for row in coverage.parse(page)}
    made = [coverage.row_of(name) for name in list(operators())[::EVERY][part::4]]
    logging.disable(logging.NOTSET)
    stale = [f"{rows[row.operator]}\nis now\n{row}" for row in made if rows[row.operator] != row]
    assert not stale, "python -m op_db.coverage --write (in tests/python) makes docs/coverage.md:\n" + "\n".join(stale)
