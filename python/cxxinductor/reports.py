"""Collects reports of compiles while a listener is registered, and formats them: the base of explain()."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Iterable, Iterator

_MOST_CALLS = 8  # named of one kernel
_MOST_PAIRS = 12  # of kernels that were not fused, named
_MOST_PASSES = 3  # named beside the stages


@dataclass
class GraphReport:
    """What became of one graph. ``str()`` of it is for people.

    Attributes:
        kind: inference, forward or backward.
        details: the C++ report:
            fallback_reason: why it runs op by op through ATen, or "".
            eager_reason: why it was given back to eager, or "".
            kernels: of each, name, device, launches a call, bytes_read and bytes_written a launch, accuracy (exact, bit-equal,
            last bits, order changed, fast), accuracy_details (lines), sizes: how many sets of sizes its launches give it as arguments
            (option generalize_kernels; 1: none), specializations: (name, for which sizes), calls: (ATen call, file, line, module) of what was
            fused into it.
            externs: the callee of each extern call. extern_reasons: of each callee the reasons why ATen computes it.
            missed_fusions: (producer, consumer, reason, bytes) of each kernel that reads what another stores: which rule kept
            the two apart, and the bytes between them.
            memory: None for one that runs through ATen; else, at size hints where sizes are symbolic, peak: bytes that a
            call holds at most, with inputs that the caller gave up (a backward graph's); lower_bound: bytes of values alive
            at once; eager_peak: what the same calls hold one by one; of the main device, and in devices of each by name.
            const_graph: None, or with option freezing what is computed once: kernels and externs as above, tensors: how many are
            kept, bytes: of them.
            times: (stage, seconds). pass_times: seconds by pass, of all its runs. texts, sources: filled by option dump.
        compiled: the callable; None for a graph given back to eager.
    """

    kind: str
    details: dict[str, Any]
    compiled: Any = field(repr=False)

    def __str__(self) -> str:
        return "\n".join(describe(self))


@dataclass
class _Measured:
    seconds: float = 0.0


_listeners: list[list[GraphReport]] = []


@contextlib.contextmanager
def collect() -> Iterator[list[GraphReport]]:
    """Yields a list that receives a GraphReport for each graph compiled inside the block, in any thread."""
    found: list[GraphReport] = []
    _listeners.append(found)
    try:
        yield found
    finally:
        # By identity: lists that hold equal reports, or none yet, are equal.
        _listeners[:] = [listener for listener in _listeners if listener is not found]


@contextlib.contextmanager
def stopwatch() -> Iterator[_Measured]:
    """Yields an object whose ``seconds`` are those of the block, once it is left."""
    measured = _Measured()
    start = time.perf_counter()
    try:
        yield measured
    finally:
        measured.seconds = time.perf_counter() - start


def record(compiled: Any, kind: str, read_seconds: float, options: Any) -> None:
    """Tells listeners about a compiled graph, and prints what the options explain and time ask for to stderr."""
    explains, times = options.get("explain") == "true", options.get("time") == "true"
    if not (_listeners or explains or times):
        return
    details = {"eager_reason": "", **compiled.report()}
    details["times"] = [("read graph", read_seconds), *details["times"]]
    report = GraphReport(kind, details, compiled)
    if explains:
        print(report, file=sys.stderr)
    elif times:
        print(f"{kind} graph: {_times(details)}", file=sys.stderr)
    _notify_listeners(report)


def record_eager(kind: str, reason: str) -> None:
    """Tells listeners about a graph that was given back to eager."""
    _notify_listeners(GraphReport(kind, {"eager_reason": reason, "fallback_reason": "", "kernels": [], "externs": [], "extern_reasons": {}, "missed_fusions": [], "times": [], "pass_times": {}}, None))


def _notify_listeners(report: GraphReport) -> None:
    for listener in _listeners:
        listener.append(report)


# ---- in words --------------------------------------------------------------------------------------------------------


def describe(graph: GraphReport) -> list[str]:
    """The report as lines of text."""
    d = graph.details
    if d["eager_reason"]:
        return [f"{graph.kind} graph: given back to eager: {d['eager_reason']}"]
    if d["fallback_reason"]:
        return [f"{graph.kind} graph: runs op by op through ATen: {d['fallback_reason']}"]
    kernels = d["kernels"]
    launches = sum(k["launches"] for k in kernels)
    lines = [
        f"{graph.kind} graph: {len(kernels)} kernels, {launches} launches and {len(d['externs'])} extern calls a call; own kernels "
        f"read {_megabytes(sum(k['bytes_read'] * k['launches'] for k in kernels))} and write "
        f"{_megabytes(sum(k['bytes_written'] * k['launches'] for k in kernels))}"
    ]
    if d["memory"]:
        devices = d["memory"]["devices"]
        for device, memory in devices.items():
            eager = "" if memory["eager_peak"] is None else f" (eager {_megabytes(memory['eager_peak'])})"
            where = f" on {device}" if len(devices) > 1 else ""
            lines.append(
                f"  peak memory{where} of what a call allocates: {_megabytes(memory['peak'])}{eager}, at least "
                f"{_megabytes(memory['lower_bound'])} (values alive at once)"
            )
    if d["const_graph"]:
        once = d["const_graph"]
        lines.append(
            f"  once, and after writes to parameters: {sum(k['launches'] for k in once['kernels'])} launches and {len(once['externs'])} "
            f"extern calls make {once['tensors']} tensors, {_megabytes(once['bytes'])}, which are kept"
        )
    mixed = len({kernel["device"] for kernel in kernels}) > 1
    for kernel in kernels:
        lines += _describe_kernel(kernel, f" on {kernel['device']}" if mixed else "")
    externs = Counter(d["externs"])
    lines.append("  extern calls: " + (", ".join(f"{n} x {op}" for op, n in sorted(externs.items())) or "none"))
    lines += _describe_reasons(d["extern_reasons"])
    lines += _describe_missed_fusions(d["missed_fusions"])
    lines.append(f"  time: {_times(d)}")
    return lines


def _describe_reasons(reasons: dict[str, set[str]]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for callee in sorted(reasons):
        for reason in sorted(reasons[callee]):
            by_reason.setdefault(reason, []).append(callee)
    return [f"    {', '.join(callees)}: {reason}" for reason, callees in by_reason.items()]


def _describe_kernel(kernel: dict[str, Any], where: str) -> list[str]:
    lines = [
        f"  {kernel['name']}{where}: {kernel['launches']} launches, each reads {_megabytes(kernel['bytes_read'])}, writes "
        f"{_megabytes(kernel['bytes_written'])}; {kernel['accuracy']}"
    ]
    calls = Counter((call, _place(file, line, module)) for call, file, line, module in kernel["calls"])
    named = [f"{call}{place}{f' x {n}' if n > 1 else ''}" for (call, place), n in calls.items()]
    more = f" and {len(named) - _MOST_CALLS} more" if len(named) > _MOST_CALLS else ""
    if named:
        lines.append(f"    {'fuses' if len(kernel['calls']) > 1 else 'for'} {', '.join(named[:_MOST_CALLS])}{more}")
    if kernel["sizes"] > 1:
        lines.append(f"    takes sizes as arguments: {kernel['sizes']} different ones")
    if kernel["specializations"]:
        lines.append(f"    replaced by {len(kernel['specializations'])} kernels for particular sizes once they are compiled")
    return lines + [f"    {fact}" for fact in kernel["accuracy_details"]]


def _place(file: str, line: int, module: str) -> str:
    parts = [f"{file}:{line}" if file else "", module]
    return f" ({', '.join(part for part in parts if part)})" if any(parts) else ""


def _describe_missed_fusions(missed_fusions: list[tuple[str, str, str, int]]) -> list[str]:
    """Pairs of kernels with the most bytes between them first. Launches of one kernel are one pair."""
    if not missed_fusions:
        return []
    between: Counter[tuple[str, str, str]] = Counter()
    for *pair, count in missed_fusions:
        between[tuple(pair)] += count
    times = Counter(tuple(pair) for *pair, _ in missed_fusions)
    lines = [f"  not fused: {len(missed_fusions)} pairs with {_megabytes(between.total())} between them"]
    for (producer, consumer, reason), count in between.most_common(_MOST_PAIRS):
        repeated = f" x {times[producer, consumer, reason]}" if times[producer, consumer, reason] > 1 else ""
        lines.append(f"    {producer} -> {consumer}{repeated}, {_megabytes(count)}: {reason}")
    rest = between.most_common()[_MOST_PAIRS:]
    return lines + ([f"    and {len(rest)} more, {_megabytes(sum(count for _, count in rest))}"] if rest else [])


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 10_000 else f"{count} bytes"


def _times(details: dict[str, Any]) -> str:
    total = sum(seconds for _, seconds in details["times"])
    text = f"{total * 1e3:.1f} ms: " + _milliseconds(details["times"])
    slowest = Counter(details["pass_times"]).most_common(_MOST_PASSES)
    return text + (f"; slowest passes {_milliseconds(slowest)}" if slowest else "")


def _milliseconds(times: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {seconds * 1e3:.1f}" for name, seconds in times)
