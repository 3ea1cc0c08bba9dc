"""explain(fn, *inputs): what was compiled, what was not, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import torch

from . import _C, reports


@dataclass(frozen=True)
class Explanation:
    """What explain() found; ``str()`` of it is for people.

    Attributes:
        graphs: one report a graph (see reports.GraphReport).
        counters: extern, aten_fallback and eager_fallback counts of this compile.
    """

    graphs: list[reports.GraphReport]
    counters: dict[str, int]

    def __str__(self) -> str:
        c = self.counters
        last = (
            f"{len(self.graphs)} graphs; {c['kernels']} kernels; {c['extern']} extern calls; "
            f"{c['aten_fallback']} graph fallbacks; {c['eager_fallback']} graphs left to eager"
        )
        return "\n".join([*map(str, self.graphs), last])


def explain(fn: Callable[..., Any], *inputs: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> Explanation:
    """Compiles ``fn`` afresh, runs it once on ``inputs``, and says what happened.

    Args:
        fn: a function or module. inputs, kwargs: its arguments; it is called once with them.
        options: as torch.compile(options=...).
    """
    torch._dynamo.reset()
    before = _C.counters()
    with reports.collect() as graphs:
        torch.compile(fn, backend="cxxinductor", options=options or {})(*inputs, **kwargs)
    after = _C.counters()
    return Explanation(graphs, {name: after[name] - before[name] for name in after})
