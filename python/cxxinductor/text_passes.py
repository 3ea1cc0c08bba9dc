"""Passes over texts of the compiler's forms that users register in Python: threads run them, since those that compile run nothing of Python's."""

from __future__ import annotations

import os
import threading
from typing import Callable

from . import _C
from .errors import UserError
from .registry import Registration, Registry

REGISTRY: Registry[Callable[[str], str]] = Registry("graph pass")

# By number of registration. A pass that was removed still answers the compiles that began with it.
_functions: list[Callable[[str], str]] = []
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
            self.requests.answer(number, _answer(name, text))


def _answer(number: str, text: bytes) -> bytes:
    """What the pass returns behind "=", or behind "!" why it returns nothing."""
    try:
        found = _functions[int(number)](text.decode())
        return f"={found}".encode() if isinstance(found, str) else f"!expected a text, found {type(found).__name__}".encode()
    except BaseException as error:  # the pass's own: the thread has more to answer
        return _described(error).encode(errors="replace")


def _described(error: BaseException) -> str:
    try:
        return f"!{type(error).__name__}: {error}"
    except BaseException:  # errors of users say what they like
        return f"!{type(error).__name__}"


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
        number = len(_functions)
        _functions.append(function)
    is_registered = False

    def removed() -> None:
        if is_registered:
            _C.remove_text_pass(name)

    registration = REGISTRY.add(name, f"{stage} {identity}", function, function, removed)
    try:
        _C.register_text_pass(name, stage, identity, str(number), requests)
        is_registered = True
    except UserError:
        registration.remove()
        raise
    return registration
