"""Option check (CXXINDUCTOR_CHECK): calls a compiled graph, with a warning about what was not checked.

The comparing is done in C++ at every call: csrc/driver/interp_check.h and csrc/torch_bridge/eager_check.h.
"""

from __future__ import annotations

import warnings
from typing import Any, Callable


def with_notes(compiled: Any) -> Callable[[list[Any]], Any]:
    """A boxed callable that runs ``compiled`` and then warns about each kernel that could not be checked, once."""

    def run(inputs: list[Any]) -> Any:
        outputs = compiled(inputs)
        for note in compiled.take_check_notes():
            warnings.warn(note, stacklevel=2)
        return outputs

    run._boxed_call = True  # type: ignore[attr-defined]
    return run
