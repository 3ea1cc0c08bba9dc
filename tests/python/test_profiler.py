"""What torch's profiler sees of a compiled call."""

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.act = nn.LayerNorm(64), nn.GELU()

    def forward(self, x):
        return self.act(self.norm(x) * 2)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(2)])
        self.head = nn.Linear(64, 64)

    def forward(self, x):
        for layer in self.layers:
            x = self.head(layer(x))
        return x


def test_kernels_carry_ops_and_module_paths(device):
    model, x = Model().to(device), torch.randn(8, 64, device=device)
    with torch.no_grad():
        run = torch.compile(model, backend="cxxinductor", fullgraph=True)
        run(x)
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            run(x)
    kernels = [event.name for event in seen.events() if event.name.startswith("k") and "__" in event.name]
    assert len(kernels) == 2 and all("layer_norm" in name and name.endswith("__layers_norm") for name in kernels), kernels
    torch.testing.assert_close(run(x), model(x))
