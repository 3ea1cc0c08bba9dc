"""Options of a compile: names, defaults and docs come from the C++ table (cxxinductor/options.def), nothing is repeated here."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from . import _C
from .errors import UserError


_WIDTH = 132  # of a line of the printed table


class OptionTable(list):
    """One dict per option: name, type (bool, int, float or str), default, values (the words that it accepts; empty: every value of its type),
    environment (variable), decides_what_is_compiled (bool) and doc. ``str()`` of it is a table for people."""

    def __str__(self) -> str:
        return "\n".join(line for row in self for line in _describe_option(row))

    __repr__ = __str__


def _describe_option(row: dict[str, Any]) -> list[str]:
    words = {"bool": "true, false", "int": "a number", "float": "0 to 1", "str": "text"}
    values = ", ".join(row["values"]) or words[row["type"]]
    head = f"{row['name']} = {row['default'] or '(empty)'}    [{row['environment']}]"
    indented = {"width": _WIDTH, "initial_indent": "    ", "subsequent_indent": "    ", "break_on_hyphens": False}
    return [head, *textwrap.wrap(row["doc"], **indented), *textwrap.wrap(f"values: {values}", **indented)]


def option_table() -> OptionTable:
    """All options, as docs/options.md lists them; print it, or read its rows."""
    return OptionTable(_C.option_table())


# What torch.compile(mode=...) sets. Choices that "max-autotune" would measure are made by the default mode's rules.
MODES: dict[str, dict[str, str]] = {
    "default": {},
    "reduce-overhead": {"cuda_graphs": "on"},
    "max-autotune": {},
    "max-autotune-no-cudagraphs": {},
}


def _is_text(value: str) -> bool:
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def resolve(options: Mapping[str, Any] | None, mode: str | None = None) -> "_C.Options":
    """Options of a mode, overridden by the environment (CXXINDUCTOR_*), and that by ``torch.compile(options=...)``.

    Raises:
        UserError: a mode, an option or a CXXINDUCTOR_ variable is unknown (the message lists the known ones) or has a bad value, or no target is
            registered by the name in option target.
    """
    import os

    if mode is not None and mode not in MODES:
        raise UserError(f"unknown mode {mode!r}; known modes: {', '.join(MODES)}")
    variables = {row["name"]: row["environment"] for row in _C.option_table()}
    environment = {variables[name]: value for name, value in MODES[mode or "default"].items()}
    environment.update((k, v) for k, v in os.environ.items() if k.startswith("CXXINDUCTOR_") and (v or k not in environment))
    resolved = _C.Options.from_environment(list(environment.items()))
    if options is not None and not isinstance(options, Mapping):
        raise UserError(f"options: expected a dict of names and values, found {type(options).__name__}")
    for name, value in (options or {}).items():
        if not isinstance(name, str) or not _is_text(name):
            raise UserError(f"options: expected names, found {type(name).__name__} {name!r}")
        if isinstance(value, bool):
            value = "true" if value else "false"
        if not isinstance(value, (str, int, float)):
            raise UserError(f"option {name!r}: expected a string, number or bool, found {type(value).__name__}")
        if not _is_text(str(value)):
            raise UserError(f"option {name!r}: expected text without NUL and lone surrogates, found {value!r}")
        resolved.set(name, str(value))
    resolved.check_target()
    return resolved
