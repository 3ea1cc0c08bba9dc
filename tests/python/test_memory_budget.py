"""Option memory_budget: less is saved for the backward pass, and results and gradients stay eager's."""

import pytest
import torch
import torch.nn.functional as F
from torch._functorch import config as functorch_config

import cxxinductor

BUDGETS = 1, 0.6, 0.3, 0


def layers(x, weights, dropout=0.0):
    for up, down in weights:
        x = x + F.dropout(F.gelu(F.layer_norm(x, x.shape[-1:]) @ up), dropout, dropout > 0) @ down
    return x.sigmoid()


def make_inputs(device, depth=4, width=32):
    torch.manual_seed(0)
    weights = [(torch.randn(width, 4 * width, device=device) * 0.1, torch.randn(4 * width, width, device=device) * 0.1) for _ in range(depth)]
    x = torch.randn(64, width, device=device)
    return x.requires_grad_(), [(up.requires_grad_(), down.requires_grad_()) for up, down in weights]


def run(fn, device):
    """The result, all gradients, and the bytes that autograd saves between the passes, of what is not an argument."""
    x, weights = make_inputs(device)
    leaves = [x, *(w for pair in weights for w in pair)]
    own, saved = {leaf.untyped_storage().data_ptr() for leaf in leaves}, {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        torch.manual_seed(1)
        result = fn(x, weights)
        result.pow(2).sum().backward()
    return [result.detach(), *(leaf.grad for leaf in leaves)], sum(saved.values())


def compiled(fn, **options):
    torch._dynamo.reset()
    return torch.compile(fn, backend="cxxinductor", fullgraph=True, options=options)


def test_less_is_saved_and_gradients_stay(device):
    expected, _ = run(layers, device)
    sizes = []
    for budget in BUDGETS:
        found, saved = run(compiled(layers, memory_budget=budget), device)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        sizes.append(saved)
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[1] < sizes[0], sizes
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("op", [torch.matmul, torch.add], ids=["matmul", "add"])
def test_random_values_are_drawn_once(op, budget, device):
    """Zeros of the result's dropout are zeros of the gradient. Of a sum, nothing but dropout is worth saving."""

    def fn(x, weight):
        return F.dropout(torch.sin(op(x, weight)), 0.5, True)

    x = torch.rand(64, 64, device=device).requires_grad_()
    weight = torch.eye(64, device=device, requires_grad=True)
    result = compiled(fn, memory_budget=budget)(x, weight)
    result.sum().backward()
    assert torch.equal(x.grad == 0, result == 0)


def test_torch_setting_applies(device):
    with functorch_config.patch(activation_memory_budget=0.3):
        _, by_torch = run(compiled(layers), device)
    assert by_torch == run(compiled(layers, memory_budget=0.3), device)[1]


@pytest.mark.parametrize("value", [-0.1, 1.5, "half", "nan"])
def test_other_values_are_refused(value):
    with pytest.raises(Exception, match="memory_budget': expected a number from 0 to 1"):
        compiled(torch.sin, memory_budget=value)(torch.ones(2))
