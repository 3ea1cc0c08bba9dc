"""Counts what AOTAutograd traces while its results come from the cache on disk. Tests import the fixtures."""

import warnings

import pytest
import torch
import torch._functorch.aot_autograd as aot
from torch._functorch import config as functorch_config


@pytest.fixture
def autograd_cache():
    with functorch_config.patch(enable_autograd_cache=True):
        yield


class Traced:
    """Counts the graphs that AOTAutograd traces."""

    def __init__(self, monkeypatch, folder):
        self.folder, self.count = folder, 0
        capture = aot.aot_stage1_graph_capture

        def counted(*args):
            self.count += 1
            return capture(*args)

        monkeypatch.setattr(aot, "aot_stage1_graph_capture", counted)

    def during(self, run):
        """(how many graphs were traced in a run that Dynamo begins anew, its result)"""
        torch._dynamo.reset()
        before = self.count
        result = run()
        return self.count - before, result

    def compile(self, fn, dynamic=False, **options):
        return torch.compile(fn, backend="cxxinductor", dynamic=dynamic, options={"cache_dir": str(self.folder), **options})

    def through_aten(self, fn, **options):
        """Compiled as far as AOTAutograd goes."""
        return self.compile(fn, tier="aten", **options)


@pytest.fixture
def traced(monkeypatch, tmp_path):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the option tier=aten asks for it")
        yield Traced(monkeypatch, tmp_path)


def scaled(x):
    return (x * 3).sum(0)
