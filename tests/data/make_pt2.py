"""Writes the archives of tests/data/pt2 that the reader's tests read: python tests/data/make_pt2.py [folder]

Each is what torch.export.save makes of a small model. Weights are 0, 1, 2, .. so that tests know their elements.
"""

import re
import sys
from pathlib import Path

import torch
from torch import nn
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim


def numbered(module):
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            tensor.copy_(torch.arange(tensor.numel()).reshape(tensor.shape))
    return module


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(2, 4)
        self.down = nn.Linear(4, 2, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Tied(nn.Module):
    """Two names of one storage, one of them a slice of it; a constant; a buffer that no state_dict has."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4, 2)
        self.head = nn.Linear(2, 4, bias=False)
        self.head.weight = self.table.weight
        self.scale = torch.tensor([1.0, 2.0])
        self.register_buffer("row", self.table.weight.detach()[1], persistent=False)

    def forward(self, tokens):
        return self.head(self.table(tokens) * self.scale + self.row)


class Training(nn.Module):
    """Buffers that change, an argument that changes."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x, count):
        count.add_(1)
        return self.norm(x)


class Nested(nn.Module):
    """A dict, a list, arguments and results that are not tensors, a list of results, an index, a block without gradients."""

    def forward(self, inputs, scale=1.0, mode="double", flag=True, nothing=None):
        x, index = inputs["x"], inputs["rest"][0]
        with torch.no_grad():
            y = x * scale
        first, second = torch.split(y, [1, 2], dim=1)
        y = y.clone()
        y[index] = 0
        return {"parts": [first, second], "y": y.to(torch.bfloat16)}, 3, None, "text"


class Sizes(nn.Module):
    """Sizes as symbols, an integer argument, results that are sizes, a size and a condition that are data, floats made of sizes."""

    def forward(self, x, n):
        count = (x[:, 0] > 0).sum().item()
        torch._check(count >= 0)
        torch._check(count <= 64)
        y = x.reshape(-1) * x.shape[0] ** 0.5
        return y, x.shape[0] * 2 + n, torch.zeros(count), x.shape[1] == 4


class Control(nn.Module):
    """Control flow, one graph in another, a size that a branch reads, mixed precision, and a block that is shared."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        def inner(y):
            return torch.cond(y.max() > 2, lambda z: z * y.shape[0], lambda z: self.layer(z), (y,))

        carry, rows = scan(lambda c, y: (c + y, c * y), torch.ones(2), x)
        mapped = map_rows(lambda r, c: r + c, x, carry)
        x = torch.cond(x.sum() > 0, inner, lambda y: y.sin(), (x,))
        _, x = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, self.layer(y)), (torch.zeros((), dtype=torch.int64), x))
        with torch.autocast("cpu", torch.bfloat16):
            y = self.layer(rows)
        return x, y, mapped


batch = Dim("batch", min=2, max=64)
MODELS = {
    "mlp": (Mlp, (torch.zeros(3, 2),), {}, None, True),
    "tied": (Tied, (torch.zeros(3, dtype=torch.int64),), {}, None, True),
    "training": (Training, (torch.ones(4, 2), torch.zeros(())), {}, None, True),
    "nested": (
        Nested,
        ({"x": torch.zeros(4, 3), "rest": [torch.tensor([1, 2])]},),
        {"scale": 2.0, "mode": "half", "flag": False, "nothing": None},
        None,
        False,
    ),
    "sizes": (Sizes, (torch.zeros(6, 4), 5), {}, ({0: batch}, Dim.DYNAMIC), False),
    "control": (Control, (torch.ones(4, 2),), {}, ({0: batch},), False),
}


def without_folders(program):
    """The program with the names of source files in its stack traces, not the folders of the machine that it is made on."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if trace := node.meta.get("stack_trace"):
                node.meta["stack_trace"] = re.sub(r'File "[^"]*/', 'File "', trace)
    return program


def main(folder):
    for name, (module, args, kwargs, dynamic_shapes, decompose) in MODELS.items():
        program = torch.export.export(numbered(module()), args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
        if decompose:
            program = program.run_decompositions()
        torch.export.save(without_folders(program), folder / f"{name}.pt2")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pt2")
