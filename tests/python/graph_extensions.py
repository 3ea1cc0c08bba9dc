"""Custom ops that tests decompose, and what compiled functions call."""

import torch

import cxxinductor

LIBRARY = torch.library.Library("graph_extension_tests", "DEF")
ops = torch.ops.graph_extension_tests


def _scaled(x, factor=2.0):
    return x * factor


LIBRARY.define("scaled(Tensor x, float factor=2.0) -> Tensor")
LIBRARY.impl("scaled", _scaled, "CompositeExplicitAutograd")
torch.library.register_fake("graph_extension_tests::scaled", lambda x, factor=2.0: torch.empty_like(x), lib=LIBRARY)
torch.library.register_autograd(
    "graph_extension_tests::scaled",
    lambda ctx, grad: (ops.scaled(grad, ctx.factor), None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1] if len(inputs) > 1 else 2.0),
    lib=LIBRARY,
)

# One for register_op, which no test takes back.
LIBRARY.define("registered(Tensor x, float factor) -> Tensor")
LIBRARY.impl("registered", _scaled, "CompositeExplicitAutograd")
torch.library.register_fake("graph_extension_tests::registered", lambda x, factor: torch.empty_like(x), lib=LIBRARY)


def _increment(x):
    return x.add_(1).clone()


LIBRARY.define("increment_(Tensor(a!) x) -> Tensor")
LIBRARY.impl("increment_", _increment, "CompositeExplicitAutograd")
torch.library.register_fake("graph_extension_tests::increment_", lambda x: torch.empty_like(x), lib=LIBRARY)


def compiled(fn, **kwargs):
    torch._dynamo.reset()
    return torch.compile(fn, backend="cxxinductor", **kwargs)


def calls_of(fn, *inputs, **kwargs):
    """The result, and how often ATen was called."""
    cxxinductor.reset_counters()
    result = compiled(fn, **kwargs)(*inputs)
    return result, cxxinductor.counters()["extern"]
