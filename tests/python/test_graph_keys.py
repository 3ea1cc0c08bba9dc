"""Keys of AOTAutograd's results in the cache on disk: what changes one, and what has none."""

import contextlib
import functools
import types

import pytest
import torch
from torch._functorch import config as functorch_config
from torch._inductor import config as inductor_config
from torch.testing._internal.two_tensor import TwoTensor
from traced_graphs import autograd_cache, scaled, traced  # noqa: F401

from cxxinductor import device, graph_key

pytestmark = pytest.mark.usefixtures("autograd_cache")


@contextlib.contextmanager
def changed(get, put, value):
    before = get()
    put(value)
    try:
        yield
    finally:
        put(before)


def no_context():
    return contextlib.nullcontext()


CONTEXTS = {
    "autocast": lambda: torch.autocast("cpu"),
    "autocast's dtype": lambda: torch.autocast("cpu", dtype=torch.float16),
    "grad mode": torch.no_grad,
    "deterministic": lambda: changed(torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True),
    "threads": lambda: changed(torch.get_num_threads, torch.set_num_threads, torch.get_num_threads() % 2 + 1),
    "flash attention": lambda: changed(torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp, False),
    "default dtype": lambda: changed(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "matmul precision": lambda: changed(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "high"),
    "functorch's settings": lambda: functorch_config.patch(treat_parameters_as_free_to_save=False),
    "inductor's settings": lambda: inductor_config.patch(emulate_precision_casts=True),
    "mkldnn": lambda: torch.backends.mkldnn.flags(enabled=False),
    "sums of attention": lambda: changed(
        torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed, torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp, True
    ),
}
INPUTS = {
    "shape": lambda: torch.ones(2, 4),
    "strides": lambda: torch.ones(4, 4).t(),
    "offset": lambda: torch.ones(20)[4:].view(4, 4),
    "dtype": lambda: torch.ones(4, 4, dtype=torch.float64),
    "requires_grad": lambda: torch.ones(4, 4, requires_grad=True),
    "not a leaf": lambda: torch.ones(4, 4, requires_grad=True) * 1,
    "parameter": lambda: torch.nn.Parameter(torch.ones(4, 4)),
}


def test_what_changes_a_result_changes_its_key(traced):
    def found(fn=scaled, given=lambda: torch.ones(4, 4), context=no_context, **options):
        with context():
            return traced.during(lambda: traced.through_aten(fn, **options)(given()))[0]

    torch.set_float32_matmul_precision("highest")  # as after "matmul precision"
    assert (found(), found()) == (1, 0)
    for name, context in CONTEXTS.items():
        assert found(context=context) == 1, name
        assert found() == 0, name
    for name, given in INPUTS.items():
        assert found(given=given) == 1, name
        assert found() == 0, name
    for options in ({"fusion": False}, {"memory_budget": 0.5}, {"background": "all"}):
        assert found(**options) == 1, options
        assert found() == 0, options
    assert found(fn=lambda x: (x * 4).sum(0)) == 1
    assert found(fn=lambda x: (x * -0.0).sum(0)) == 1 and found(fn=lambda x: (x * 0.0).sum(0)) == 1


def test_how_calls_run_changes_no_key(traced):
    def found(**options):
        return traced.during(lambda: traced.through_aten(scaled, **options)(torch.ones(4, 4)))[0]

    assert found() == 1
    assert [found(**options) for options in ({"cuda_graphs": "on"}, {"graph_branches": True}, {"nvtx": True}, {"wait": False})] == [0, 0, 0, 0]


def test_keys_name_kinds_of_gpus(monkeypatch):
    def devices(**properties):
        gpu = types.SimpleNamespace(name="GPU", major=9, minor=0, multi_processor_count=132, total_memory=1 << 36, uuid="1", pci_bus_id=1)
        vars(gpu).update(properties)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda i: gpu)
        return graph_key._devices([])

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    assert devices() == devices(uuid="2", pci_bus_id=2) != devices(multi_processor_count=114)


def test_inputs_that_share_memory_have_another_key(traced):
    def f(x, y):
        x.add_(1)
        return x + y

    def run(other):
        base = torch.ones(4)
        with torch.no_grad():
            return traced.through_aten(f)(base[:2], other(base))

    assert traced.during(lambda: run(lambda base: torch.ones(4)[:2]))[0] == 1
    count, y = traced.during(lambda: run(lambda base: base[:2]))
    assert count == 1 and y.tolist() == [4.0, 4.0]


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@torch.library.custom_op("cxxinductor_test_graph_cache::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


double.register_fake(lambda x: torch.empty_like(x))


def with_saved_tensors_hooks(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        return x.sin() + 1


NO_KEY = {
    "custom operator": (lambda x: double(x.detach()) + 1, {}),
    "symbolic sizes": (lambda x: x * x.shape[0], {"dynamic": True}),
    "symbolic float": (lambda x, scale=1.5: x * scale, {"dynamic": True}),
    "sizes that are data": (lambda x: x.nonzero(), {}),
    "Python's derivative": (lambda x: Double.apply(x) + 1, {}),
    "checkpoint": (lambda x: torch.utils.checkpoint.checkpoint(lambda x: x.sin().sin(), x, use_reentrant=False), {}),
    "condition": (lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)), {}),
    "hooks": (with_saved_tensors_hooks, {}),
}


@pytest.mark.parametrize("name", NO_KEY)
def test_graphs_without_a_key_are_traced(traced, name):
    fn, options = NO_KEY[name]
    x = torch.full((5,), 2.0, requires_grad=True)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        runs = [traced.during(lambda: traced.compile(fn, tier="aten", **options)(x)) for _ in range(2)]
    assert runs[0][0] == runs[1][0] >= 1
    for _, y in runs:
        torch.testing.assert_close(y, fn(x))


def test_assignments_to_data_leave_no_key(traced):
    fn = lambda x, y: (setattr(x, "data", y * 2), x + 1)[1]  # noqa: E731
    assert torch.equal(traced.compile(fn)(torch.ones(3), torch.ones(3)), torch.full((3,), 3.0))


def tenfold(function):
    return functools.wraps(function)(lambda *args, **settings: function(*args, **settings) * 10)


class Tenfold:
    def __init__(self, function):
        functools.update_wrapper(self, function)

    def __call__(self, *args, **settings):
        return self.__wrapped__(*args, **settings) * 10


REPLACED = {
    "function": (torch, "layer_norm", tenfold, lambda x: torch.nn.functional.layer_norm(x, (4,))),
    "operator": (torch.Tensor, "__add__", tenfold, lambda x: x + 3),
    "function of a method": (torch, "norm", tenfold, lambda x: x.norm(dim=1)),
    "function in a decorator of PyTorch's": (torch, "layer_norm", lambda f: torch.no_grad()(tenfold(f)), lambda x: torch.nn.functional.layer_norm(x, (4,))),
    "object": (torch, "layer_norm", Tenfold, lambda x: torch.nn.functional.layer_norm(x, (4,))),
    "another function of PyTorch's": (torch, "relu", lambda _: torch.sigmoid, lambda x: torch.nn.functional.relu(x)),
}


@pytest.mark.parametrize("name", REPLACED)
def test_what_runs_a_function_in_the_place_of_pytorchs_is_traced(traced, monkeypatch, name):
    """Dynamo's graph names PyTorch's function, or another that calls it."""
    where, attribute, replace, fn = REPLACED[name]
    x = torch.randn(4, 4)
    run = lambda: traced.through_aten(fn)(x)  # noqa: E731
    assert [traced.during(run)[0] for _ in range(2)] == [1, 0]
    with monkeypatch.context() as patch:
        patch.setattr(where, attribute, replace(getattr(where, attribute)))
        count, y = traced.during(run)
        assert count == 1
        torch.testing.assert_close(y, fn(x))
    assert traced.during(run)[0] == 0


def test_kernels_in_the_place_of_atens_leave_no_key(traced):
    run = lambda: traced.through_aten(lambda x: torch.nn.functional.silu(x) + 1)(torch.ones(4, 4))  # noqa: E731
    assert [traced.during(run)[0] for _ in range(2)] == [1, 0]
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("silu", lambda x: x * 10, "AutogradCPU")
        assert traced.during(run)[0] == 1
    assert traced.during(run)[0] == 0


def test_functions_with_the_name_of_one_of_pytorchs_are_traced(traced):
    x = torch.randn(4, 4)
    for factor in (2, 3):
        scaled_relu = torch.compiler.allow_in_graph(functools.wraps(torch.nn.functional.relu)(lambda x, factor=factor: x * factor))
        count, y = traced.during(lambda: traced.through_aten(lambda x: scaled_relu(x) + 1)(x))
        assert count == 1 and torch.equal(y, x * factor + 1)


def test_settings_that_are_functions_leave_no_key(traced):
    class Pass:
        __repr__ = lambda self: "Pass()"  # noqa: E731
        __call__ = lambda self, joint, inputs: joint  # noqa: E731

    run = lambda: traced.through_aten(scaled)(torch.ones(4, 4, requires_grad=True))  # noqa: E731
    with functorch_config.patch(joint_custom_pass=Pass()):
        assert [traced.during(run)[0] for _ in range(2)] == [1, 1]


def test_subclasses_of_tensors_are_traced(traced):
    x = TwoTensor(torch.ones(3), torch.full((3,), 2.0))
    for _ in range(2):
        count, y = traced.during(lambda: traced.through_aten(lambda x: x * 7)(x))
        assert count == 1 and torch.equal(y.b, torch.full((3,), 14.0))


def test_hooks_around_a_compile_leave_no_key(traced):
    run = lambda: traced.through_aten(scaled)(torch.ones(4, 4))  # noqa: E731
    for _ in range(2):
        with torch.autograd.graph.save_on_cpu():
            assert traced.during(run)[0] == 1
    assert traced.during(run)[0] == 1


def test_the_recorded_devices_new_tensor_leaves_the_keys(traced, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "new_tensor", torch.Tensor.new_tensor)
    device._make_new_tensor_known("recorded")
    run = lambda: traced.through_aten(scaled)(torch.ones(4, 4))  # noqa: E731
    assert [traced.during(run)[0] for _ in range(2)] == [1, 0]


def test_graphs_that_are_not_verified_are_kept(traced):
    run = lambda: traced.through_aten(scaled, verify="off")(torch.ones(4, 4))  # noqa: E731
    assert [traced.during(run)[0] for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("off", [{"cache": "off"}, {"dump": "plan"}, {"check": "interp"}, {"verify": "each"}], ids=str)
def test_options_that_turn_it_off(traced, off, tmp_path):
    run = lambda: traced.through_aten(scaled, dump_dir=str(tmp_path / "dump"), **off)(torch.ones(4, 4))  # noqa: E731
    assert [traced.during(run)[0] for _ in range(2)] == [1, 1]


def test_pytorchs_setting_turns_it_off(traced):
    with functorch_config.patch(enable_autograd_cache=False):
        assert [traced.during(lambda: traced.through_aten(scaled)(torch.ones(4, 4)))[0] for _ in range(2)] == [1, 1]
