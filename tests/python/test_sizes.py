"""Layers of many sizes: kernels that differ in sizes alone are compiled once, for inference and training."""

import copy

import pytest
import torch
from torch import nn

import cxxinductor


class DenseBlock(nn.Module):
    """Each layer reads the concatenation of all results before it, as in densenet."""

    def __init__(self, channels, growth, layers):
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels + growth * i) for i in range(layers))
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels + growth * i, growth, 3, padding=1, bias=False) for i in range(layers)
        )

    def forward(self, x):
        found = [x]
        for norm, convolution in zip(self.norms, self.convolutions):
            found.append(convolution(torch.relu(norm(torch.cat(found, 1)))))
        return torch.cat(found, 1)


def gradients(model, x, run):
    model.zero_grad(set_to_none=True)
    result = run(x)
    result.square().mean().backward()
    return [result.detach(), *(p.grad for p in model.parameters())]


@pytest.mark.parametrize("check", ["off", "interp"])
def test_dense_block_in_training(check):
    torch.manual_seed(0)
    model = DenseBlock(8, 4, 20)
    x = torch.randn(2, 8, 6, 6)
    exact = copy.deepcopy(model).double()
    expected = gradients(exact, x.double(), exact)
    before = cxxinductor.counters()
    with cxxinductor.reports.collect() as graphs:
        found = gradients(model, x, torch.compile(model, backend="cxxinductor", options={"check": check}))
    after = cxxinductor.counters()
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-6)
    assert after["aten_fallback"] == before["aten_fallback"]
    launches = sum(kernel["launches"] for graph in graphs for kernel in graph.details["kernels"])
    kernels = sum(len(graph.details["kernels"]) for graph in graphs)
    assert kernels < launches, [kernel["name"] for graph in graphs for kernel in graph.details["kernels"]]
    merged = [kernel for graph in graphs for kernel in graph.details["kernels"] if kernel["sizes"] > 1]
    assert len(merged) >= 2
    assert sum("takes sizes as arguments" in str(graph) for graph in graphs) >= 1


def test_off_compiles_each():
    torch.manual_seed(0)
    model = DenseBlock(4, 2, 8).eval()
    with torch.no_grad():
        found = cxxinductor.explain(model, torch.randn(1, 4, 5, 5), options={"generalize_kernels": "off"})
    assert all(kernel["sizes"] == 1 for graph in found.graphs for kernel in graph.details["kernels"])
