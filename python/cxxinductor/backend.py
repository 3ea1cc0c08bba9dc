"""The backend that ``torch.compile(backend="cxxinductor")`` finds through the ``torch_dynamo_backends`` entry point."""

from __future__ import annotations

import enum
import functools
import logging
import os
import sys
import warnings
from typing import Any, Callable, Mapping, NamedTuple, Sequence

import torch
from torch._dynamo import compiled_autograd
from torch._dynamo.utils import flatten_graph_inputs
from torch._functorch import config as functorch_config
from torch._functorch.aot_autograd import aot_module_simplified
from torch._guards import CompileContext, TracingContext

from . import (
    _C,
    attention,
    cache_transfer,
    check,
    collectives,
    config,
    decompositions,
    eager_strides,
    float_guards,
    fx_reader,
    graph_cache,
    graph_passes,
    input_versions,
    origins,
    partition,
    progress,
    reports,
    user_decompositions,
)
from .errors import InternalError, Unsupported, UserError
from .registry import Snapshot

log = logging.getLogger(__name__)


class Extensions(NamedTuple):
    """What users registered when a compile began, which is what it uses to its end."""

    passes: Snapshot
    decompositions: Snapshot

    @classmethod
    def now(cls) -> Extensions:
        return cls(graph_passes.REGISTRY.snapshot(), user_decompositions.REGISTRY.snapshot())

    @property
    def key(self) -> str:
        return f"{self.decompositions.key}\n{self.passes.key}"


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
        mode: one of torch.compile's: a set of options (config.MODES).
        options: names of ``cxxinductor.option_table()``; they win over the mode.

    Raises:
        UserError: an unknown option or mode; the message lists the known ones.
    """
    resolved = config.resolve(options, mode)
    # Compiled autograd compiles the backward pass of what a whole loss.backward() runs: no graph of it comes here.
    early_backward = not (torch._dynamo.config.compiled_autograd or compiled_autograd.compiled_autograd_enabled)
    log.debug("Dynamo's graph [%s]: %d nodes, options %s", CompileContext.current_compile_id(), len(gm.graph.nodes), resolved)
    load_graph = functools.partial(load_aot_graph, options=resolved)
    extensions = Extensions.now()
    with graph_cache.used(resolved, load_graph, _when("forward", resolved).name, extensions.key) as cached:
        sizes_may_vary = collectives.sizes_may_vary()  # a backward graph is compiled where Dynamo's settings are others
        compile_graph = functools.partial(compile_aot_graph, options=resolved, passes=extensions.passes, cached=cached, sizes_may_vary=sizes_may_vary)
        return compile_dynamo_graph(gm, example_inputs, compile_graph, early_backward, float(resolved.get("memory_budget")), cached, extensions)


def compile_dynamo_graph(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    compile_graph: Callable[..., Callable[[list[Any]], Any]],
    early_backward: bool = False,
    memory_budget: float = 1.0,
    cached: bool = False,
    extensions: Extensions | None = None,
) -> Callable[..., Any]:
    """Runs AOTAutograd, and compile_graph(gm, example_inputs, kind=...) on each of its graphs.

    early_backward: on the backward graph right after the forward graph; else it waits for the first backward call, where AOTAutograd can.
    memory_budget: see partition.
    cached: inside of graph_cache.used, which yielded this.
    extensions: of users; by default those that are registered now.
    """
    extensions = extensions or Extensions.now()
    as_compiler = graph_cache.compiler if cached else lambda compile: compile
    attention.make_masks_contiguous(gm)
    input_versions.mark(gm)
    # RNG states as tensors: generators are no inputs of a compiled graph.
    settings = {"unlift_effect_tokens": True, "donated_buffer": True, "graphsafe_rng_functionalization": False}
    settings["force_non_lazy_backward_lowering"] = early_backward
    table = functools.partial(decompositions.table, extensions.decompositions)
    with functorch_config.patch(settings):
        compiled = _run_aot_autograd(
            gm,
            example_inputs,
            fw_compiler=as_compiler(functools.partial(_compile_forward, compile_graph=compile_graph)),
            bw_compiler=as_compiler(functools.partial(_compile_backward, compile_graph=compile_graph)),
            inference_compiler=as_compiler(functools.partial(compile_graph, kind="inference")),
            partition_fn=functools.partial(partition.partition, passes=extensions.passes, memory_budget=memory_budget),
            decompositions=graph_cache.Decompositions(table) if cached else table(),
            keep_inference_input_mutations=True,
        )
    float_guards.compare_floats_themselves()
    return compiled


def _run_aot_autograd(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], **settings: Any) -> Callable[..., Any]:
    """As torch._dynamo.backends.common.aot_autograd, which imports most of Inductor's modules: a tenth of a second for a process that needs none."""
    if any(isinstance(value, (list, tuple, dict)) for value in example_inputs):  # compiled autograd's
        return flatten_graph_inputs(gm, example_inputs, functools.partial(_run_aot_autograd, **settings))
    counted = torch._dynamo.utils.counters["aot_autograd"]  # by which DDP's optimizer tells such back ends
    counted["total"] += 1
    compiled = aot_module_simplified(gm, example_inputs, **settings)
    counted["ok"] += 1
    return torch._dynamo.disable(compiled, reason="do not trace AOT-compiled graph")


def _compile_forward(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], compile_graph: Callable[..., Any]) -> Any:
    # Which saved tensors the backward graph may overwrite shows when it runs. To AOTAutograd it is none: it would refuse retain_graph, as it
    # does for lists that it did not make.
    context = TracingContext.try_get()
    if context is not None and context.fw_metadata is not None and context.fw_metadata.bw_donated_idxs:
        context.fw_metadata.bw_donated_idxs.clear()
    return compile_graph(gm, example_inputs, kind="forward")


@torch._dynamo.disable
def _compile_backward(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], compile_graph: Callable[..., Any]) -> Any:
    # Both run where Dynamo may look at what a program runs: in the first backward pass.
    return torch._dynamo.disable(compile_graph(gm, example_inputs, kind="backward"), reason="do not trace generated backwards pass")


class Compile(enum.Enum):
    """When a graph is compiled."""

    NOW = enum.auto()
    WHILE_CALLS_WAIT = enum.auto()  # in the background; the first call waits
    WHILE_ATEN_RUNS = enum.auto()  # in the background; calls before its end run through ATen


def _when(kind: str, options: "_C.Options") -> Compile:
    """A backward graph has until its first call. Option background says which graphs have longer."""
    background = options.get("background")
    number = CompileContext.current_compile_id()
    is_recompile = number is not None and bool(number.frame_compile_id)
    if background == "all" or (background == "recompiles" and is_recompile):
        return Compile.WHILE_ATEN_RUNS
    return Compile.WHILE_CALLS_WAIT if kind == "backward" else Compile.NOW


def compile_aot_graph(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    kind: str,
    options: "_C.Options",
    passes: Snapshot | None = None,
    when: Compile | None = None,
    cached: bool = False,
    sizes_may_vary: bool = True,
) -> Callable[[list[Any]], Any]:
    """One graph of AOTAutograd -> a boxed callable: it takes one list of inputs, empties it, and returns the outputs.

    Never raises for a graph that we cannot read or compile: the graph then runs through ATen (counter aten_fallback)
    or, when it cannot even be read, as it came (counter eager_fallback), with one warning that names the reason.

    passes: those of users; none of a subgraph.
    when: of a subgraph, that of the graph around it.
    cached: AOTAutograd may save the graph (graph_cache).
    sizes_may_vary: those of collectives, between calls.

    Raises:
        UserError: a pass that the user registered is wrong.
    """
    if passes is not None:
        graph_passes.run(gm, kind, passes)
    when = when or _when(kind, options)
    contents = _contents(gm)
    described = _describe(kind, contents)
    try:
        with reports.stopwatch() as read:
            compile_subgraph = functools.partial(compile_aot_graph, kind="subgraph", options=options, when=when, sizes_may_vary=sizes_may_vary)
            graph, free = read_aot_graph(gm, example_inputs, kind, compile_subgraph, flexible_strides=when is Compile.NOW)
            collectives.join(graph.builder, options, sizes_may_vary)
        compiled = _compile(graph.builder, graph.constants, kind, when, described, read.seconds, options)
    except (Unsupported, UserError, InternalError) as error:
        _C.count_eager()
        log.info("the %s runs in eager mode: %s", described, error)
        _warn(f"the {described} runs in eager mode: {error}")
        reports.record_eager(kind, str(error))
        return boxed(gm)
    if any(isinstance(node.meta.get("val"), torch.SymInt) for node in gm.graph.nodes if node.op == "placeholder"):
        compiled.set_wide_integers(_for_wide_integers(gm))
    strides = compiled.output_strides() if free else None
    if strides is not None:
        _report_output_strides(strides, free)
    checked = check.with_notes(compiled) if options.get("check") != "off" else compiled
    if graph.input_conversions or graph.output_conversions:
        return _converted(checked, graph)
    if cached and checked is compiled and _is_whole(gm, graph):
        graph_cache.mark(compiled, graph.builder.calls_text(), kind, contents, strides)
    return checked


def load_aot_graph(calls: str, kind: str, contents: str, *, options: "_C.Options") -> "_C.CompiledGraph":
    """A graph that compile_aot_graph compiled before, in this process or another, from its calls. contents: for messages.

    Raises:
        Unsupported: it cannot be compiled here, and ATen cannot run it.
    """
    described = f"{_describe(kind, contents)} from the cache"
    return _compile(_C.CallGraphBuilder.from_text(calls), [], kind, _when(kind, options), described, 0.0, options)


def _compile(
    builder: "_C.CallGraphBuilder", constants: list[Any], kind: str, when: Compile, described: str, read_seconds: float, options: "_C.Options"
) -> "_C.CompiledGraph":
    told = functools.partial(_tell, kind=kind, described=described, read_seconds=read_seconds, options=options)
    if when is Compile.NOW:
        with progress.shown(options, kind):
            compiled = _C.compile(builder, options, constants)
        told(compiled)
        return compiled
    log.debug("the %s is compiled in the background", described)
    ended = functools.partial(_finish, told=told, kind=kind, options=options)
    compiled = _C.compile_in_background(builder, options, constants, when is Compile.WHILE_CALLS_WAIT, ended)
    if when is Compile.WHILE_ATEN_RUNS:
        reports.expect(functools.partial(ended, compiled))
    return compiled


def _is_whole(gm: torch.fx.GraphModule, graph: fx_reader.ReadGraph) -> bool:
    """Whether the graph's calls are all that it is compiled and run from."""
    symbolic = any(isinstance(node.meta.get("val"), torch.SymInt) for node in gm.graph.nodes)
    return not symbolic and not graph.constants and not graph.builder.has_functions()


def _finish(compiled: "_C.CompiledGraph", told: Callable[["_C.CompiledGraph"], None], kind: str, options: "_C.Options") -> None:
    """Ends a compile in the background, at a call that may use what it gave, and tells about it once."""
    with progress.shown(options, kind):
        is_first = compiled.finish()
    if is_first:
        told(compiled)


def _tell(compiled: "_C.CompiledGraph", kind: str, described: str, read_seconds: float, options: "_C.Options") -> None:
    """Warns about what went wrong with a compile, logs it, and reports it."""
    if reason := compiled.fallback_reason:
        _warn(f"the {described} runs op by op through ATen: {reason}")
    if log.isEnabledFor(logging.INFO):
        log.info("the %s %s", described, _outcome(compiled, read_seconds))
    _report_cache(options)
    cache_transfer.record_used(options)
    reports.record(compiled, kind, read_seconds, options)


def _outcome(compiled: "_C.CompiledGraph", read_seconds: float) -> str:
    if reason := compiled.fallback_reason:
        return f"runs op by op through ATen: {reason}"
    report = compiled.report()
    seconds = read_seconds + sum(seconds for _, seconds in report["times"])
    return f"is compiled: {len(report['kernels'])} kernels, {len(report['externs'])} extern calls, {seconds:.2f} s"


def read_aot_graph(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], kind: str, compile_subgraph: Callable[..., Any], flexible_strides: bool = True
) -> tuple[fx_reader.ReadGraph, set[int]]:
    """One graph of AOTAutograd as calls; and the positions of its outputs whose strides the compiler chooses.

    flexible_strides: whether there are such; a graph whose first calls run through ATen has eager's.

    Raises:
        Unsupported: the graph has what cannot be read; the message says what, and where.
    """
    input_versions.write_back(gm)
    if kind in ("inference", "subgraph"):  # a joint graph was corrected before it was cut
        eager_strides.correct(gm.graph)
    graph = fx_reader.read_graph(gm, kind, example_inputs, compile_subgraph)
    free = _flexible_outputs(gm, kind) if flexible_strides else set()
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


def _report_output_strides(strides: list[Any], free: set[int]) -> None:
    """Tells AOTAutograd which strides saved tensors come in: the backward graph is compiled for those."""
    TracingContext.get().output_strides.extend(s if i in free else None for i, s in enumerate(strides))


def _contents(gm: torch.fx.GraphModule) -> str:
    """'3 calls, the first is aten.add.Tensor (model.py:12)'"""
    calls = [node for node in gm.graph.nodes if node.op == "call_function"]
    first = f", the first is {origins.where(calls[0])}" if calls else ""
    return f"{len(calls)} calls{first}"


def _describe(kind: str, contents: str) -> str:
    """'inference graph [0/1] (3 calls, the first is aten.add.Tensor (model.py:12))'; [0/1] is what torch's logs call it."""
    number = CompileContext.current_compile_id()
    return f"{kind} graph{f' [{number}]' if number else ''} ({contents})"


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
