"""Runs programs with the target of a library, and compares them with eager: try_target.py LIBRARY [TARGET_OPTIONS]"""

import sys

import torch

import cxxinductor

PROGRAMS = {
    "pointwise": lambda x: torch.relu(x) * torch.sigmoid(x + 1),
    "softmax": lambda x: torch.softmax(x, -1),
    "layer norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    "reduction": lambda x: x.sum(0),
    "transpose": lambda x: (x * 2).t().contiguous(),
}


def main(library: str, target_options: str = "") -> None:
    name = cxxinductor.load_target(library)
    x = torch.randn(96, 200)
    for program, function in PROGRAMS.items():
        compiled = torch.compile(function, backend="cxxinductor", options={"target": name, "target_options": target_options})
        torch.testing.assert_close(compiled(x), function(x), rtol=2e-5, atol=2e-5)
        print(f"{program}: as eager")
    assert cxxinductor.counters()["aten_fallback"] == 0
    print(f"{len(PROGRAMS)} programs give eager's results on {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
