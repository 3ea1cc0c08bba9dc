"""Writes an image classifier as an exported model of any batch size. Usage: export.py MODEL.pt2 [--network resnet50] [--device cuda] [--dtype bfloat16]

forward(images: [b, 3, size, size]) -> logits f32[b, classes]. --network is a name of timm's; without it, a small network. The weights are random.
"""

import argparse

import torch
from torch import nn


def small_network() -> nn.Module:
    block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))  # noqa: E731
    return nn.Sequential(block(3, 16), block(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


class Classifier(nn.Module):
    """Takes f32 images and returns f32 logits, whatever dtype the network computes in."""

    def __init__(self, network: nn.Module, dtype: torch.dtype):
        super().__init__()
        self.network, self.dtype = network.to(dtype), dtype

    def forward(self, images):
        return self.network(images.to(self.dtype)).float()


def export(network: nn.Module, size: int, most: int, device="cpu", dtype=torch.float32) -> torch.export.ExportedProgram:
    sizes = {0: torch.export.Dim("b", min=1, max=most)} if most > 1 else {}
    images = torch.randn(min(most, 2), 3, size, size, device=device)
    with torch.no_grad():
        return torch.export.export(Classifier(network.eval(), dtype).to(device), (images,), dynamic_shapes=(sizes,))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the file to write")
    parser.add_argument("--network")
    parser.add_argument("--size", type=int, help="of images; default 16, with --network 224")
    parser.add_argument("--batch", type=int, default=64, help="largest batch")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    given = parser.parse_args()
    torch.manual_seed(0)
    if given.network:
        import timm

        network, size = timm.create_model(given.network), given.size or 224
    else:
        network, size = small_network(), given.size or 16
    torch.export.save(export(network, size, given.batch, given.device, getattr(torch, given.dtype)), given.model)


if __name__ == "__main__":
    main()
