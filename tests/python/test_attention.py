"""Masks of attention: their layout must not cost the fused kernel, and nothing else may change."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from cxxinductor.attention import make_masks_contiguous


def graph_with_mask(mask_strides, dtype=torch.bfloat16, device="cuda"):
    """Two layers that share a mask, as Dynamo hands them over; fake tensors need no device."""
    graph = torch.fx.Graph()
    query, mask = graph.placeholder("q"), graph.placeholder("m")
    with FakeTensorMode():
        query.meta["example_value"] = torch.empty(2, 3, 8, 16, dtype=dtype, device=device)
        mask.meta["example_value"] = torch.empty_strided((2, 1, 8, 8), mask_strides, dtype=torch.bool, device=device)
    attention = torch._C._nn.scaled_dot_product_attention
    first = graph.call_function(attention, (query, query, query), {"attn_mask": mask})
    first.meta["example_value"] = query.meta["example_value"]
    graph.output((graph.call_function(attention, (first, query, query, mask)),))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def test_expanded_and_permuted_masks_are_copied_once():
    for strides in ((8, 8, 1, 0), (64, 64, 1, 8)):
        gm = graph_with_mask(strides)
        assert make_masks_contiguous(gm) == 1
        copies = [node for node in gm.graph.nodes if node.target == "contiguous"]
        assert len(copies) == 1 and copies[0].meta["example_value"].stride() == (64, 64, 8, 1)
        assert all(copies[0] in node.all_input_nodes for node in gm.graph.nodes if node.op == "call_function")


@pytest.mark.parametrize("other", [dict(mask_strides=(64, 64, 8, 1)), dict(mask_strides=(8, 8, 1, 0), dtype=torch.float32),
                                   dict(mask_strides=(8, 8, 1, 0), device="cpu")])
def test_other_masks_stay(other):
    gm = graph_with_mask(**other)
    before = gm.code
    assert make_masks_contiguous(gm) == 0 and gm.code == before


def test_expanded_mask_runs_fused(device):
    if device != "cuda":
        pytest.skip("on the CPU every mask takes the same kernel")
    import cxxinductor
    from compare import assert_as_good_as_eager, to_double

    def layer(q, keep):
        mask = keep[:, None, None, :].expand(-1, 1, q.shape[2], -1)
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask.transpose(-1, -2).contiguous().transpose(-1, -2))

    q = torch.randn(2, 3, 64, 64, device=device, dtype=torch.bfloat16)
    keep = torch.rand(2, 64, device=device) < 0.8
    with torch.no_grad():
        explanation = cxxinductor.explain(layer, q, keep)
        compiled = torch.compile(layer, backend="cxxinductor")(q, keep)
    assert not any("bmm" in op for graph in explanation.graphs for op in graph.details["externs"])
    assert_as_good_as_eager(compiled, layer(q, keep), layer(*to_double((q, keep))))
