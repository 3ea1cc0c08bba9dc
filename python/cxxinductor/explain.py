"""explain(fn, *inputs): what was compiled, what was not, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import torch
from torch._dynamo import eval_frame, output_graph
from torch._functorch import config as functorch_config

from . import _C, config, extend, reports
from .errors import UserError


@dataclass(frozen=True)
class GraphBreak:
    """Where Dynamo cut the function in two, and why (the first line of its message)."""

    reason: str
    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"graph break at {self.file}:{self.line}, in {self.function}: {self.reason}"


@dataclass(frozen=True)
class Explanation:
    """What explain() found; ``str()`` of it is for people.

    Attributes:
        graphs: one report per graph (see reports.GraphReport).
        counters: what cxxinductor.counters() counted during the call.
        breaks: of the function, in the order that Dynamo found them.
        notes: lines about what torch.compile was asked for and does not do.
        extensions: lines about what was registered (register_op and others) and took part.
    """

    graphs: list[reports.GraphReport]
    counters: dict[str, int]
    breaks: list[GraphBreak] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    extensions: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        c = self.counters
        last = (
            f"{len(self.graphs)} graphs; {len(self.breaks)} graph breaks; {c['kernels']} kernels; {c['extern']} extern calls; "
            f"aten_fallback {c['aten_fallback']} (graphs through ATen), eager_fallback {c['eager_fallback']} (graphs given back to eager)"
        )
        return "\n".join([*map(str, self.graphs), *map(str, self.breaks), *(f"extension: {text}" for text in self.extensions), *self.notes, last])


def explain(fn: Callable[..., Any], *inputs: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> Explanation:
    """Compiles ``fn`` afresh, runs it once on ``inputs``, and says what happened.

    A backward graph counts from its first call on: to see that of a training step, ``fn`` calls ``backward()`` itself,
    as in ``explain(lambda: model(x).sum().backward())``. Compiles of option background are waited for. What was compiled before stays
    compiled. Sizes are constants, unless they are marked as dynamic or ``fn`` is the result of ``torch.compile(dynamic=True)``.

    Args:
        fn: a function or module, or what torch.compile made of one: its options, mode and ``dynamic`` then hold here too.
        inputs, kwargs: its arguments; it is called once with them.
        options: as torch.compile(options=...); they win over those that fn was compiled with.
    """
    from .backend import cxxinductor

    if isinstance(fn, torch.jit.ScriptModule):
        raise UserError("explain: found a TorchScript module: cxxinductor.torchscript.describe(module) explains one that optimize returned")
    original, compiled_with, mode, dynamic = _compiled_with(fn)
    merged = {**compiled_with, **(options or {})}

    # Dynamo's cache knows graphs by their backend: this one is new, and finds nothing compiled.
    def backend(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        return cxxinductor(gm, example_inputs, mode=mode, options=merged)

    before, breaks_before = _C.counters(), len(output_graph.graph_break_reasons)
    no_limit = {"recompile_limit": 1 << 20, "accumulated_recompile_limit": 1 << 20, "automatic_dynamic_shapes": False}
    afresh = functorch_config.patch(enable_autograd_cache=False)  # its results hold no times and no lines of the model as it is now
    with reports.collect_extensions() as extensions, reports.collect() as graphs, torch._dynamo.config.patch(no_limit), afresh:
        torch.compile(original, backend=backend, dynamic=dynamic)(*inputs, **kwargs)
    after = _C.counters()
    breaks = [_graph_break(found) for found in output_graph.graph_break_reasons[breaks_before:]]
    notes = _notes(graphs, mode, merged)
    # What the cache on disk held says nothing about the function.
    counted = {name: after[name] - before[name] for name in after if not name.startswith("cache_")}
    return Explanation(graphs, counted, breaks, notes, [*extensions, *_registered_in(graphs)])


def _registered_in(graphs: list[reports.GraphReport]) -> list[str]:
    """Registered ops that kernels compute, and passes over texts."""
    passes = dict.fromkeys(f"pass {name}" for graph in graphs for name in graph.details["text_passes"])
    called = [call for graph in graphs for kernel in graph.details["kernels"] for call, *_ in kernel["calls"]]
    return [*(f"{kind} {name}" for name, kind in extend.registered_ops().items() if any(name in call for call in called)), *passes]


def _notes(graphs: list[reports.GraphReport], mode: str | None, options: dict[str, Any]) -> list[str]:
    """What was asked for and has no effect."""
    if not graphs:
        return ["nothing is compiled: Dynamo handed over no graph (TORCH_LOGS=graph_breaks,dynamo shows why)"]
    asked, notes = config.resolve(options, mode), []
    if mode is not None and mode.startswith("max-autotune"):
        notes.append(f"mode={mode}: kernels are chosen as in the default mode; none is chosen by measuring")
    memory = [graph.details.get("memory") for graph in graphs]
    if asked.get("cuda_graphs") != "off" and not any(device.startswith("cuda") for m in memory if m for device in m["devices"]):
        notes.append(f"cuda_graphs={asked.get('cuda_graphs')} has no effect: no compiled graph runs on a GPU")
    if asked.get("freezing") == "true" and all(graph.kind != "inference" for graph in graphs):
        notes.append("freezing=true has no effect: gradients are required, which torch.no_grad() or inference_mode() turns off")
    return notes


def _compiled_with(fn: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any], str | None, bool | None]:
    """What torch.compile(fn) was given: the function or module, options, mode, dynamic. Of others: itself and nothing."""
    fn = getattr(fn, "_compiled_call_impl", None) or fn  # Module.compile()
    if isinstance(fn, eval_frame.OptimizedModule):
        original, context = fn._orig_mod, fn.dynamo_ctx
    elif hasattr(fn, "_torchdynamo_orig_callable"):
        original = fn._torchdynamo_orig_callable
        context = fn.__closure__[fn.__code__.co_freevars.index("self")].cell_contents
    else:
        return fn, {}, None, None
    wrapper = eval_frame.innermost_backend(context.callback)
    if getattr(wrapper, "compiler_name", None) != "cxxinductor":
        raise UserError("explain: expected a function that is not compiled, or compiled with backend='cxxinductor'")
    return original, wrapper.kwargs.get("options", {}), wrapper.kwargs.get("mode"), context._dynamic


def _graph_break(found: Any) -> GraphBreak:
    frame = found.user_stack[-1] if found.user_stack else None
    reason = found.reason.strip().splitlines()[0]
    return GraphBreak(reason, frame.filename if frame else "", (frame.lineno or 0) if frame else 0, frame.name if frame else "")
