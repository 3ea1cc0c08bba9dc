"""Shared fixtures: the device under test, deterministic seeds, fresh compiler state for each test."""

import gc
import os

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", choices=["cpu", "cuda"], help="device that the suites run on")
    parser.addoption("--graphs", action="store_true", help="replay every call on a GPU from a CUDA graph, the first one too, unless a test says otherwise")


def pytest_configure(config):
    if config.getoption("--graphs"):
        os.environ["CXXINDUCTOR_CUDA_GRAPHS"] = "at_once"


def pytest_collection_modifyitems(config, items):
    if config.getoption("--device") == "cuda":
        if not torch.cuda.is_available():
            raise pytest.UsageError("--device cuda needs a CUDA device; run the suites without it for the CPU")
        return
    skip = pytest.mark.skip(reason="needs a CUDA device: make gpu-test")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


def pytest_collection_finish(session):
    # Modules have a million objects, which the collector would look through again and again. Tracing makes a hundred thousand at a time, and few
    # of them are in cycles.
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


@pytest.fixture
def device(request):
    return request.config.getoption("--device")


@pytest.fixture(autouse=True)
def step_by_step(request, monkeypatch):
    if request.node.get_closest_marker("step_by_step"):
        monkeypatch.delenv("CXXINDUCTOR_CUDA_GRAPHS", raising=False)


@pytest.fixture(autouse=True)
def fresh_state():
    import cxxinductor

    torch.manual_seed(0)
    torch._dynamo.reset()
    cxxinductor.reset_counters()
    # Tests change parts of the compiler, which no key of a result shows.
    with torch._functorch.config.patch(enable_autograd_cache=False):
        yield
    torch._dynamo.reset()


@pytest.fixture
def register(request):
    """Registers for one test."""

    def register(function, *args, **kwargs):
        registration = function(*args, **kwargs)
        request.addfinalizer(registration.remove)
        return registration

    return register
