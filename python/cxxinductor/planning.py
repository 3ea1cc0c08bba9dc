"""Plans functions for devices that this machine does not have."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Mapping

import torch
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.fx.experimental import proxy_tensor
from torch.utils import _pytree as pytree

from . import _C, collectives, config, decompositions, fx_reader


def plan_text(
    fn: Callable[..., Any],
    *inputs: Any,
    gpu: str = "sm_90a",
    multiprocessors: int = 132,
    options: Mapping[str, Any] | None = None,
) -> str:
    """The plan (docs/ir.md) that an inference graph of ``fn`` becomes. Nothing is compiled and nothing runs: tensors on GPUs
    need no GPU when they are made under a FakeTensorMode.

    Args:
        inputs: what fn takes; tensors, real or fake, lend their sizes, strides, dtypes and devices alone.
        gpu: architecture of the GPUs, as NVRTC names it. multiprocessors: of each of them.
        options: names of ``cxxinductor.option_table()``.

    Raises:
        Unsupported: the graph has what cannot be compiled; the message says what, and where.
    """
    leaves = [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    mode = next((leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor)), None) or FakeTensorMode()
    inputs = pytree.tree_map_only(torch.Tensor, mode.from_tensor, inputs)

    def flat(*arguments: Any) -> list[Any]:
        return [leaf for leaf in pytree.tree_leaves(fn(*arguments)) if isinstance(leaf, torch.Tensor)]

    functional = torch.func.functionalize(flat, remove="mutations")
    gpus = max((leaf.device.index or 0 for leaf in leaves if leaf.is_cuda), default=-1) + 1
    constants = _constants_left() if gpus > 0 and not torch.cuda.is_available() else contextlib.nullcontext()
    with mode, torch.no_grad(), constants:
        gm = proxy_tensor.make_fx(functional, decomposition_table=decompositions.table(), tracing_mode="fake")(*inputs)
    builder = fx_reader.read_graph(gm, "plan").builder
    resolved = config.resolve(options)
    collectives.join(builder, resolved, sizes_may_vary=False)
    return _C.plan(builder, gpu, multiprocessors, gpus, resolved)["text"]


@contextlib.contextmanager
def _constants_left() -> Iterator[None]:
    """Tracing would compute small constants, also those on a GPU that is not there."""
    limit = proxy_tensor.CONSTANT_NUMEL_LIMIT
    proxy_tensor.CONSTANT_NUMEL_LIMIT = -1
    try:
        yield
    finally:
        proxy_tensor.CONSTANT_NUMEL_LIMIT = limit
