"""Keeps AOTAutograd's results in the cache on disk, so that a later process traces no joint graph, decomposes and partitions nothing.

PyTorch's own cache of these results (``AOTAutogradCache``) makes keys with Inductor's code generator. This one has keys of its own
(``graph_key.py``), and reads and writes PyTorch's records (``GenericAOTAutogradResult``), with the calls of our graphs in the place of
Inductor's code. An entry is a pickle: it is as trusted as the machine code beside it.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import pickle
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import torch
from torch._functorch import aot_autograd as torch_aot_autograd
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd import autograd_cache, graph_compile
from torch._functorch._aot_autograd.aot_autograd_result import GenericAOTAutogradResult, GenericCompiledBackward, InductorOutput
from torch._functorch._aot_autograd.schemas import AOTAutogradCacheInfo, SerializableAOTDispatchCompiler
from torch._guards import TracingContext
from torch._inductor.output_code import OutputCode

from . import _C, cache_transfer, graph_key
from .errors import InternalError, Unsupported, UserError

LoadGraph = Callable[[str, str, str], "_C.CompiledGraph"]  # (calls, kind, contents)

_MARK = "_fx_graph_cache_key"  # AOTAutograd saves what has this attribute


class _Compile(NamedTuple):
    """The compile of a Dynamo graph that is under way in this thread."""

    options: "_C.Options"
    load: LoadGraph
    when: str
    extensions: str


_current: contextvars.ContextVar[_Compile | None] = contextvars.ContextVar("cxxinductor_compile", default=None)


class _Key(str):
    """A key of ours, among those of PyTorch's cache."""

    options: "_C.Options"


class _Changed(Exception):
    """A graph came out otherwise than the one that was saved."""


@contextlib.contextmanager
def used(options: "_C.Options", load: LoadGraph, when: str, extensions: str) -> Iterator[bool]:
    """Inside of the block AOTAutograd takes its results from the cache, and graphs that ``mark`` marked are saved there.

    Args:
        load: makes a compiled graph of a graph's calls, for a result that was found.
        when: forward and inference graphs are compiled, which decides about the strides of what they save.
        extensions: the key of what users registered and the compile uses.

    Yields:
        whether the cache is used; AOTAutograd's compilers then have to be ``compiler``'s.
    """
    wanted = (
        all(options.get(name) == value for name, value in (("cache", "on"), ("dump", ""), ("check", "off")))
        and options.get("verify") != "each"
        and functorch_config.enable_autograd_cache
        and not torch.compiler.config.force_disable_caches
        and not autograd_cache.should_bundle_autograd_cache()
        and not _divides_for_ddp()
    )
    if not wanted:
        yield False
        return
    _install()
    token = _current.set(_Compile(options, load, when, extensions))
    try:
        yield True
    finally:
        _current.reset(token)


def _divides_for_ddp() -> bool:
    """Whether DDP's graphs are being divided by its buckets: each part is compiled from what the compiles of others leave behind."""
    context = TracingContext.try_get()
    return context is not None and context.ddp_optimizer_ctx is not None


class Decompositions(NamedTuple):
    """For AOTAutograd: a table of decompositions that is made when nothing was found in the cache."""

    table: Callable[[], Any]


def compiler(compile_graph: Callable[..., Any]) -> SerializableAOTDispatchCompiler:
    """For AOTAutograd, which uses its cache with compilers of this class alone."""
    return SerializableAOTDispatchCompiler(OutputCode, compile_graph)


class _Saved(NamedTuple):
    calls: str
    kind: str
    contents: str
    strides: list[tuple[int, ...] | None] | None


def mark(compiled: "_C.CompiledGraph", calls: str, kind: str, contents: str, strides: list[tuple[int, ...] | None] | None) -> None:
    """The graph may be saved: the calls are all that it follows from, and it is called as it is.

    Args:
        contents: what warnings say of the graph.
        strides: of its outputs, where AOTAutograd was told them; the graph that is loaded must have the same.
    """
    compiled.__dict__[_MARK] = _Saved(calls, kind, contents, strides)


# ---- PyTorch's records ---------------------------------------------------------------------------------------------


@dataclass
class _Forward(InductorOutput):
    """A forward or an inference graph of an entry."""

    saved: _Saved

    def pre_save(self) -> None:
        pass

    def load(self, example_inputs: Sequence[Any]) -> Any:
        compile = _current.get()
        assert compile is not None, "an entry was read outside of a compile"
        calls, kind, contents, strides = self.saved
        compiled = compile.load(calls, kind, contents)
        if strides is not None and compiled.output_strides() != strides:
            raise _Changed
        return compiled

    def post_compile(self, result: Any, fx_config: Any) -> Any:
        return result


@dataclass
class _Backward(GenericCompiledBackward, _Forward):
    """A backward graph of an entry; the base class keeps Dynamo from tracing it."""


def _marked(compiled: Any) -> _Saved | None:
    """What mark was given, of a graph or of what wraps it, for the only time. Inductor's graphs keep what they have under the same name."""
    saved = None
    while compiled is not None:
        attributes = getattr(compiled, "__dict__", {})
        if isinstance(attributes.get(_MARK), _Saved):
            saved = attributes.pop(_MARK)
        compiled = getattr(compiled, "__wrapped__", None)
    return saved


class _Cache(autograd_cache.AOTAutogradCache):
    """PyTorch's cache, and ours for what our backend compiles."""

    @staticmethod
    def try_load(mod: Any, args: list[Any], aot_config: Any, *others: Any) -> Callable[..., Any] | None:
        current = _current.get()
        if current is None:
            return autograd_cache.AOTAutogradCache.try_load(mod, args, aot_config, *others)
        loaded = _load(mod, args, aot_config, current)
        if loaded is None:
            aot_config.decompositions = aot_config.decompositions.table()
        return loaded

    @classmethod
    def generate_guards_expression(cls, cache_info: Any) -> str | None:
        return None if isinstance(cache_info.cache_key, _Key) else super().generate_guards_expression(cache_info)

    # A backward graph is saved when it first runs, maybe while Dynamo looks at what runs.
    @staticmethod
    @torch._dynamo.disable
    def make_entry(compiled_fw_func: Any, compiled_bw_func: Any, *others: Any, **fields: Any) -> Any:
        forward, backward = _marked(compiled_fw_func), _marked(compiled_bw_func)
        if forward is None:
            return autograd_cache.AOTAutogradCache.make_entry(compiled_fw_func, compiled_bw_func, *others, **fields)
        backward_state, symints = fields.pop("backward_state_indices"), fields.pop("num_symints_saved_for_bw")
        compiled_bw = _Backward(backward, backward_state, symints) if backward else None
        return GenericAOTAutogradResult(_Forward(forward), compiled_bw, *others, **fields)

    @staticmethod
    @torch._dynamo.disable
    def save(key: str, entry: Any, remote: bool) -> None:
        if not isinstance(key, _Key):
            autograd_cache.AOTAutogradCache.save(key, entry, remote)
            return
        try:
            content = pickle.dumps(entry)
        except Exception:  # what runs around the graph may hold objects that refuse, each in its own way
            return
        _C.cache_put(key, content, key.options)
        cache_transfer.record_used(key.options)


def _load(mod: Any, args: list[Any], aot_config: Any, current: _Compile) -> Callable[..., Any] | None:
    """What was saved for these arguments; None, and their key in aot_config, where nothing was."""
    text = graph_key.text(mod, args, aot_config, current.options, current.when, current.extensions)
    if text is None:
        return None
    key = _Key(text)
    key.options = current.options
    found = _C.cache_get(key, current.options)
    entry = _unpickle(found) if found is not None else None
    if entry is not None:
        try:
            return entry.wrap_post_compile(args, aot_config, {})
        except (Unsupported, UserError, InternalError, _Changed):  # it was compiled on another machine, or what it needs is gone
            pass
    aot_config.cache_info = AOTAutogradCacheInfo(key, time.time_ns(), forward_symints=[])
    return None


def _unpickle(content: bytes) -> GenericAOTAutogradResult | None:
    try:
        entry = pickle.loads(content)
    except Exception:  # whatever a class of another version raises
        return None
    return entry if isinstance(entry, GenericAOTAutogradResult) else None


@functools.cache
def _install() -> None:
    """AOTAutograd has no setting for its cache: it names a class, in the two modules that load and save."""
    torch_aot_autograd.AOTAutogradCache = _Cache
    graph_compile.AOTAutogradCache = _Cache
