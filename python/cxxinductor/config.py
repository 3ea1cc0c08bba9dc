"""Options of a compile: names, defaults and docs come from the C++ table (support/options.def), nothing is repeated here."""

from __future__ import annotations

from typing import Any, Mapping

from . import _C
from .errors import UserError


def option_table() -> list[dict[str, str]]:
    """All options: name, type, default, environment variable and doc, one dict each."""
    return _C.option_table()


def resolve(options: Mapping[str, Any] | None) -> "_C.Options":
    """Options from the environment (CXXINDUCTOR_*), overridden by ``torch.compile(options=...)``.

    Raises:
        UserError: an option or a CXXINDUCTOR_ variable is unknown (the message lists the known ones) or has a bad value.
    """
    import os

    resolved = _C.Options.from_environment([(k, v) for k, v in os.environ.items() if k.startswith("CXXINDUCTOR_")])
    for name, value in (options or {}).items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        if not isinstance(value, (str, int, float)):
            raise UserError(f"option {name!r}: expected a string, number or bool, found {type(value).__name__}")
        resolved.set(name, str(value))
    return resolved
