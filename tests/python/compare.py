"""Comparison with eager: the compiled result may be no further from an f64 reference than eager is, within a small factor."""

import copy
import math

import torch
from torch.utils._pytree import tree_flatten, tree_map


def to_double(tree):
    """The same structure with floating tensors (and modules) in f64."""

    def convert(x):
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            return x.detach().double()
        return x

    return tree_map(convert, tree)


def relative_error(actual, reference):
    """||actual - reference|| / ||reference|| in f64; infinities and NaN must sit in the same places."""
    actual, reference = actual.detach().double(), reference.detach().double()
    assert actual.shape == reference.shape, f"shape {tuple(actual.shape)}, expected {tuple(reference.shape)}"
    assert torch.equal(actual.isnan(), reference.isnan()), "NaN in other places than the reference"
    finite = reference.isfinite()
    assert torch.equal(actual.isfinite(), finite), "infinities in other places than the reference"
    if not finite.any():
        return 0.0
    scale = reference[finite].norm().item()
    difference = (actual[finite] - reference[finite]).norm().item()
    return difference / scale if scale > 0 else difference


def nudged(tree, seed):
    """The same structure with every floating element moved by at most one unit in the last place, at random."""
    generator = torch.Generator().manual_seed(seed)

    def nudge(x):
        if not (isinstance(x, torch.Tensor) and x.is_floating_point()):
            return x
        step = torch.randint(-1, 2, x.shape, generator=generator).to(x.device)
        return torch.where(step == 0, x, torch.nextafter(x, torch.copysign(torch.full_like(x, math.inf), step)))

    return tree_map(nudge, tree)


def assert_as_good_as_eager(actual, eager, reference, factor=2.0, also=(), precision=None, slack=1.0):
    """Every floating output: error <= factor * eager's error + a few ulp of its dtype, or of `precision` where that is coarser (times `slack`). Others: equal.

    `also`: results of eager on nudged inputs. The largest error counts: where results cancel, the error of one run says
    little about how large rounding errors are there.
    """
    actual, eager, reference, *also = (tree_flatten(t)[0] for t in (actual, eager, reference, *also))
    assert len(actual) == len(eager)
    for i, (a, e, r) in enumerate(zip(actual, eager, reference)):
        if not isinstance(e, torch.Tensor):
            assert a == e
            continue
        assert a.dtype == e.dtype and a.device == e.device and a.shape == e.shape
        assert strides_of(a) == strides_of(e), f"strides {a.stride()}, eager has {e.stride()}"
        if not e.is_floating_point():
            assert torch.equal(a, e)
            continue
        eps = max(torch.finfo(dtype).eps for dtype in (e.dtype, precision or e.dtype))
        floor = slack * 4 * eps / math.sqrt(max(1, min(e.numel(), 16)))
        noise = max(relative_error(run[i], r) for run in (eager, *also))
        error = relative_error(a, r)
        assert error <= factor * noise + floor, f"value {i}: error {error:.3g}, eager's {noise:.3g}"


def strides_of(tensor):
    """Strides that place elements: a dimension of one element has any stride, and fake tensors choose other ones than eager."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride()) if size > 1]


def offset_in(tensor, other):
    """Where a tensor begins in the memory of another, in bytes from that one's beginning; None where they share none."""
    shares = tensor.numel() and tensor.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    return tensor.data_ptr() - other.data_ptr() if shares else None


def whole_storage(tensor):
    """A copy of all elements of a tensor's storage, those between its own too."""
    tensor = tensor.detach()
    return tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0).clone()


def double_copy(module):
    return copy.deepcopy(module).double()


ROUNDING = 4096  # allocators round blocks up, and ours may be more and smaller ones than eager's


def assert_within_eager(reports):
    """Each graph needs at most the memory of eager's."""
    for graph in reports:
        memory = graph.details["memory"]
        assert memory["lower_bound"] <= memory["peak"] <= memory["eager_peak"] + ROUNDING, (graph.kind, memory)


def assert_same_bits(actual, expected):
    """Equal, signs of zeros too; a NaN is any NaN."""
    for a, e in zip(actual, expected):
        torch.testing.assert_close(a, e, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(a.signbit() & ~a.isnan(), e.signbit() & ~e.isnan())
