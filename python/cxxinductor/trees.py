"""How the arguments and results of a model in a file are nested: the containers of ``torch.utils._pytree``.

Files are untrusted, and PyTorch imports the modules that a tree names: of enums and of default factories. What would do so is refused here
before PyTorch reads it.
"""

from __future__ import annotations

import enum
import itertools
import json
import operator
import sys
from typing import Any, Callable, Sequence

from torch.utils import _pytree as pytree

from . import errors

_FACTORIES = ("bool", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple")


class ModelTrees:
    """Of one model. ``arguments`` and ``results``: texts of ``treespec_dumps``, ``""`` where the file does not say."""

    def __init__(self, arguments: str, results: str):
        self._arguments, self._results = _read(arguments), _read(results)
        # How many positional arguments there are, where all of them are leaves and there are no others.
        self._count = -1
        if self._arguments and self._arguments.type is tuple and self._arguments.num_children == 2:
            args, kwargs = self._arguments.children()
            if args.type is tuple and kwargs.num_children == 0 and all(child.is_leaf() for child in args.children()):
                self._count = args.num_children

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any], input_types: Callable[[], list[str]]) -> Sequence[Any]:
        """In the order of the model's inputs. UserError where they are nested otherwise than at the export. input_types: for its message."""
        if not kwargs and (self._arguments is None or len(args) == self._count):
            return args
        if self._arguments is None:
            raise errors.UserError(f"run: expected no keywords, found {sorted(kwargs)}: the file does not say how arguments are nested")
        try:
            return self._arguments.flatten_up_to((args, kwargs))
        except ValueError as error:
            raise errors.UserError(f"run: {_difference(self._arguments, args, kwargs, input_types()) or error}") from error

    def results(self, leaves: list[Any]) -> Any:
        return leaves if self._results is None else pytree.tree_unflatten(leaves, self._results)


def _difference(arguments: pytree.TreeSpec, args: tuple[Any, ...], kwargs: dict[str, Any], input_types: list[str]) -> str:
    """Which arguments are missing or too many, or the first that is nested otherwise; "" where the file says neither. input_types: of the leaves."""
    if arguments.type is not tuple or [child.type for child in arguments.children()] != [tuple, dict]:
        return ""
    positional, keywords = arguments.children()
    specs, names = positional.children(), keywords.context
    leaves = iter(input_types)
    described = [f"({'; '.join(itertools.islice(leaves, spec.num_leaves))})" for spec in (*specs, *keywords.children())]
    if len(args) != len(specs) or kwargs.keys() != set(names):
        known = f" ({'; '.join(input_types[: positional.num_leaves])})" if specs else ""
        wanted = f"{len(specs)} positional argument{'' if len(specs) == 1 else 's'}{known}"
        named = [f"{name} {types}" for name, types in zip(names, described[len(specs) :])]
        return f"expected {wanted}{_with_keywords(named)}, found {len(args)}{_with_keywords(list(kwargs))}"
    whats = [*(f"positional argument {i}" for i in range(len(specs))), *(f"keyword {name}" for name in names)]
    values = [*args, *(kwargs[name] for name in names)]
    for what, types, spec, value in zip(whats, described, (*specs, *keywords.children()), values):
        try:
            spec.flatten_up_to(value)
        except ValueError as error:
            return f"{what} {types}: {error}"
    return ""


def _with_keywords(names: list[str]) -> str:
    return f" and keyword{'' if len(names) == 1 else 's'} {', '.join(names)}" if names else ""


def _read(text: str) -> pytree.TreeSpec | None:
    if not text:
        return None
    _check(json.loads(text)[1])
    try:
        return pytree.treespec_loads(text)
    except (AssertionError, AttributeError, KeyError, NotImplementedError, TypeError, ValueError) as error:
        raise errors.UserError(f"run: a container that PyTorch does not read: {error}") from error


def _check(node: dict[str, Any]) -> None:
    kind, context = node["type"], node["context"]
    if kind is None:
        return
    for name in [kind, context] if kind == "collections.namedtuple" else [kind]:
        if name not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
            raise errors.UserError(
                f"run: expected containers of registered types, found {name!r}: register it under this name as for the export "
                "(torch.export.register_dataclass, torch.utils._pytree.register_pytree_node), or call run_leaves"
            )
    if kind == "collections.defaultdict" and not _is_builtin_factory(context):
        raise errors.UserError(f"run: expected a defaultdict of a builtin type, found {context}: call run_leaves")
    if pytree.SUPPORTED_SERIALIZED_TYPES[pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE[kind]].from_dumpable_context is None:
        _check_enums(_read_json(kind, context))
    for child in node["children_spec"]:
        _check(child)


def _read_json(kind: str, context: Any) -> Any:
    try:
        return json.loads(context)
    except (TypeError, ValueError) as error:
        raise errors.UserError(f"run: a {kind} of the file: expected JSON, found {context!r}") from error


def _is_builtin_factory(context: Any) -> bool:
    return (
        isinstance(context, dict) and context.get("default_factory_module") == "builtins" and context.get("default_factory_name") in _FACTORIES
    )


def _check_enums(value: Any) -> None:
    """Enums of modules that the program has imported."""
    if isinstance(value, list):
        for item in value:
            _check_enums(item)
    elif isinstance(value, dict):
        for item in value.values():
            _check_enums(item)
        if "__enum__" in value:
            module, _, name = str(value.get("fqn")).partition(":")
            try:
                found = operator.attrgetter(name)(sys.modules[module])
            except (AttributeError, KeyError):
                found = None
            if not (isinstance(found, type) and issubclass(found, enum.Enum)):
                raise errors.UserError(f"run: expected an enum of an imported module, found {value.get('fqn')!r}: call run_leaves")
