"""Progress of long compiles on a terminal. Nothing is shown if stderr is not a terminal or tqdm is not installed."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any, Iterator

from . import _C

_POLL_SECONDS = 0.2


@contextlib.contextmanager
def shown(options: "_C.Options", kind: str, delay: float = 2.0) -> Iterator[None]:
    """Shows a bar for the kernels that compile inside the block, once it has taken ``delay`` seconds.

    Args:
        options: ``progress`` switches this off.
        kind: which graph, for the bar's label.
    """
    bar_type = _bar_type() if options.get("progress") == "true" and sys.stderr.isatty() else None
    if bar_type is None:
        yield
        return
    finished = threading.Event()
    thread = threading.Thread(target=_watch, args=(bar_type, kind, delay, finished), daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def _bar_type() -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm


def _watch(bar_type: Any, kind: str, delay: float, finished: threading.Event) -> None:
    # Other threads may compile at the same time: their kernels count too.
    given_before, done_before = _C.compile_progress()
    if finished.wait(delay):
        return
    with bar_type(desc=f"cxxinductor compiles the {kind} graph", unit="kernel", leave=False, file=sys.stderr) as bar:
        while not finished.wait(_POLL_SECONDS):
            given, done = _C.compile_progress()
            bar.total = given - given_before or None
            bar.n = done - done_before
            bar.refresh()
