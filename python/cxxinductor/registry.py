"""Registries of what users add to the compiler in Python, with the texts by which keys of caches tell entries apart."""

from __future__ import annotations

import hashlib
import inspect
import threading
import types
from typing import Any, Callable, Generic, NamedTuple, TypeVar

import torch

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
    function: Any  # of a callable that no code tells from others; else None


class Snapshot(NamedTuple):
    """The entries at one time. A compile reads one from its begin to its end, whatever is registered and removed meanwhile."""

    entries: dict[Any, Any]
    key: str  # differs where the entries, or their order, do


class Registry(Generic[T]):
    """Entries by name, in the order in which they were registered. Reading takes no lock: each change makes a new dictionary."""

    def __init__(self, what: str):
        self._what = what
        self._lock = threading.Lock()
        self._entries: dict[Any, Entry] = {}

    def add(self, name: Any, identity: str, value: T, function: Any = None, removed: Callable[[], None] = lambda: None) -> Registration:
        """Adding the same again does nothing.

        Args:
            function: what the identity is of. Of callables other than plain functions, equal identities do not mean that they are the same.
            removed: called when the entry is removed.

        Raises:
            UserError: the name is registered with another identity.
        """
        with self._lock:
            unknown = None if inspect.isfunction(function) else function
            entry = self._entries.get(name)
            if entry is None:
                entry = Entry(identity, value, unknown)
                self._entries = {**self._entries, name: entry}
            elif entry.identity != identity or entry.function is not unknown:
                raise UserError(f"{self._what} {name} is registered already, with another function, version or setting: remove() that registration first")
        return Registration(lambda: self._remove(name, entry, removed))

    def _remove(self, name: Any, entry: Entry, removed: Callable[[], None]) -> None:
        with self._lock:
            if self._entries.get(name) is not entry:
                return
            self._entries = {other: kept for other, kept in self._entries.items() if other != name}
            removed()

    def entries(self) -> dict[Any, T]:
        return self.snapshot().entries

    def snapshot(self) -> Snapshot:
        entries = self._entries
        key = "\n".join(f"{self._what} {name}: {entry.identity}" for name, entry in entries.items())
        return Snapshot({name: entry.value for name, entry in entries.items()}, key)


def identity_of(function: Callable[..., Any], version: str, what: str) -> str:
    """A text that changes with the function's code, with the constants that it reads, and with the version.

    Raises:
        UserError: it is not callable, or its code does not say what it does and there is no version.
    """
    if not callable(function):
        raise UserError(f"{what}: expected a function, found {function!r}")
    if not isinstance(version, str):
        raise UserError(f"{what}: expected a text as version, found {version!r}")
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    read, problem = _what_it_reads(function)
    if problem and not version:
        raise UserError(f"{what}: {name} {problem}: give version=, a text that you change whenever what the function does changes")
    return f"{name} {hashlib.sha256(read.encode()).hexdigest()} version {version!r}"


_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(...), torch.dtype, torch.device, torch.layout, torch.memory_format)


def _what_it_reads(function: Callable[..., Any]) -> tuple[str, str]:
    """The function's code, defaults and the constants of its module that it names, as a text; and why that does not say all."""
    if not inspect.isfunction(function):
        return "", "is not a plain function, so that no code says what it does"
    code, problems = function.__code__, []
    parts = [_code_text(code)]
    for kind, values in (("default", _defaults(function)), ("global", _globals_read(function))):
        for name, value in values.items():
            if _is_constant(value):
                parts.append(f"{kind} {name} {_constant_text(value)}")
            elif kind == "default" or not _is_code(value):
                problems.append(f"reads the {kind} {name}, a {type(value).__qualname__}, which its code does not show")
    if function.__name__ == "<lambda>":
        problems.append("is a lambda, which has no name of its own")
    if function.__closure__:
        problems.append("reads variables of the function around it, which its code does not show")
    return "\n".join(parts), problems[0] if problems else ""


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    return dict(zip(positional[len(positional) - len(defaults) :], defaults)) | (function.__kwdefaults__ or {})


def _code_text(code: types.CodeType) -> str:
    constants = [_code_text(value) if isinstance(value, types.CodeType) else _constant_text(value) for value in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {code.co_exceptiontable.hex()} ({', '.join(constants)})"


def _constant_text(value: Any) -> str:
    """The same in every process: the order of a set's elements is not."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_constant_text, value))})"
    return f"({', '.join(map(_constant_text, value))})" if isinstance(value, tuple) else repr(value)


def _names(code: types.CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(value) for value in code.co_consts if isinstance(value, types.CodeType)))


def _globals_read(function: types.FunctionType) -> dict[str, Any]:
    return {name: function.__globals__[name] for name in sorted(_names(function.__code__)) if name in function.__globals__}


def _is_constant(value: Any) -> bool:
    return all(map(_is_constant, value)) if isinstance(value, (tuple, frozenset)) else isinstance(value, _CONSTANTS)


def _is_code(value: Any) -> bool:
    """Something to call or to look into, as torch and its ops: what functions call is the version's to tell."""
    return callable(value) or isinstance(value, types.ModuleType) or type(value).__module__.startswith("torch._")
