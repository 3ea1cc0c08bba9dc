"""Collects reports of compiles while a listener is registered: the base of explain()."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator


@dataclass
class GraphReport:
    """What became of one graph. ``str()`` of it is for people.

    Attributes:
        kind: inference, forward or backward.
        details: the C++ report:
            fallback_reason: why it runs op by op through ATen, or "".
            eager_reason: why it was given back to eager, or "".
            kernels: of each, name, device, launches per call, bytes_read and bytes_written per launch, accuracy (exact, bit-equal,
            last bits, order changed, fast), accuracy_details (lines), sizes: how many sets of sizes its launches give it as arguments
            (option generalize_kernels; 1: none), specializations: (name, for which sizes), calls: (ATen call, file, line, module) of what was
            fused into it.
            externs: the callee of each extern call. extern_reasons: of each callee the reasons why ATen computes it.
            collectives: lines on which collectives were joined (option collective_bucket_bytes), and which not and why.
            missed_fusions: (producer, consumer, reason, bytes) of each kernel that reads what another stores: which rule kept
            the two apart, and the bytes between them.
            memory: None for one that runs through ATen; else, at size hints where sizes are symbolic, peak: bytes that a
            call holds at most, with inputs that the caller gave up (a backward graph's); lower_bound: bytes of values alive
            at once; eager_peak: what the same calls hold one by one; of the main device, and in devices of each by name.
            text_passes: "NAME (after STAGE)" of passes that users registered and that took part.
            const_graph: None, or with option freezing what is computed once: kernels and externs as above, tensors: how many are
            kept, bytes: of them.
            times: (stage, seconds) of each run, without stages that ran inside of it. pass_times: seconds by pass, of all its runs, in pipeline
            order. texts: by stage, in pipeline order, the form after it; sources: (kernel, text). Both are filled by option dump.
        compiled: the callable; None for a graph given back to eager.
        read_seconds: what reading the graph took, before the compile.
    """

    kind: str
    details: dict[str, Any]
    compiled: Any = field(repr=False)
    read_seconds: float = 0.0

    def __str__(self) -> str:
        title = f"{self.kind} graph"
        if self.details["eager_reason"]:
            return f"{title}: given back to eager: {self.details['eager_reason']}"
        return self.compiled.describe(title, self.read_seconds)


@dataclass
class _Measured:
    seconds: float = 0.0


@dataclass(eq=False)  # each is one of its own
class _Listener:
    found: list[GraphReport] = field(default_factory=list)
    expected: list[Callable[[], None]] = field(default_factory=list)


_listeners: list[_Listener] = []
_extension_listeners: list[dict[str, None]] = []


@contextlib.contextmanager
def collect() -> Iterator[list[GraphReport]]:
    """Yields a list that receives a GraphReport for each graph compiled inside the block, in any thread. Leaving the block waits for
    compiles in the background that calls have not waited for (option background)."""
    listener = _Listener()
    _listeners.append(listener)
    try:
        yield listener.found
        for finish in listener.expected:
            finish()
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def collect_extensions() -> Iterator[dict[str, None]]:
    """Yields a dict whose keys are lines about what users registered and took part in compiles inside the block, in their order."""
    notes: dict[str, None] = {}
    _extension_listeners.append(notes)
    try:
        yield notes
    finally:
        _extension_listeners[:] = [other for other in _extension_listeners if other is not notes]


def note_extension(text: str) -> None:
    """Tells who collects extensions about one."""
    for notes in _extension_listeners:
        notes[text] = None


def expect(finish: Callable[[], None]) -> None:
    """Tells listeners how to finish a compile in the background, which then records its report."""
    for listener in _listeners:
        listener.expected.append(finish)


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
    report = GraphReport(kind, details, compiled, read_seconds)
    if explains:
        print(report, file=sys.stderr)
    elif times:
        print(f"{kind} graph: {compiled.describe_times(read_seconds)}", file=sys.stderr)
    _notify_listeners(report)


def record_eager(kind: str, reason: str) -> None:
    """Tells listeners about a graph that was given back to eager."""
    details = {"eager_reason": reason, "fallback_reason": "", "memory": None, "const_graph": None, "allocations": 0}
    for key in ("kernels", "externs", "collectives", "missed_fusions", "text_passes", "times", "sources"):
        details[key] = []
    for key in ("extern_reasons", "pass_times", "texts"):
        details[key] = {}
    _notify_listeners(GraphReport(kind, details, None))


def _notify_listeners(report: GraphReport) -> None:
    for listener in _listeners:
        listener.found.append(report)
