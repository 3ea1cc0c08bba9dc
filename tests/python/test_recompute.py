"""What a backward pass keeps: the rules of csrc/model/decompose/recompute_forms.cpp, and the cut of recorded functions (csrc/model/passes/
values_to_keep.cpp) beside AOTAutograd's min-cut on the same joint graph."""

from __future__ import annotations

import copy
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch.fx.experimental.proxy_tensor import make_fx

from cxxinductor import _C, decompositions, fx_reader, partition
from cxxinductor.registry import Snapshot

aten = torch.ops.aten
NO_PASSES = Snapshot({}, "")


class Saved:
    """Bytes that the backward pass of one function gets from its forward pass."""

    def __init__(self, function: Callable[..., torch.Tensor], *arguments: torch.Tensor):
        self.by_aot = self.ours = -1
        self.forward = self.backward = ""
        torch._dynamo.reset()
        backend = aot_autograd(fw_compiler=lambda gm, _: make_boxed_func(gm), partition_fn=self._partition, decompositions=decompositions.table())
        torch.compile(function, backend=backend, fullgraph=True)(*arguments).sum().backward()

    def _partition(self, joint: torch.fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **kwargs: Any) -> Any:
        gradients = [i for i, node in enumerate(joint.graph.find_nodes(op="placeholder")) if str(node.target).startswith("tangents")]
        read = fx_reader.read_graph(copy.deepcopy(joint))
        assert not read.constants
        self.forward, self.backward, self.ours = _C.split_gradients(read.builder, num_fwd_outputs, gradients)
        halves = partition.partition(joint, inputs, passes=NO_PASSES, num_fwd_outputs=num_fwd_outputs, **kwargs)
        saved = {node.name: node.meta["val"] for node in halves[0].graph.output_node().args[0][num_fwd_outputs:]}
        self.by_aot = sum(x.numel() * x.element_size() for x in saved.values() if isinstance(x, torch.Tensor))
        return halves


def leaf(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(sizes).to(dtype).requires_grad_()


def block(x, norm, qkv, out, up, down):
    """A layer of a transformer, its attention in products and a softmax."""
    batch, length, width = x.shape
    heads = 4
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    q, k, v = (F.layer_norm(x, (width,), norm) @ qkv).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    scores = (q @ k.transpose(-1, -2) / 4).masked_fill(~mask, float("-inf"))
    x = x + (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width) @ out
    return x + F.gelu(F.layer_norm(x, (width,), norm) @ up) @ down


def pools(x, weight):
    return F.max_pool2d(F.conv2d(x, weight, padding=1).relu(), 3, 2, 1)


CASES = {
    "softmax": (lambda x, w: (x @ w).softmax(-1).sin(), lambda: (leaf(64, 32), leaf(32, 256))),
    "cross_entropy": (
        lambda x, w: F.cross_entropy((x @ w).float(), torch.arange(64)),
        lambda: (leaf(64, 32, dtype=torch.bfloat16), leaf(32, 1000, dtype=torch.bfloat16)),
    ),
    "dropout": (lambda x, w: F.dropout(F.gelu(x @ w), 0.1).sin(), lambda: (leaf(64, 32), leaf(32, 64))),
    "max_pool": (pools, lambda: (leaf(2, 3, 16, 16), leaf(8, 3, 3, 3))),
    "block": (block, lambda: (leaf(2, 16, 32), leaf(32), leaf(32, 96), leaf(32, 32), leaf(32, 128), leaf(128, 32))),
}


@pytest.mark.parametrize("name", CASES)
def test_no_more_is_kept_than_by_aotautograd(name):
    function, arguments = CASES[name]
    saved = Saved(function, *arguments())
    assert 0 < saved.ours <= 1.02 * saved.by_aot, (saved.ours, saved.by_aot, saved.forward, saved.backward)


def test_contractions_and_random_ops_run_once():
    function, arguments = CASES["block"]
    saved = Saved(lambda x, *more: F.dropout(function(x, *more), 0.1).sin(), *arguments())
    for op in ("aten::native_dropout", "aten::native_layer_norm", "aten::gelu"):
        assert f'"{op}"(' in saved.forward and f'"{op}"(' not in saved.backward
    assert '"aten::tril"(' in saved.forward and '"aten::tril"(' in saved.backward, "masks are made again"


FORMS: dict[str, Callable[[torch.dtype], Any]] = {
    "_softmax": lambda dtype: ((torch.randn(3, 5, 7).to(dtype), dim, False) for dim in (-1, 1)),
    "_log_softmax": lambda dtype: ((torch.randn(3, 5, 7).to(dtype), dim, False) for dim in (-1, 0)),
    "_softmax_backward_data": lambda dtype: [(torch.randn(3, 5).to(dtype), torch.randn(3, 5).softmax(1).to(dtype), 1, dtype)],
    "_log_softmax_backward_data": lambda dtype: [(torch.randn(3, 5).to(dtype), torch.randn(3, 5).log_softmax(1).to(dtype), 1, dtype)],
    "native_layer_norm": lambda dtype: norms(torch.promote_types(dtype, torch.float32)),  # there is no form of 16-bit floats on the CPU
    "native_dropout": lambda dtype: ((torch.randn(4, 6).to(dtype), p, train) for p, train in ((0.1, True), (0.5, None))),
    "threshold_backward": lambda dtype: ((torch.randn(4, 6).to(dtype), torch.randn(4, 6).to(dtype), 0) for _ in range(2)),
    "max_pool2d_with_indices_backward": lambda dtype: (
        pooled(torch.randn(2, 3, 9, 8).to(dtype), *window) for window in ((3, 2, 1, 1), ((2, 3), (1, 2), 0, 1), (2, (), 0, 2))
    ),
}


def norms(dtype):
    x, weight, bias = (torch.randn(sizes, dtype=dtype) for sizes in ((3, 5, 7), (7,), (7,)))
    return [(x, [7], weight, bias, 1e-5), (x.transpose(0, 1), [7], None, bias, 1e-5), (x, [5, 7], torch.randn(5, 7, dtype=dtype), None, 1e-5)]


def pooled(x, kernel, stride, padding, dilation):
    def pair(n):
        return [n, n] if isinstance(n, int) else list(n)

    window = [pair(kernel), pair(stride), pair(padding), pair(dilation), False]
    y, indices = aten.max_pool2d_with_indices(x, *window)
    return (torch.randn_like(y), x, *window, indices)


def test_every_form_is_tested():
    assert {f"aten::{name}" for name in FORMS} == set(_C.ops_with_fragments(_C.Fragments.RecomputeForms))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_forms_have_eagers_values(name, dtype):
    """A graph that is rewritten as the joint graph of a training step is."""
    torch.manual_seed(0)
    op = getattr(aten, name).default
    for arguments in FORMS[name](dtype):
        tensors = [x for x in arguments if isinstance(x, torch.Tensor)]

        def call(*given, arguments=arguments):
            values = iter(given)
            return op(*(next(values) if isinstance(x, torch.Tensor) else x for x in arguments))

        graph = make_fx(call, tracing_mode="fake")(*tensors)
        before = len(graph.graph.nodes)
        for node in list(graph.graph.nodes):
            if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.name in partition._RECOMPUTE_FORMS:
                partition._take_recompute_form(node)
        graph.recompile()
        assert len(graph.graph.nodes) > before
        with torch.random.fork_rng():
            expected = op(*arguments)
        found = graph(*tensors)
        tolerance = {"rtol": 1e-2, "atol": 1e-2} if dtype is torch.bfloat16 else {}
        for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
            assert (one.dtype, one.stride()) == (other.dtype, other.stride())
            torch.testing.assert_close(one, other, **tolerance)


def attention(x, w):
    """Its dropout is read by a product, whose gradient reads it too."""
    q, k, v = (x @ w).chunk(3, -1)
    return F.dropout(torch.softmax(q @ k.transpose(-1, -2), -1), 0.1, True) @ v


def saved_by_partition(function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> list[tuple[str, tuple[int, ...], torch.dtype]]:
    """Of each tensor that is saved and no input: the op that makes it, sizes, type."""
    found = []

    def divide(joint, inputs, *, num_fwd_outputs, **kwargs):
        halves = partition.partition(joint, inputs, passes=NO_PASSES, num_fwd_outputs=num_fwd_outputs, **kwargs)
        for node in halves[0].graph.output_node().args[0][num_fwd_outputs:]:
            value = node.meta["val"]
            if node.op != "placeholder" and isinstance(value, torch.Tensor):
                found.append((str(node.target), tuple(value.shape), value.dtype))
        return halves

    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=lambda gm, _: make_boxed_func(gm), partition_fn=divide, decompositions=decompositions.table())
    torch.compile(function, backend=backend, fullgraph=True)(*arguments).sum().backward()
    return found


def test_of_a_dropout_in_attention_the_mask_is_kept(monkeypatch):
    monkeypatch.setattr(F, "dropout", lambda x, p, training: torch.native_dropout(x, p, training)[0])  # as on CUDA
    x, w = leaf(4, 64, 16), leaf(16, 48)
    squares = [(op, dtype) for op, sizes, dtype in saved_by_partition(attention, x, w) if sizes[-2:] == (64, 64)]
    assert ("aten.bmm.default", torch.float32) in squares and len(squares) == 2, squares
    assert {dtype for _, dtype in squares} == {torch.float32, torch.bool}


def test_wide_copies_are_made_again():
    def function(x, w):
        return F.layer_norm((x + x.sin()).float(), (32,), w)

    saved = saved_by_partition(function, leaf(8, 32, dtype=torch.bfloat16), leaf(32))
    assert all(dtype is torch.bfloat16 or sizes == (8, 1) for _, sizes, dtype in saved), saved


def test_wide_results_of_norms_of_wide_copies_are_made_again():
    """As where a residual stream begins behind a convolution under autocast."""

    def function(x, w, b, up):
        x = F.layer_norm((x @ up).float(), (32,), w, b)
        return x + F.gelu(x.bfloat16() @ up).float()

    arguments = [leaf(8, 32, dtype=torch.bfloat16), leaf(32), leaf(32), leaf(32, 32, dtype=torch.bfloat16)]
    saved = saved_by_partition(function, *arguments)
    assert all(dtype is torch.bfloat16 or sizes == (8, 1) for _, sizes, dtype in saved), saved
    compiled = torch.compile(function, backend="cxxinductor")
    for found, expected in zip(*(torch.autograd.grad(run(*arguments).sum(), arguments) for run in (compiled, function))):
        torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("norm", [False, True], ids=["product", "norm"])
def test_copies_of_inputs_that_are_written_later(norm):
    """The backward pass makes them from what the input held before."""

    def function(w, state):
        y = F.layer_norm(state.float(), (8,), w) if norm else w * state.float()
        state.add_(1)
        return y.sin().sum()

    def gradient(run):
        torch.manual_seed(0)
        w, state = leaf(8), torch.randn(4, 8).bfloat16()
        run(w, state).backward()
        return w.grad, state

    for found, expected in zip(gradient(torch.compile(function, backend="cxxinductor")), gradient(function)):
        torch.testing.assert_close(found, expected)
