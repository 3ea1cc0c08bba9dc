"""Keeps AOTAutograd's results in the cache on disk, so that a later process traces no joint graph, decomposes and partitions nothing.

PyTorch's own cache of these results (``AOTAutogradCache``) makes keys with Inductor's code generator. This one has keys of its own, and reads
and writes PyTorch's records (``GenericAOTAutogradResult``), with the calls of our graphs in the place of Inductor's code. An entry is a pickle:
it is as trusted as the machine code beside it.

A key is the text of all that a result follows from: Dynamo's graph, the metadata of its inputs and how they share memory, settings of
PyTorch, versions, options. Graphs that hold what the text does not show (symbolic sizes, tensors, Python functions, custom operators whose
code may change) have no key, and are traced.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import hashlib
import pickle
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import torch
from torch._functorch import aot_autograd as torch_aot_autograd
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd import autograd_cache, graph_compile
from torch._functorch._aot_autograd.aot_autograd_result import GenericAOTAutogradResult, GenericCompiledBackward, InductorOutput
from torch._functorch._aot_autograd.schemas import AOTAutogradCacheInfo, SerializableAOTDispatchCompiler
from torch._inductor.output_code import OutputCode
from torch._subclasses import FakeTensor

from . import _C, cache_transfer
from .errors import InternalError, Unsupported, UserError

LoadGraph = Callable[[str, str], Callable[[list[Any]], Any]]  # (calls, kind)

_MARK = "_fx_graph_cache_key"  # AOTAutograd saves what has this attribute


class _Compile(NamedTuple):
    """The compile of a Dynamo graph that is under way in this thread."""

    options: "_C.Options"
    load: LoadGraph


_current: contextvars.ContextVar[_Compile | None] = contextvars.ContextVar("cxxinductor_compile", default=None)


class _Key(str):
    """A key of ours, among those of PyTorch's cache."""

    options: "_C.Options"


class _NoKey(Exception):
    """The graph has something that no text shows."""


@contextlib.contextmanager
def used(options: "_C.Options", load: LoadGraph) -> Iterator[bool]:
    """Inside of the block, AOTAutograd takes its results from the cache, and graphs that ``mark`` marked are saved there.

    Args:
        load: makes a boxed callable of a graph's calls, for a result that was found.

    Yields:
        whether the cache is used; its compilers then have to be ``compiler``'s.
    """
    wanted = (
        all(options.get(name) == off for name, off in (("cache", "on"), ("dump", ""), ("check", "off"), ("verify", "boundaries")))
        and functorch_config.enable_autograd_cache
        and not torch.compiler.config.force_disable_caches
        and not autograd_cache.should_bundle_autograd_cache()
    )
    if not wanted:
        yield False
        return
    _install()
    token = _current.set(_Compile(options, load))
    try:
        yield True
    finally:
        _current.reset(token)


class Decompositions(NamedTuple):
    """For AOTAutograd: a table of decompositions that is made when nothing was found in the cache."""

    table: Callable[[], Any]


def compiler(compile_graph: Callable[..., Any]) -> SerializableAOTDispatchCompiler:
    """For AOTAutograd, which uses its cache with compilers of this class alone."""
    return SerializableAOTDispatchCompiler(OutputCode, compile_graph)


def mark(compiled: "_C.CompiledGraph", calls: str, kind: str) -> None:
    """The graph may be saved: the calls are all that it follows from, and it is called as it is."""
    compiled.__dict__[_MARK] = (calls, kind)


# ---- PyTorch's records ---------------------------------------------------------------------------------------------


@dataclass
class _Forward(InductorOutput):
    """A forward or an inference graph of an entry."""

    calls: str
    kind: str

    def pre_save(self) -> None:
        pass

    def load(self, example_inputs: Sequence[Any]) -> Any:
        compile = _current.get()
        assert compile is not None, "an entry was read outside of a compile"
        return compile.load(self.calls, self.kind)

    def post_compile(self, result: Any, fx_config: Any) -> Any:
        return result


@dataclass
class _Backward(GenericCompiledBackward, _Forward):
    """A backward graph of an entry."""

    def post_compile(self, result: Any, fx_config: Any) -> Any:
        return torch._dynamo.disable(result, reason="do not trace generated backwards pass")


def _marked(compiled: Any) -> tuple[str, str] | None:
    while compiled is not None:
        if isinstance(found := getattr(compiled, _MARK, None), tuple):
            return found
        compiled = getattr(compiled, "__wrapped__", None)
    return None


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

    # A backward graph is saved when it first runs, maybe while Dynamo looks at what runs.
    @staticmethod
    @torch._dynamo.disable
    def make_entry(compiled_fw_func: Any, compiled_bw_func: Any, *others: Any, **fields: Any) -> Any:
        forward = _marked(compiled_fw_func)
        if forward is None:
            return autograd_cache.AOTAutogradCache.make_entry(compiled_fw_func, compiled_bw_func, *others, **fields)
        backward_state, symints = fields.pop("backward_state_indices"), fields.pop("num_symints_saved_for_bw")
        backward = _marked(compiled_bw_func)
        compiled_bw = _Backward(*backward, backward_state, symints) if backward else None
        fields["guards_expr"] = None
        return GenericAOTAutogradResult(_Forward(*forward), compiled_bw, *others, **fields)

    @staticmethod
    @torch._dynamo.disable
    def save(key: str, entry: Any, remote: bool) -> None:
        if not isinstance(key, _Key):
            autograd_cache.AOTAutogradCache.save(key, entry, remote)
            return
        try:
            content = pickle.dumps(entry)
        except (pickle.PicklingError, TypeError, AttributeError):  # what runs around the graph holds objects of this process
            return
        _C.cache_put(key, content, key.options)
        cache_transfer.record_used(key.options)  # of the backward graph too, which is compiled late


def _load(mod: Any, args: list[Any], aot_config: Any, current: _Compile) -> Callable[..., Any] | None:
    """What was saved for these arguments; None, and their key in aot_config, where nothing was."""
    try:
        key = _Key(_key_text(mod, args, aot_config, current.options))
    except _NoKey:
        return None
    key.options = current.options
    found = _C.cache_get(key, current.options)
    entry = _unpickle(found) if found is not None else None
    if entry is None:
        aot_config.cache_info = AOTAutogradCacheInfo(key, time.time_ns(), forward_symints=[])
        return None
    try:
        return entry.wrap_post_compile(args, aot_config, {})
    except (Unsupported, UserError, InternalError):  # a graph that runs in eager mode is not known by its calls
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


# ---- keys ----------------------------------------------------------------------------------------------------------

_NAMESPACES = ("aten", "prims", "prim")  # of operators whose code is PyTorch's or ours


def _key_text(mod: Any, inputs: Sequence[Any], aot_config: Any, options: "_C.Options") -> str:
    if not isinstance(mod, torch.fx.GraphModule):
        raise _NoKey
    parts = ["aot", _versions(), _C.options_key(options), repr(_settings()), repr(_devices(inputs))]
    parts.append(repr([getattr(aot_config, name) for name in _CONFIG]))
    parts += _graph_texts(mod)
    storages: dict[int, int] = {}
    parts += [_input_text(value, storages) for value in inputs]
    return "\n".join(parts)


_CONFIG = (
    "num_params_buffers",
    "keep_inference_input_mutations",
    "static_input_indices",
    "no_tangents",
    "dynamic_shapes",
    "pre_dispatch",
    "disable_functionalization",
    "aot_autograd_arg_pos_to_source",
)


@functools.cache
def _versions() -> str:
    """Of PyTorch, Python and this package's Python code; the library's build is the disk cache's to tell apart."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return f"{torch.__version__} {torch.version.git_version} {sys.version} {digest.hexdigest()}"


def _settings() -> list[Any]:
    """PyTorch's settings that tracing and the operators' composites read."""
    cuda, kinds = torch.backends.cuda, ("cpu", "cuda")
    return [
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        [(torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds],
        torch.is_autocast_cache_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
        torch.get_default_dtype(),
        cuda.matmul.fp32_precision,
        cuda.matmul.allow_fp16_reduced_precision_reduction,
        cuda.matmul.allow_bf16_reduced_precision_reduction,
        cuda.flash_sdp_enabled(),
        cuda.mem_efficient_sdp_enabled(),
        cuda.math_sdp_enabled(),
        cuda.cudnn_sdp_enabled(),
        cuda.is_flash_attention_available(),
        (torch.backends.cudnn.enabled, torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32),
        torch.backends.mkldnn.enabled,
        torch.get_num_threads(),
        sorted(functorch_config.save_config_portable().items()),
    ]


def _devices(inputs: Sequence[Any]) -> list[str]:
    if not any(isinstance(value, torch.Tensor) and value.device.type == "cuda" for value in inputs):
        return []
    return [torch.version.cuda or "", *(repr(torch.cuda.get_device_properties(i)) for i in range(torch.cuda.device_count()))]


def _graph_texts(gm: torch.fx.GraphModule) -> list[str]:
    texts = []
    for name, module in gm.named_modules():
        if not isinstance(module, torch.fx.GraphModule) or module._parameters or module._buffers:
            raise _NoKey
        for node in module.graph.nodes:
            _require_known(node, module)
        texts.append(f"{name}: {module.code}")
    return texts


def _require_known(node: torch.fx.Node, gm: torch.fx.GraphModule) -> None:
    """That the text of the graph says what the node does."""
    try:
        autograd_cache.check_node_safe(node)
    except autograd_cache.BypassAOTAutogradCache:
        raise _NoKey from None
    target = node.target
    if node.meta.get("is_wrapped") or node.op == "call_module":
        raise _NoKey
    if isinstance(target, torch._ops.OpOverload) and target.namespace not in _NAMESPACES:
        raise _NoKey
    if isinstance(target, torch._ops.OpOverloadPacket) and target._qualified_op_name.split("::")[0] not in _NAMESPACES:
        raise _NoKey
    if isinstance(target, torch._ops.HigherOrderOperator):
        raise _NoKey
    if node.op == "get_attr" and not isinstance(getattr(gm, str(node.target), None), torch.fx.GraphModule):
        raise _NoKey
    torch.fx.node.map_aggregate((node.args, node.kwargs), _require_printed)


_PRINTED = (int, float, complex, bool, str, type(None), type(...), slice, range, torch.fx.Node, torch.dtype, torch.device, torch.layout, torch.memory_format)


def _require_printed(value: Any) -> Any:
    if not isinstance(value, _PRINTED):
        raise _NoKey
    return value


def _input_text(value: Any, storages: dict[int, int]) -> str:
    if value is None or type(value) in (int, bool, float):
        return repr(value)
    if type(value) not in (FakeTensor, torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided or value.is_quantized:
        raise _NoKey
    sizes = [*value.shape, *value.stride(), value.storage_offset(), value.untyped_storage().nbytes()]
    if not all(isinstance(size, int) for size in sizes):
        raise _NoKey
    storage = storages.setdefault(value.untyped_storage()._cdata, len(storages))
    flags = (value.requires_grad, value.is_leaf, value._is_view(), value.is_conj(), value.is_neg(), value.is_inference(), isinstance(value, torch.nn.Parameter))
    return f"{value.dtype} {value.device} {sizes} {storage} {flags}"
