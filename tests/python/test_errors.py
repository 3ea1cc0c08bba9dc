"""Errors of compiled graphs are eager's: types, texts of ops, and what is usable afterwards."""

import pytest
import torch

import cxxinductor


def compiled(function, **options):
    return torch.compile(function, backend="cxxinductor", fullgraph=True, **options)


OUT_OF_RANGE = {
    "index": (lambda x, i: x[i] * 2, torch.tensor([1, 8]), IndexError),
    "negative": (lambda x, i: x[i] * 2, torch.tensor([-9, 0]), IndexError),
    "index_select": (lambda x, i: torch.index_select(x, 0, i) + 1, torch.tensor([1, 8]), IndexError),
    "embedding": (lambda x, i: torch.nn.functional.embedding(i, x) + 1, torch.tensor([1, 8]), IndexError),
    "gather": (lambda x, i: torch.gather(x, 0, i.view(-1, 1)) + 1, torch.tensor([1, 8]), RuntimeError),
    "scatter": (lambda x, i: torch.scatter(x, 0, i.view(-1, 1), 1.0) + 1, torch.tensor([1, 8]), RuntimeError),
    "index_put": (lambda x, i: x.index_put((i,), torch.zeros(2, 4)), torch.tensor([1, 8]), IndexError),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_an_index_out_of_range_is_eagers_error(name, device):
    if device == "cuda":
        pytest.skip("raised at a later call: test_cuda.py")
    fn, bad, error_type = OUT_OF_RANGE[name]
    x = torch.randn(8, 4)
    run = compiled(fn)
    with pytest.raises(error_type):
        fn(x, bad)
    with pytest.raises(error_type) as error:
        run(x, bad)
    assert isinstance(error.value, (IndexError, cxxinductor.UserError))
    text = str(error.value)
    low = 0 if name in ("index_select", "embedding", "gather", "scatter") else -8
    assert f"index {-9 if name == 'negative' else 8} is out of bounds, expected {low} <= index < 8" in text
    assert "aten." in text and "test_errors.py:" in text
    good = torch.tensor([0, 7])
    torch.testing.assert_close(run(x, good), fn(x, good))


@pytest.mark.parametrize("training", [False, True])
def test_an_error_of_an_op_is_eagers(training, device):
    def fn(x):
        return torch.linalg.cholesky(x + 0) * 2

    bad, good = -torch.eye(4, device=device), torch.eye(4, device=device, requires_grad=training)
    bad.requires_grad_(training)
    run = compiled(fn)
    with pytest.raises(Exception) as expected:
        fn(bad)
    with pytest.raises(Exception) as found:
        run(bad)
    assert found.type is expected.type and str(found.value) == str(expected.value)
    torch.testing.assert_close(run(good), fn(good))


@pytest.mark.parametrize("n", [2**63 - 1, 2**63, 2**70, -(2**64)])
def test_integers_beyond_64_bits(n, device):
    def fn(x, n):
        return x + n % 7, x * (n // 2**62)

    x = torch.randn(5, device=device)
    run = torch.compile(fn, backend="cxxinductor", dynamic=True)
    torch.testing.assert_close(run(x, 12345), fn(x, 12345))
    with pytest.warns() if abs(n) >= 2**63 else pytest.MonkeyPatch.context():
        torch.testing.assert_close(run(x, n), fn(x, n))


def test_integers_that_no_tensor_holds_raise_as_in_eager(device):
    def fn(x, n):
        return x.long() + n

    x = torch.ones(3, device=device)
    run = torch.compile(fn, backend="cxxinductor", dynamic=True)
    assert run(x, 5).tolist() == [6, 6, 6]
    with pytest.raises(Exception) as expected:
        fn(x, 2**65)
    with pytest.raises(Exception) as found:
        run(x, 2**65)
    assert found.type is expected.type


def test_numbers_for_calls_are_made_of_sizes(device):
    def fn(x):
        return torch.scalar_tensor(x.shape[0] * 2.5, device=x.device), x + 1

    run = torch.compile(fn, backend="cxxinductor", dynamic=True)
    for n in (6, 9):
        x = torch.randn(n, device=device)
        torch.testing.assert_close(run(x), fn(x))


@pytest.mark.parametrize("by", ["option", "variable"])
def test_an_unknown_pass_raises_and_lists_the_known(by, monkeypatch, device):
    x = torch.ones(3, device=device)
    if by == "variable":
        monkeypatch.setenv("CXXINDUCTOR_SKIP_PASSES", "graph-cse, foo")
    run = torch.compile(lambda x: x + 1, backend="cxxinductor", options={"skip_passes": "foo"} if by == "option" else {})
    with pytest.raises(Exception, match="found 'foo'; known are graph-dead-code, .*, loops-dead-code"):
        run(x)
    assert cxxinductor.counters()["aten_fallback"] == 0
    torch._dynamo.reset()
    monkeypatch.setenv("CXXINDUCTOR_SKIP_PASSES", "")
    known = {"skip_passes": "graph-cse, loops-one-hot,"}
    assert torch.compile(lambda x: x + 1, backend="cxxinductor", options=known)(x).tolist() == [2, 2, 2]


def test_listeners_hear_the_graphs_of_their_block():
    from cxxinductor import reports

    with reports.collect() as outer:
        with reports.collect() as inner:
            pass
        torch.compile(lambda x: x + 1, backend="cxxinductor")(torch.ones(3))
    assert len(outer) == 1 and inner == []
