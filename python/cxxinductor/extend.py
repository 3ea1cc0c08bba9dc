"""What users add to the compiler: ops that kernels compute, decompositions, passes over graphs, patterns, and targets. docs/extend.md."""

from __future__ import annotations

import os
from typing import Any, Callable, Sequence

import torch

from . import _C, graph_passes, patterns, text_passes, user_decompositions
from .errors import UserError
from .graph_passes import GraphPass
from .registry import Registration, identity_of

_registered: dict[str, str] = {}  # by op as FX graphs name it: what it was registered as


def register_op(
    op: Any,
    *,
    cuda: str = "",
    cpu: str = "",
    cuda_source: str = "",
    cpu_source: str = "",
    definition: str = "",
    types: str = "floating",
    transcendental: bool = False,
    standard_result: bool = False,
) -> None:
    """Compiles calls of an elementwise op of yours into kernels.

    Each element of the result is a function of the operands' elements, which are broadcast and promoted to one dtype; eager PyTorch
    runs the op's own implementation, which has to agree. A registration holds for the life of the process, for graphs that are compiled
    afterwards, and is part of the keys of all caches.

    Args:
        op: the overload, such as ``torch.ops.mylib.swish.default``. Its arguments are one to five tensors and numbers, and it returns a tensor.
        cuda, cpu: an expression of CUDA C++ and of C++ with ``{0} {1} ...`` for the operands, which have the compute type (``float`` for
            float16 and bfloat16), and ``{T}`` for its name. Without one, kernels of that device do not compute the op: calls of it run as they are.
        cuda_source, cpu_source: functions that the expressions call (``template <class T> __device__ T swish(T x) { ... }``). They are compiled into kernels
            as they stand: register text that you trust.
        definition: the meaning, as statements over the operands' names that assign ``result``: ``"result = mul(x, sigmoid(x))"``. The
            interpreter (option check) and the folding of constants use it; without it, they leave the op alone.
        types: dtypes that it computes in: "floating" (others are promoted to the default dtype), "integral" or "numeric".
        transcendental: it costs tens of instructions, so that fusion computes it once.
        standard_result: results always have the operands' broadcast sizes, their common dtype ("floating": the default dtype for integers), and
            the strides that pointwise ops of PyTorch give them. The recorded device and recorded C++ functions fuse the op then; they call others.

    Raises:
        UserError: a text is not valid, or the op is registered with another definition.
    """
    overload = _overload(op)
    arguments = [argument.name for argument in overload._schema.arguments]
    for argument in overload._schema.arguments:
        if str(argument.type) not in ("Tensor", "number", "float", "int", "bool"):
            raise UserError(f"register_op: expected arguments that are tensors and numbers, {overload} has '{argument.type} {argument.name}'")
    if [str(result.type) for result in overload._schema.returns] != ["Tensor"]:
        raise UserError(f"register_op: expected an op that returns a tensor, found {overload._schema}")
    _C.register_op(_name(overload), arguments, types, transcendental, standard_result, cuda, cpu, cuda_source, cpu_source, definition)
    _registered[str(overload)] = "registered op"


def register_reduction(
    op: Any,
    *,
    state: str,
    results: str,
    start: str,
    lift: str,
    merge: str,
    finish: str = "",
    order_matters: bool = True,
    standard_result: bool = False,
) -> None:
    """Compiles calls of a reduction of yours into kernels: ``op(Tensor self, int[] dim, bool keepdim)``, the last two optional.

    A reduction is a state of named components and statements about it (docs/extend.md). Merging states has to be associative and commutative,
    but for rounding. float16 and bfloat16 are reduced in float32; results are rounded once, to the dtype that the op returns.

    Args:
        op: the overload, such as ``torch.ops.mylib.spread.default``.
        state: the components and their types: ``"low:T high:T"``; ``T`` is the operand's compute type.
        results: what the op returns, likewise: ``"spread:T"``.
        start: the state of no element: ``"low = highest, high = lowest"``.
        lift: the state of the element ``x`` at the position ``at``: ``"low = x, high = x"``.
        merge: the state of two sets of elements with the states ``a`` and ``b``: ``"low = minimum(a.low, b.low), ..."``.
        finish: the results of a state, where they are not components of it: ``"spread = sub(high, low)"``.
        order_matters: the last bits of the result depend on the order of merging. Option numerics then reports the reduction as reordered.
        standard_result: results are contiguous and of the types that ``results`` states, where ``T`` is the operand's dtype; see register_op.

    Raises:
        UserError: a text is not valid, or the op is registered with another definition.
    """
    overload = _overload(op)
    types = [str(argument.type) for argument in overload._schema.arguments]
    if types[:1] != ["Tensor"] or len(types) > 3 or any(given not in wanted for given, wanted in zip(types[1:], _AXES)):
        raise UserError(f"register_reduction: expected arguments (Tensor, int[] dim, bool keepdim), found {overload._schema}")
    _C.register_reduction(_name(overload), state, results, start, lift, merge, finish, order_matters, standard_result)
    _registered[str(overload)] = "registered reduction"


def registered_ops() -> dict[str, str]:
    """What kinds of kernels compute registered ops, by the name that FX graphs give an op."""
    return dict(_registered)


def register_decomposition(op: Any, function: Callable[..., Any], *, version: str = "") -> Registration:
    """Replaces calls of an op by what a function of yours calls, before graphs are compiled.

    It holds for graphs that torch.compile(backend="cxxinductor") compiles afterwards, of forward and backward passes. Gradients are those of the op: what
    autograd records for it is decomposed in turn where you register that, too. A decomposition of yours comes before the compiler's own.

    Args:
        op: the overload, such as ``torch.ops.mylib.swish.default`` or ``torch.ops.aten.logit.default``. It writes nothing and returns no views.
        function: takes the op's arguments and returns what the op returns: tensors of the same sizes, dtypes and devices. Its results get the op's
            strides. ``NotImplemented`` leaves a call as it is. Do not call the op itself.
        version: a text that you change when what the function does changes. Keys of caches contain it and the function's own code, with its
            defaults and the constants of its module that it reads, but not what it calls. Lambdas, functions that read variables of a function around them, and other callables need one.

    Returns:
        a registration, whose ``remove()`` takes it back.

    Raises:
        UserError: another decomposition of the op is registered, the op is not one that reaches compilers, or the function needs a version. In a
            compile: the function raises, or returns something else than the op.
    """
    overload = _overload(op)
    user_decompositions.require_decomposable(overload)
    identity = identity_of(function, version, f"register_decomposition({overload})")
    return user_decompositions.REGISTRY.add(overload, identity, function, function)


def register_pattern(
    pattern: Callable[..., Any],
    replacement: Callable[..., Any],
    example_inputs: Sequence[Any],
    *,
    when: str | Sequence[str] = ("inference", "joint"),
    check: Callable[..., bool] | None = None,
    name: str | None = None,
    version: str = "",
) -> Registration:
    """Replaces the part of a graph that computes what one function does by what another one does.

    Both functions are traced to ATen ops on the inputs. Numbers, dtypes and sizes that ops take as arguments are part of the pattern. A match is
    left as it is where something else reads a value inside of it, or where the replacement would give other dtypes, devices or sizes.

    Args:
        pattern, replacement: functions of the example inputs that return a tensor or several.
        example_inputs: tensors, on which both are traced without computing anything, and other values, which are constants.
        when: which graphs: "inference"; "joint", the forward and backward pass of training before they are cut in two; "forward"; "backward". One or several.
        check: gets, for each tensor among the inputs, what the graph has there: a tensor without memory, with dtype, sizes, strides and device. A match
            of which it returns False is left.
        name: in messages and explain(); that of the pattern's function.
        version: as for register_decomposition; it is about all three functions.

    Returns:
        a registration, whose ``remove()`` takes it back.

    Raises:
        UserError: a function cannot be traced, the two return other things, a function needs a version, or the name is registered.
    """
    name = name or getattr(pattern, "__name__", type(pattern).__name__)
    if not isinstance(example_inputs, (list, tuple)):
        found = type(example_inputs).__name__
        raise UserError(f"register_pattern({name}): example inputs: expected a list or tuple of tensors, found {found}")
    functions = [pattern, replacement, *([check] if check is not None else [])]
    identities = [identity_of(function, version, f"register_pattern({name})") for function in functions]
    places = graph_passes.when_of(when, f"register_pattern({name})")
    inputs = [(value.dtype, value.device, tuple(value.shape), value.stride()) if isinstance(value, torch.Tensor) else value for value in example_inputs]
    made = patterns.make(pattern, replacement, example_inputs, check)
    return graph_passes.REGISTRY.add(name, repr((places, inputs, identities)), GraphPass("pattern", places, made))


def register_graph_pass(
    function: Callable[[Any], Any], *, when: str | Sequence[str] = (), stage: str = "", name: str | None = None, version: str = ""
) -> Registration:
    """Runs a pass of yours over graphs that are compiled afterwards: over FX graphs (when), or over the text of the compiler's forms (stage).

    Passes of one place run in the order of their registration. What a pass leaves is checked: it has to keep the inputs, the sizes, dtypes and devices of
    outputs, and which inputs are written. A pass that is wrong is an error of torch.compile (when), or sends the graph through ATen, with a warning (stage).

    Args:
        function: with ``when``, it gets a ``torch.fx.Graph`` of ATen ops, which it edits in place. New nodes are calls of overloads,
            ``torch.ops.aten.add.Tensor``; what they return is recorded for you. With ``stage``, it gets a text (docs/ir.md) and returns one. A
            thread of its own calls it, for all that is compiled: exported programs, recorded functions and the recorded device as well. It compiles nothing.
        when: as for register_pattern.
        stage: one of those that passes of users may follow on (docs/options.md), such as "graph-passes": the pass gets what the compiler has after it.
            Options ``skip_passes=NAME`` and ``dump=after:NAME`` know the pass.
        name: in messages and explain(); that of the function.
        version: as for register_decomposition.

    Returns:
        a registration, whose ``remove()`` takes it back.

    Raises:
        UserError: not one of when and stage is given, or it is not known; the function needs a version; or the name is registered.
    """
    name = name or getattr(function, "__name__", type(function).__name__)
    if bool(when) == bool(stage):
        raise UserError(f"register_graph_pass({name}): expected when=, for a pass over FX graphs, or stage=, for one over texts")
    identity = identity_of(function, version, f"register_graph_pass({name})")
    other, form = (graph_passes.REGISTRY, "FX graphs") if stage else (text_passes.REGISTRY, "texts")
    if name in other.entries():
        raise UserError(f"graph pass {name} is registered already, over {form}: remove() that registration first")
    if stage:
        return text_passes.add(name, stage, identity, function)
    places = graph_passes.when_of(when, f"register_graph_pass({name})")

    def run(graph: torch.fx.Graph) -> None:
        function(graph)

    return graph_passes.REGISTRY.add(name, repr((places, identity)), GraphPass("pass", places, run), function)


def load_target(path: str | os.PathLike[str]) -> str:
    """Opens a shared library that describes a target (cxxinductor/target.h), which stays open for the life of the process.

    Graphs that are compiled with ``options={"target": NAME}`` compute with its kernels what lies in the host's memory.

    Args:
        path: of the library.

    Returns:
        the target's name.

    Raises:
        UserError: the library does not open or describes no valid target, or another target has the name.
    """
    return str(_C.load_target(os.path.abspath(path)))


_AXES = (("List[int]", "Optional[List[int]]", "int"), ("bool",))


def _overload(op: Any) -> torch._ops.OpOverload:
    if isinstance(op, torch._ops.OpOverload):
        return op
    raise UserError(f"expected an overload of an op, such as torch.ops.mylib.swish.default, found {op!r}")


def _name(overload: torch._ops.OpOverload) -> str:
    schema = overload._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
