"""Several calls as one function: its parameters are the calls' tensors, all else stands in its text."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable, Sequence

import torch
from torch.utils._pytree import tree_leaves

from .calls import Call, fresh


@dataclasses.dataclass(frozen=True)
class Program:
    calls: tuple[Call, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.calls))

    @property
    def form(self) -> str:
        return self.calls[0].form

    def arguments(self) -> list[torch.Tensor]:
        """Copies, in the order of the parameters."""
        return [x for x in tree_leaves(fresh([call.arguments for call in self.calls])) if isinstance(x, torch.Tensor)]

    def text(self) -> str:
        return self._written[0]

    def function(self) -> Callable[..., list[Any]]:
        text, names = self._written
        scope = {"torch": torch, "nan": float("nan"), "inf": float("inf"), **names}
        exec(compile(text, f"<{self.calls[0]}>", "exec"), scope)
        return scope["program"]

    @functools.cached_property
    def _written(self) -> tuple[str, dict[str, Any]]:
        writer = _Writer()
        lines = [f"    r{i} = {writer.call(i, call)}" for i, call in enumerate(self.calls)]
        head = f"def program({', '.join(f't{i}' for i in range(writer.tensors))}):"
        results = ", ".join(f"r{i}" for i in range(len(self.calls)))
        return "\n".join([head, *lines, f"    return [{results}]"]), writer.names


class _Writer:
    def __init__(self) -> None:
        self.tensors = 0
        self.names: dict[str, Any] = {}

    def call(self, number: int, call: Call) -> str:
        self.names[f"f{number}"] = call.function
        args, kwargs = call.arguments
        written = [self.value(x) for x in args] + [f"{name}={self.value(x)}" for name, x in kwargs.items()]
        return f"f{number}({', '.join(written)})"

    # Dictionaries are flattened in the order of their keys as they stand, as arguments() does.
    def value(self, value: Any) -> str:
        if isinstance(value, torch.Tensor):
            self.tensors += 1
            return f"t{self.tensors - 1}"
        if type(value) in (list, tuple):
            items = [self.value(item) for item in value]
            return f"[{', '.join(items)}]" if isinstance(value, list) else f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if value is None or type(value) in (bool, int, float, complex, str, slice, torch.dtype) or value is Ellipsis:
            return repr(value)
        self.names[f"c{len(self.names)}"] = value
        return f"c{len(self.names) - 1}"


def programs(calls: Sequence[Call], size: int) -> list[Program]:
    """Calls of one form in each."""
    found = []
    for form in dict.fromkeys(call.form for call in calls):
        alike = [call for call in calls if call.form == form]
        found += [Program(tuple(alike[i : i + size])) for i in range(0, len(alike), size)]
    return found
