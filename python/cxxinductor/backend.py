"""The backend that ``torch.compile(backend="cxxinductor")`` finds through the ``torch_dynamo_backends`` entry point."""

from __future__ import annotations

import functools
import logging
import os
import sys
import warnings
from typing import Any, Callable, Mapping, Sequence

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config as functorch_config
from torch._guards import CompileContext, TracingContext

from . import (
    _C,
    attention,
    cache_transfer,
    check,
    config,
    decompositions,
    eager_strides,
    float_guards,
    fx_reader,
    graph_cache,
    input_versions,
    partition,
    progress,
    reports,
)
from .errors import InternalError, Unsupported, UserError

log = logging.getLogger(__name__)

# It returns nothing, but it raises: what torch.linalg adds to the ops that it calls.
torch.fx.has_side_effect(torch.ops.aten._linalg_check_errors.default)


def cxxinductor(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles a Dynamo graph: AOTAutograd, then each of its graphs through the C++ compiler.

    Args:
        gm, example_inputs: as torch.compile hands them to a backend.
        mode: only "default"; other modes are an error, since nothing would differ.
        options: names of ``cxxinductor.option_table()``.

    Raises:
        UserError: an unknown option or mode; the message lists the known ones.
    """
    if mode not in (None, "default"):
        raise UserError(f"mode={mode!r} is not known to cxxinductor; leave it out, or use options= ({_option_names()})")
    resolved = config.resolve(options)
    compile_graph = functools.partial(compile_aot_graph, options=resolved)
    with graph_cache.used(resolved, functools.partial(_load_aot_graph, options=resolved)) as cached:
        compiled = compile_dynamo_graph(gm, example_inputs, compile_graph, cached)
    cache_transfer.record_used(resolved)
    return compiled


def compile_dynamo_graph(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    compile_graph: Callable[..., Callable[[list[Any]], Any]],
    cached: bool = False,
) -> Callable[..., Any]:
    """Runs AOTAutograd, and compile_graph(gm, example_inputs, kind=...) on each of its graphs.

    Args:
        cached: inside of graph_cache.used, which yielded this.
    """
    as_compiler = graph_cache.compiler if cached else lambda compile: compile
    attention.make_masks_contiguous(gm)
    input_versions.mark(gm)
    # Built afresh for every graph: calling the result changes its keyword arguments.
    # RNG states as tensors: generators are no inputs of a compiled graph.
    settings = {"unlift_effect_tokens": True, "donated_buffer": False, "graphsafe_rng_functionalization": False}
    with functorch_config.patch(settings):
        compiled = aot_autograd(
            fw_compiler=as_compiler(functools.partial(compile_graph, kind="forward")),
            bw_compiler=as_compiler(functools.partial(compile_graph, kind="backward")),
            inference_compiler=as_compiler(functools.partial(compile_graph, kind="inference")),
            partition_fn=partition.partition,
            decompositions=graph_cache.Decompositions(decompositions.table) if cached else decompositions.table(),
            keep_inference_input_mutations=True,
        )(gm, example_inputs)
    float_guards.compare_floats_themselves()
    return compiled


def _option_names() -> str:
    return ", ".join(row["name"] for row in config.option_table())


def compile_aot_graph(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, kind: str, options: "_C.Options"
) -> Callable[[list[Any]], Any]:
    """One graph of AOTAutograd -> a boxed callable: it takes one list of inputs, empties it, and returns the outputs.

    Never raises for a graph that we cannot read or compile: the graph then runs through ATen (counter aten_fallback)
    or, when it cannot even be read, as it came (counter eager_fallback), with one warning that names the reason.
    """
    try:
        with reports.stopwatch() as read:
            compile_subgraph = functools.partial(compile_aot_graph, kind="subgraph", options=options)
            graph, free = read_aot_graph(gm, example_inputs, kind, compile_subgraph)
        with progress.shown(options, kind):
            compiled = _C.compile(graph.builder, options)
    except (Unsupported, UserError, InternalError) as error:
        _C.count_eager()
        _warn(f"the {_describe(gm, kind)} runs in eager mode: {error}")
        reports.record_eager(kind, str(error))
        return boxed(gm)
    if reason := compiled.fallback_reason:
        _warn(f"the {_describe(gm, kind)} runs op by op through ATen: {reason}")
    _report_cache(options)
    compiled.set_constants(graph.constants)
    if any(isinstance(node.meta.get("val"), torch.SymInt) for node in gm.graph.nodes if node.op == "placeholder"):
        compiled.set_wide_integers(_for_wide_integers(gm))
    if free:
        _report_output_strides(compiled, free)
    reports.record(compiled, kind, read.seconds, options)
    checked = check.with_notes(compiled) if options.get("check") != "off" else compiled
    if graph.input_conversions or graph.output_conversions:
        return _converted(checked, graph)
    if kind == "backward" and checked is compiled:
        _mark_boxed(compiled)
    if checked is compiled and not reason and _is_whole(gm, graph):
        graph_cache.mark(compiled, graph.builder.calls_text(), kind)
    return checked


def _load_aot_graph(calls: str, kind: str, *, options: "_C.Options") -> Callable[[list[Any]], Any]:
    """A graph that compile_aot_graph compiled in another process, from its calls."""
    with progress.shown(options, kind):
        compiled = _C.compile_calls(calls, options)
    if reason := compiled.fallback_reason:
        _warn(f"a {kind} graph from the cache runs op by op through ATen: {reason}")
    _report_cache(options)
    reports.record(compiled, kind, 0.0, options)
    _mark_boxed(compiled)
    return compiled


def _is_whole(gm: torch.fx.GraphModule, graph: fx_reader.ReadGraph) -> bool:
    """Whether the graph's calls are all that it is compiled and run from."""
    symbolic = any(isinstance(node.meta.get("val"), torch.SymInt) for node in gm.graph.nodes)
    return not symbolic and not graph.constants and not graph.builder.has_functions()


def _mark_boxed(compiled: "_C.CompiledGraph") -> None:
    # Dynamo wraps backward callables with functools.wraps, which carries only instance attributes over.
    compiled.__dict__["_boxed_call"] = True


def read_aot_graph(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], kind: str, compile_subgraph: Callable[..., Any]
) -> tuple[fx_reader.ReadGraph, set[int]]:
    """One graph of AOTAutograd as calls; and the positions of its outputs whose strides the compiler chooses.

    Raises:
        Unsupported: the graph has what cannot be read; the message says what, and where.
    """
    input_versions.write_back(gm)
    if kind in ("inference", "subgraph"):  # a joint graph was corrected before it was cut
        eager_strides.correct(gm.graph)
    graph = fx_reader.read_graph(gm, kind, example_inputs, compile_subgraph)
    free = _flexible_outputs(gm, kind)
    graph.builder.flexible_output_strides(free)
    graph.builder.donate_inputs(_donated_inputs(gm, kind))
    graph.builder.freeze_inputs(_frozen_inputs(kind))
    return graph, free


def _flexible_outputs(gm: torch.fx.GraphModule, kind: str) -> set[int]:
    """Positions of a forward graph's outputs whose strides are ours to choose: nobody but the backward graph sees them.

    Of constant sizes only: AOTAutograd is told the strides as numbers.
    """
    context = TracingContext.try_get()
    if kind != "forward" or context is None or context.fw_metadata is None or context.output_strides is None:
        return set()
    (outputs,) = gm.graph.output_node().args
    saved = range(len(outputs))[context.fw_metadata.tensors_saved_for_backwards_slice]
    return {i for i in saved if _is_static(outputs[i])}


def _donated_inputs(gm: torch.fx.GraphModule, kind: str) -> set[int]:
    """Positions of a backward graph's inputs that nobody else holds while it runs, unless the user asks for a second run."""
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    return {i for i, node in enumerate(placeholders) if not node.meta.get(partition.HELD, True)} if kind == "backward" else set()


def _frozen_inputs(kind: str) -> set[int]:
    """Positions of an inference graph's inputs that are parameters and buffers."""
    context = TracingContext.try_get()
    if kind != "inference" or context is None or context.fw_metadata is None:
        return set()
    return set(context.fw_metadata.static_input_indices or ())


def _is_static(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and all(isinstance(n, int) for n in (*value.shape, *value.stride()))


def _report_output_strides(compiled: Any, free: set[int]) -> None:
    """Tells AOTAutograd which strides saved tensors come in: the backward graph is compiled for those."""
    strides = compiled.output_strides()
    TracingContext.get().output_strides.extend(s if i in free else None for i, s in enumerate(strides))


def _describe(gm: torch.fx.GraphModule, kind: str) -> str:
    """'inference graph [0/1] (3 calls, the first is aten.add.Tensor (model.py:12))'; [0/1] is what torch's logs call it."""
    calls = [node for node in gm.graph.nodes if node.op == "call_function"]
    first = f", the first is {fx_reader.where(calls[0])}" if calls else ""
    number = CompileContext.current_compile_id()
    return f"{kind} graph{f' [{number}]' if number else ''} ({len(calls)} calls{first})"


_LIBRARIES = tuple(os.path.dirname(os.path.abspath(path)) + os.sep for path in (torch.__file__, __file__))


def _warn(message: str) -> None:
    """A warning at the line of the user's program that called what is being compiled or run."""
    frame = sys._getframe(1)
    while frame.f_back and (frame.f_code.co_filename.startswith(_LIBRARIES) or frame.f_code.co_filename.startswith("<")):
        frame = frame.f_back
    warnings.warn_explicit(f"cxxinductor: {message}", UserWarning, frame.f_code.co_filename, frame.f_lineno)


def _report_cache(options: "_C.Options") -> None:
    """Each thing that is wrong with the cache is said once in a process: compiles go on without it."""
    if problem := _C.take_cache_problem(options):
        _warn(f"plans and compiled kernels are not kept for the next process: {problem}")


def _converted(compiled: Callable[[list[Any]], Any], graph: fx_reader.ReadGraph) -> Callable[[list[Any]], Any]:
    """Takes floats from the caller, and gives it bools and floats, that are tensors and integers to the compiled graph."""

    def run(inputs: list[Any]) -> Any:
        for position, convert in graph.input_conversions.items():
            inputs[position] = convert(inputs[position])
        outputs = compiled(inputs)
        for position, convert in graph.output_conversions.items():
            outputs[position] = convert(outputs[position])
        return outputs

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _for_wide_integers(gm: torch.fx.GraphModule) -> Callable[[list[Any]], Any]:
    """Python integers have no bounds, those of kernels have 64 bits: a call with others does what the graph says in eager mode."""
    run = boxed(gm)

    def run_with_warning(inputs: list[Any]) -> Any:
        _warn("a call with an integer beyond 64 bits runs in eager mode")
        _C.count_eager()
        return run(inputs)

    return run_with_warning


def boxed(gm: torch.fx.GraphModule) -> Callable[[list[Any]], Any]:
    """The graph as it came, in eager mode."""

    def run(inputs: list[Any]) -> Any:
        arguments = list(inputs)
        inputs.clear()
        return gm(*arguments)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run
