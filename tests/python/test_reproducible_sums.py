"""Rows that are added where an index says: what eager sums in one order is the same in every run, and sorted only where that pays."""

import contextlib

import pytest
import torch

import cxxinductor


def externs(fn, *inputs):
    return [callee for graph in cxxinductor.explain(fn, *inputs).graphs for callee in graph.details["externs"]]


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def test_what_eager_makes_reproducible_stays_a_call_on_cuda(device):
    x, s, i = torch.randn(8, 4, device=device), torch.randn(3, 4, device=device), torch.tensor([1, 1, 2], device=device)
    put = lambda x, i, s: x.index_put((i,), s, accumulate=True)  # noqa: E731
    assert externs(put, x, i, s) == (["aten::index_put"] if device == "cuda" else [])
    assert externs(lambda x, i, s: x.index_add(0, i, s), x, i, s) == []
    integers = (x.long(), i, s.long())
    assert externs(put, *integers) == []  # sums of integers do not depend on the order
    torch.testing.assert_close(torch.compile(put, backend="cxxinductor")(*integers), put(*integers))


SMALL_TABLES = {
    "rows": lambda w, i: w[i],
    "columns": lambda w, i: w[:, i % 4],
    "negative": lambda w, i: w[i - 9],
    "embedding": lambda w, i: torch.nn.functional.embedding(i, w, padding_idx=2),
    "16 bits": lambda w, i: torch.nn.functional.embedding(i, w.bfloat16()).float(),
}


@pytest.mark.parametrize("name", SMALL_TABLES)
def test_gradients_of_small_tables_are_the_same_in_every_run(name, device):
    """Eager sorts the indices; so many terms are summed over all rows."""
    fn, i = SMALL_TABLES[name], torch.randint(0, 9, (40, 7), device=device)
    table = torch.randn(9, 4, device=device)

    def gradient(run):
        w = table.clone().requires_grad_()
        y = run(w, i)
        return torch.autograd.grad(y, w, torch.sin(torch.arange(y.numel(), device=device)).view_as(y))[0]

    compiled = torch.compile(lambda w, i: fn(w, i), backend="cxxinductor")
    found = gradient(compiled)
    tolerance = 2**-6 if name == "16 bits" else 1e-5  # eager rounds sums of 32 terms each to 16 bits
    torch.testing.assert_close(found, gradient(fn), rtol=tolerance, atol=2 * tolerance)
    assert torch.equal(found, gradient(compiled))
    put = lambda s, i: torch.zeros(9, 4, device=device).index_put((i,), s, accumulate=True)  # noqa: E731
    assert externs(put, torch.randn(40, 7, 4, device=device), i) == []


def test_deterministic_algorithms_are_respected(device):
    x, s, i = torch.randn(8, 4, device=device), torch.randn(3, 4, device=device), torch.tensor([1, 1, 2], device=device)
    functions = {
        "aten::index_add": lambda x, i, s: x.index_add(0, i, s),
        "aten::index_put": lambda x, i, s: x.index_put((i,), s),
        "aten::scatter_add": lambda x, i, s: x.scatter_add(0, i[:, None].expand(3, 4).contiguous(), s),
    }
    for name, fn in functions.items():
        with deterministic():
            assert externs(fn, x, i, s) == ([name] if device == "cuda" else [])
        assert externs(fn, x, i, s) == []
