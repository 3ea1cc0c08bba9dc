"""Keys of AOTAutograd's results: the text of all that a result follows from.

That is Dynamo's graph with the lines of the model, the metadata of its inputs and how they share memory, settings of PyTorch, versions and
options. A graph with what no text shows (symbolic sizes, tensors of its own, Python functions, custom operators whose code may change) has
no key, and neither has one while a program has functions of its own in the place of PyTorch's. Two compiles that may differ must have
different keys; that equal compiles have different ones only costs time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import types
import typing
from typing import Any, Callable, Sequence

import torch
import typing_extensions
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd import autograd_cache
from torch._inductor import config as inductor_config
from torch._subclasses import FakeTensor
from torch.fx.experimental import _config as symbolic_shapes_config

from . import _C, origins


class _NoKey(Exception):
    """The graph has something that no text shows."""


def text(mod: Any, inputs: Sequence[Any], aot_config: Any, options: "_C.Options", when: str, extensions: str) -> str | None:
    """The key of what AOTAutograd makes of Dynamo's graph; None where it has none.

    Args:
        inputs: parameters, buffers and arguments, as AOTAutograd gets them.
        when: its graphs are compiled, which their strides follow from.
        extensions: the key of what users registered.
    """
    try:
        parts = ["aot", when, _versions(), _C.options_key(options), repr(_settings()), repr(_devices(inputs))]
        parts.append(extensions)
        parts.append(repr([getattr(aot_config, name) for name in _CONFIG]))
        parts += [f"{type(source).__qualname__} {source and source.name}" for source in aot_config.aot_autograd_arg_pos_to_source or ()]
        parts += _graph_texts(mod)
        parts += _input_texts(inputs)
    except _NoKey:
        return None
    return "\n".join(parts)


_CONFIG = (
    "num_params_buffers",
    "keep_inference_input_mutations",
    "static_input_indices",
    "no_tangents",
    "dynamic_shapes",
    "pre_dispatch",
    "disable_functionalization",
    "force_non_lazy_backward_lowering",
    "is_export",
)


@functools.cache
def _versions() -> str:
    """Of PyTorch, Python and this package's Python code; the library's build is the disk cache's to tell apart."""
    digest = hashlib.sha256()
    folder = os.path.dirname(__file__)  # pathlib takes as long as the files
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb", buffering=0) as file:
                digest.update(file.read())
    return f"{torch.__version__} {torch.version.git_version} {sys.version} {digest.hexdigest()}"


# ---- settings ------------------------------------------------------------------------------------------------------

_DEVICES = ("cpu", "cuda")  # of inputs; those of others have settings of their own


def _settings() -> list[Any]:
    """PyTorch's settings that tracing, partitioning and the operators' composites read."""
    _require_no_modes()
    if _has_replaced_kernels():
        raise _NoKey
    backends = torch.backends
    return [
        _functions_of_other_names(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_anomaly_enabled(),
        [(torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in _DEVICES],
        torch.is_autocast_cache_enabled(),
        torch.get_default_device(),
        torch._C._is_view_replay_enabled(),
        _C.library_settings(),
        torch.get_float32_matmul_precision(),
        backends.cuda.is_flash_attention_available(),
        (backends.opt_einsum.is_available(), backends.opt_einsum.enabled, backends.opt_einsum.strategy),
        backends.mha.get_fastpath_enabled(),
        backends.cpu.get_cpu_capability(),
        torch.get_num_threads(),
        *map(_values, (functorch_config, symbolic_shapes_config, inductor_config)),
    ]


def _values(config: Any) -> list[tuple[str, Any]]:
    """As save_config_portable has them, without its copies."""
    read = config.__getattr__  # getattr would first look where settings are not: there are hundreds
    values = [(name, read(name)) for name in _names(config, ("_", *getattr(config, "_cache_config_ignore_prefix", ())))]
    if any(callable(value) for _, value in values):  # a pass of the user's
        raise _NoKey
    return values


@functools.cache
def _names(config: Any, ignored: tuple[str, ...]) -> list[str]:
    return [name for name, entry in config._config.items() if entry.alias is None and not name.startswith(ignored)]


def _require_no_modes() -> None:
    """That nothing but settings decides what operators do while AOTAutograd traces."""
    others = torch._C._is_any_autocast_enabled() and not any(torch.is_autocast_enabled(device) for device in _DEVICES)
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True) is not None
    transforms = torch._C._functorch.peek_interpreter_stack() is not None
    if others or hooks or transforms or torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
        raise _NoKey


_PATCHED = (torch, torch.Tensor, torch.functional, torch.nn.functional, torch.linalg, torch.fft, torch.special, torch._C._nn)
_IN_C = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
_IN_PYTHON = (types.FunctionType, types.MethodType, functools.partial)
_CACHED = type(functools.lru_cache(len))
_OF_TYPES = ("typing", "typing_extensions", "types")  # modules of callable objects that are no functions
_FOLDER = os.path.dirname(torch.typename.__code__.co_filename) + os.sep  # of PyTorch, as its code names it
# Files whose functions stand around some of PyTorch's; device.py: register_device's, around Tensor.new_tensor.
_DECORATORS = (typing.__file__, typing_extensions.__file__, os.path.join(os.path.dirname(__file__), "device.py"))


def _functions_of_other_names() -> list[str]:
    """PyTorch's functions call each other by names, which a program may give to other functions: to some of PyTorch's, which this tells, or to its
    own, with which nothing has a key."""
    texts = []
    for owner in _PATCHED:
        for name, value in vars(owner).items():
            kind = type(value)
            if kind in _IN_C:
                is_known = _is_of(value.__module__ if kind is types.BuiltinFunctionType else None, "torch", "builtins")
            elif kind in _IN_PYTHON:
                is_known = _is_pytorchs(value)
            elif not callable(value) or isinstance(value, type):
                continue
            else:
                is_known = _is_pytorchs(value.__wrapped__) if kind is _CACHED else _is_of(kind.__module__, "torch", *_OF_TYPES)
            if not is_known:
                raise _NoKey
            if (own_name := getattr(value, "__name__", name)) != name:
                texts.append(f"{name} is {own_name}")
    return texts


def _is_of(module: str | None, *packages: str) -> bool:
    return module is None or module.split(".")[0] in packages


def _has_replaced_kernels() -> bool:
    """Whether torch.library has kernels of ATen's operators besides PyTorch's own."""
    return any(key.startswith("aten/") and not key.endswith(("/Meta", "/MPS")) for key in torch.library._impls)


def _is_pytorchs(function: Any) -> bool:
    """Whether a function in Python is of PyTorch's files, and what it wraps, too. Its name and module do not tell: functools.wraps copies them."""
    seen, waiting = set(), [function]
    while waiting:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        code = getattr(function, "__code__", None)
        if code is None or not (code.co_filename.startswith(_FOLDER) or code.co_filename in _DECORATORS):
            return False
        waiting += [value for value in _closure(function) if type(value) in _IN_PYTHON]
    return True


def _closure(function: Any) -> list[Any]:
    """What a function holds of the scopes around it: a decorator's, what it wraps."""
    values = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it is empty
            values.append(cell.cell_contents)
    return values


def _devices(inputs: Sequence[Any]) -> list[Any]:
    """What of GPUs a graph may follow from: which there are, and which one operators without a device of their own choose."""
    if any(isinstance(value, torch.Tensor) and value.device.type not in _DEVICES for value in inputs):
        raise _NoKey
    if not torch.cuda.is_available():
        return []
    found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    # Not which GPUs they are: other hosts have equal ones.
    kinds = [(gpu.name, gpu.major, gpu.minor, gpu.multi_processor_count, gpu.total_memory) for gpu in found]
    return [torch.version.cuda, torch.cuda.current_device(), *kinds]


# ---- graphs --------------------------------------------------------------------------------------------------------

_NAMESPACES = ("aten", "prims", "prim", "cxxinductor")  # of operators whose code is PyTorch's or ours
_MODULES = ("torch", "builtins", "_operator", "math")  # of functions in C


def _graph_texts(mod: Any) -> list[str]:
    if not isinstance(mod, torch.fx.GraphModule):
        raise _NoKey
    texts: list[str] = []
    known: set[Any] = set()
    for name, module in mod.named_modules():
        if not isinstance(module, torch.fx.GraphModule) or module._parameters or module._buffers:
            raise _NoKey
        texts.append(f"graph {name}")
        texts += [_node_text(node, module, known) for node in module.graph.nodes]
    return texts


def _node_text(node: torch.fx.Node, gm: torch.fx.GraphModule, known: set[Any]) -> str:
    """What the node does, and where in the model it comes from. known: functions that PyTorch's and Python's versions are known to describe."""
    _require_known(node, gm, known)
    target = node.target
    if callable(target) and not isinstance(target, torch._ops.OpOverload):
        target = f"{target.__module__}.{target.__qualname__}"
    arguments = [_value_text(value) for value in node.args]
    arguments += [f"{name}={_value_text(value)}" for name, value in node.kwargs.items()]
    where = origins.model_line(node) if node.op.startswith("call") else ""
    return f"{node.name} = {node.op} {target}({', '.join(arguments)}) {where}"


def _require_known(node: torch.fx.Node, gm: torch.fx.GraphModule, known: set[Any]) -> None:
    meta = node.meta
    if node.op == "call_module" or meta.get("is_wrapped") or meta.get("custom") or not _is_static(meta.get("example_value")):
        raise _NoKey
    is_function = node.op == "call_function"
    if node.op in ("placeholder", "output") or (is_function and node.target in known):
        return
    try:
        autograd_cache.check_node_safe(node)
    except (autograd_cache.BypassAOTAutogradCache, AttributeError):  # it asks descriptors for their module, which they do not have
        raise _NoKey from None
    if is_function:
        if not _is_fixed(node.target):
            raise _NoKey
        known.add(node.target)
    if node.op == "get_attr" and not isinstance(getattr(gm, str(node.target), None), torch.fx.GraphModule):
        raise _NoKey


def _is_static(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not value._has_symbolic_sizes_strides
    if isinstance(value, (list, tuple)):
        return all(map(_is_static, value))
    return not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def _is_fixed(target: Callable[..., Any]) -> bool:
    """Whether PyTorch's and Python's versions say what the function does."""
    if isinstance(target, torch._ops.OpOverload):
        return target.namespace in _NAMESPACES
    if isinstance(target, torch._ops.OpOverloadPacket):
        return target._qualified_op_name.split("::")[0] in _NAMESPACES
    if isinstance(target, torch._ops.HigherOrderOperator):
        return False
    if isinstance(target, types.FunctionType) and not _is_pytorchs(target):
        return False
    return (getattr(target, "__module__", None) or "").split(".")[0] in _MODULES


_PRINTED = {int, float, complex, bool, str, type(None), type(...), range, torch.dtype, torch.device, torch.layout, torch.memory_format}


def _value_text(value: Any) -> str:
    if isinstance(value, torch.fx.Node):
        return f"%{value.name}"
    if type(value) in _PRINTED:
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"{type(value).__qualname__}[{', '.join(map(_value_text, value))}]"
    if isinstance(value, slice):
        return f"slice[{_value_text(value.start)}, {_value_text(value.stop)}, {_value_text(value.step)}]"
    if isinstance(value, dict):
        return f"dict[{', '.join(f'{_value_text(key)}: {_value_text(item)}' for key, item in value.items())}]"
    raise _NoKey


# ---- inputs --------------------------------------------------------------------------------------------------------


def _input_texts(inputs: Sequence[Any]) -> list[str]:
    """Of each input its metadata, and the number of its storage among those of all."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    if len({id(value) for value in tensors}) != len(tensors):  # AOTAutograd sets guards on those
        raise _NoKey
    storages: dict[int, int] = {}
    return [_tensor_text(value, storages) if isinstance(value, torch.Tensor) else _scalar_text(value) for value in inputs]


def _scalar_text(value: Any) -> str:
    if value is not None and type(value) not in (int, bool, float):
        raise _NoKey
    return repr(value)


def _tensor_text(value: torch.Tensor, storages: dict[int, int]) -> str:
    if type(value) not in (FakeTensor, torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided or value.is_quantized or value.has_names():
        raise _NoKey
    sizes = [*value.shape, *value.stride(), value.storage_offset(), value.untyped_storage().nbytes()]
    if not all(isinstance(size, int) for size in sizes):
        raise _NoKey
    storage = storages.setdefault(value.untyped_storage()._cdata, len(storages))
    flags = (value.requires_grad, value.is_leaf, value._is_view(), value.is_conj(), value.is_neg(), value.is_inference(), isinstance(value, torch.nn.Parameter))
    return f"{value.dtype} {value.device} {sizes} {storage} {flags}"
