"""Passes over texts of the compiler's forms that users register in Python: threads run them, since those that compile run nothing of Python's."""

from __future__ import annotations

import os
import threading
from typing import Callable

from . import _C
from .errors import UserError
from .registry import Registration, Registry

REGISTRY: Registry[Callable[[str], str]] = Registry("graph pass")

_PATIENCE = 60_000  # milliseconds
_SERVING_THREADS = 2


class _Server:
    """Threads that answer compiles; they start with the first pass, and anew in a forked child."""

    lock = threading.Lock()
    current: _Server | None = None

    def __init__(self) -> None:
        self.requests = _C.open_text_passes(_PATIENCE)
        self.start()

    def start(self) -> None:
        for number in range(_SERVING_THREADS):
            threading.Thread(target=self._serve, daemon=True, name=f"cxxinductor passes {number}").start()

    def _serve(self) -> None:
        while request := self.requests.next():
            number, name, text = request
            self.requests.answer(number, _answer(name, text.decode()).encode())


def _answer(name: str, text: str) -> str:
    """What the pass returns behind "=", or behind "!" why it returns nothing."""
    function = REGISTRY.entries().get(name)
    if function is None:
        return "!it was removed"
    try:
        found = function(text)
    except BaseException as error:  # the pass's own: the thread has more to answer
        return f"!{type(error).__name__}: {error}"
    return f"={found}" if isinstance(found, str) else f"!expected a text, found {found!r}"


def _start_in_child() -> None:
    if _Server.current is not None:
        _Server.lock = threading.Lock()
        _Server.current.start()


os.register_at_fork(after_in_child=_start_in_child)


def add(name: str, stage: str, identity: str, function: Callable[[str], str]) -> Registration:
    """Raises:
        UserError: the name or the stage is not one that a pass may have, or another pass has the name.
    """
    with _Server.lock:
        if _Server.current is None:
            _Server.current = _Server()
        requests = _Server.current.requests
    registration = REGISTRY.add(name, f"{stage} {identity}", function, lambda: _C.remove_text_pass(name))
    try:
        _C.register_text_pass(name, stage, identity, requests)
    except UserError:
        registration.remove()
        raise
    return registration
