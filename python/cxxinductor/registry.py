"""Registries of what users add to the compiler in Python, with the texts by which keys of caches tell entries apart."""

from __future__ import annotations

import hashlib
import inspect
import threading
from typing import Any, Callable, Generic, NamedTuple, TypeVar

from .errors import UserError

T = TypeVar("T")


class Registration:
    """What registering returns; ``remove()`` takes the registration back, for graphs that are compiled afterwards."""

    def __init__(self, remove: Callable[[], None]):
        self._remove = remove

    def remove(self) -> None:
        """Does nothing the second time."""
        self._remove()


class Entry(NamedTuple):
    identity: str
    value: Any


class Registry(Generic[T]):
    """Entries by name, in the order in which they were registered. Reading takes no lock: each change makes a new dictionary."""

    def __init__(self, what: str):
        self._what = what
        self._lock = threading.Lock()
        self._entries: dict[Any, Entry] = {}

    def add(self, name: Any, identity: str, value: T, removed: Callable[[], None] = lambda: None) -> Registration:
        """Adding the same again does nothing.

        Args:
            removed: called when the entry is removed.

        Raises:
            UserError: the name is registered with another identity.
        """
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                entry = Entry(identity, value)
                self._entries = {**self._entries, name: entry}
            elif entry.identity != identity:
                raise UserError(f"{self._what} {name} is registered already, with another function, version or setting: remove() that registration first")
        return Registration(lambda: self._remove(name, entry, removed))

    def _remove(self, name: Any, entry: Entry, removed: Callable[[], None]) -> None:
        with self._lock:
            if self._entries.get(name) is not entry:
                return
            self._entries = {other: kept for other, kept in self._entries.items() if other != name}
            removed()

    def entries(self) -> dict[Any, T]:
        return {name: entry.value for name, entry in self._entries.items()}

    def key(self) -> str:
        """A text that differs where the entries, or their order, do."""
        return "\n".join(f"{self._what} {name}: {entry.identity}" for name, entry in self._entries.items())


def identity_of(function: Callable[..., Any], version: str, what: str) -> str:
    """A text that changes with the function's source text and with the version.

    Raises:
        UserError: it is not callable, or its source text does not say what it does and there is no version.
    """
    if not callable(function):
        raise UserError(f"{what}: expected a function, found {function!r}")
    if not isinstance(version, str):
        raise UserError(f"{what}: expected a text as version, found {version!r}")
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    source, problem = _source(function)
    if problem and not version:
        raise UserError(f"{what}: {name} {problem}: give version=, a text that you change whenever what the function does changes")
    return f"{name} {hashlib.sha256(source.encode()).hexdigest()} version {version!r}"


def _source(function: Callable[..., Any]) -> tuple[str, str]:
    """The source text, and why it does not say all."""
    if not inspect.isfunction(function):
        return "", "is not a plain function, so that no source text says what it does"
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return "", "has no source text"
    if function.__name__ == "<lambda>":
        return source, "is a lambda, whose source text may be that of several"
    if function.__closure__:
        return source, "reads variables of the function around it, which its source text does not show"
    return source, ""
