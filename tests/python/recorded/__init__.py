"""Programs for the recorded device and eager: functions of a device's name, whose results are compared. `worker` runs them."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, Callable

FILES = ("loops", "optimizers", "precision", "tensors", "memory", "files", "errors", "networks")


@dataclasses.dataclass(frozen=True)
class Program:
    function: Callable[[str], Any]
    rtol: float
    atol: float
    not_on_gpus: str  # why it does not run there; "": it does


PROGRAMS: dict[str, Program] = {}


def program(function: Callable[[str], Any] | None = None, *, name: str = "", rtol: float = 1e-5, atol: float = 1e-6, not_on_gpus: str = "") -> Any:
    """Adds a function to PROGRAMS."""

    def add(function: Callable[[str], Any]) -> Callable[[str], Any]:
        key = name or function.__name__
        assert key not in PROGRAMS, key
        PROGRAMS[key] = Program(function, rtol, atol, not_on_gpus)
        return function

    return add(function) if function else add


def load_programs() -> dict[str, Program]:
    for file in FILES:
        importlib.import_module(f".{file}", __name__)
    return PROGRAMS
