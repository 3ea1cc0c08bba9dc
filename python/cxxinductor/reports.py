"""Collects what compiles did, while somebody listens: the base of explain()."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any, Iterator


@dataclass
class GraphReport:
    """One compiled graph. ``details`` is the C++ report: stage times (s), kernels, externs, texts, refusals."""

    kind: str
    details: dict[str, Any]
    compiled: Any = field(repr=False)


@dataclass
class _Stage:
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
        _listeners.remove(found)


@contextlib.contextmanager
def stage(_name: str) -> Iterator[_Stage]:
    measured = _Stage()
    start = time.perf_counter()
    try:
        yield measured
    finally:
        measured.seconds = time.perf_counter() - start


def record(compiled: Any, kind: str, read_seconds: float) -> None:
    if not _listeners:
        return
    details = compiled.report()
    details["times"] = [("read graph", read_seconds), *details["times"]]
    for listener in _listeners:
        listener.append(GraphReport(kind, details, compiled))
