"""explain(fn, *inputs): what was compiled, what was not, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable

import torch

from . import _C, reports


@dataclass(frozen=True)
class Explanation:
    """What explain() found; ``str()`` of it is for people.

    Attributes:
        graphs: one report a compiled graph (see reports.GraphReport).
        counters: extern, graph_fallback and eager counts of this compile.
    """

    graphs: list[reports.GraphReport]
    counters: dict[str, int]

    def __str__(self) -> str:
        lines = []
        for number, graph in enumerate(self.graphs):
            lines += _describe(number, graph)
        c = self.counters
        lines.append(
            f"{len(self.graphs)} graphs; {c['kernels']} kernels; {c['extern']} extern calls; "
            f"{c['graph_fallback']} graph fallbacks; {c['eager']} graphs left to eager"
        )
        return "\n".join(lines)


def _describe(number: int, graph: reports.GraphReport) -> list[str]:
    d = graph.details
    lines = [f"graph {number} ({graph.kind})"]
    if d["fallback_reason"]:
        return lines + [f"  runs op by op through ATen: {d['fallback_reason']}"]
    if d["kernels"]:
        lines.append(f"  {'kernel':<42} {'launches':>8} {'MB read':>9} {'MB written':>10}  contract")
    for kernel in d["kernels"]:
        contract = "order-changed" if kernel["order_changed"] else "bit-equal"
        lines.append(
            f"  {kernel['name']:<42} {kernel['launches']:>8} {kernel['bytes_read'] / 1e6:>9.2f} "
            f"{kernel['bytes_written'] / 1e6:>10.2f}  {contract}"
        )
    externs = Counter(d["externs"])
    lines.append("  extern calls: " + (", ".join(f"{n} x {op}" for op, n in sorted(externs.items())) or "none"))
    refusals = [line for line in d["refusals"].splitlines() if line]
    if refusals:
        lines.append(f"  not fused ({len(refusals)}):")
        lines += [f"    {line}" for line in refusals[:20]]
        if len(refusals) > 20:
            lines.append(f"    ... and {len(refusals) - 20} more: CXXINDUCTOR_DUMP=loops writes all of them")
    lines.append("  time: " + ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in d["times"]))
    return lines


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
