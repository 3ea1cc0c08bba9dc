"""The three kinds of error, as the C++ library throws them (support/error.h)."""

from __future__ import annotations


class Unsupported(RuntimeError):
    """This graph or op is outside what we compile; the caller falls back and says why."""


class UserError(ValueError):
    """The user's input is wrong; the message says what was expected, what was found and what to do."""


class InternalError(RuntimeError):
    """A bug of cxxinductor."""


class KernelMismatch(InternalError):
    """Option check found a kernel whose output differs from its reference; the message names it."""
