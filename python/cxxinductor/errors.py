"""The three kinds of error, as the C++ library throws them (support/error.h)."""

from __future__ import annotations

import torch


class Unsupported(RuntimeError):
    """This graph or op is outside what we compile; the caller falls back and says why."""


class UserError(ValueError):
    """The user's input is wrong; the message says what was expected, what was found and what to do."""


class IndexOutOfRange(UserError, IndexError, RuntimeError):
    """An element of a tensor of indices is out of range. Eager raises IndexError, and RuntimeError for gather and scatter."""


class DeviceIndexOutOfRange(IndexOutOfRange, torch.AcceleratorError):
    """The same in a kernel of an earlier call, as devices report it. The device stays usable."""


class InternalError(RuntimeError):
    """A bug of cxxinductor."""


class KernelMismatch(InternalError):
    """Option check found a kernel whose output differs from its reference; the message names it."""
