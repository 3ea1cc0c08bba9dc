"""Where in the model a node of an FX graph comes from."""

from __future__ import annotations

import functools
import re

from torch.fx import Node

_FRAME = re.compile(r'File "([^"]*)", line (\d+)')
_MODULE_ROOT = re.compile(r"^[LG]\['[^']*'\]\.?")


def origin(node: Node) -> tuple[str, int, str, str]:
    """The file and line in the model, the path of the module, the operator."""
    return *model_line(node), str(node.target)


def model_line(node: Node) -> tuple[str, int, str]:
    """The name of the file, without its folder, the line, and the path of the module; "", 0 and "" where they are not known."""
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack.values()))[0] if stack else ""
    return *_innermost_frame(node.meta.get("stack_trace") or ""), _MODULE_ROOT.sub("", str(path))


@functools.lru_cache(maxsize=1024)  # many nodes come from one line
def _innermost_frame(stack_trace: str) -> tuple[str, int]:
    frame = _FRAME.search(stack_trace, max(0, stack_trace.rfind("File ")))
    file, number = frame.groups() if frame else ("", 0)
    name = file.replace("\\", "/").rsplit("/", 1)[-1].encode(errors="replace").decode()  # Python names files that are not UTF-8 with surrogates
    return name, int(number)


def where(node: Node) -> str:
    """An op with its line in the model: 'aten.add.Tensor (model.py:12)'."""
    file, line, _, call = origin(node)
    place = f" ({file}:{line})" if file else ""
    return f"{call}{place}"
