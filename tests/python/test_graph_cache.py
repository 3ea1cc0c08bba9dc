"""AOTAutograd's results in the cache on disk: what a second process reads.

Most second processes are torch._dynamo.reset() here: it leaves nothing but the cache on disk.
"""

import json
import os
import subprocess
import sys

import pytest
import torch
from torch.compiler._cache import CacheArtifactManager
from traced_graphs import autograd_cache, scaled, traced  # noqa: F401

import cxxinductor
from cxxinductor import graph_cache

pytestmark = pytest.mark.usefixtures("autograd_cache")


# ---- hits ----------------------------------------------------------------------------------------------------------


def step(traced, model, x, **options):
    """Gradients of a training step, which are eager's."""
    inputs = [x, *model.parameters()]
    eager = torch.autograd.grad(model(x).square().sum(), inputs)
    found = traced.compile(lambda x: model(x).square().sum(), **options)
    gradients = torch.autograd.grad(found(x), inputs)
    for e, g in zip(eager, gradients):
        torch.testing.assert_close(g, e)
    return gradients


@pytest.mark.parametrize("options", [{}, {"background": "all"}, {"memory_budget": 0.3}], ids=str)
def test_a_training_step_is_read_back(traced, options):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    x = torch.randn(3, 4, requires_grad=True)
    first, _ = traced.during(lambda: step(traced, model, x, **options))
    cxxinductor._C.wait_for_compiles()
    cxxinductor.reset_counters()
    second, _ = traced.during(lambda: step(traced, model, x, **options))
    assert (first, second) == (1, 0)
    cxxinductor._C.wait_for_compiles()
    found = cxxinductor.counters()
    assert found["aten_fallback"] == found["eager_fallback"] == 0
    assert found["background_compiles"] == (2 if options.get("background") else 1)  # the backward graph's


def test_a_backward_pass_may_run_twice(traced):
    x = torch.randn(4, 4, requires_grad=True)

    def run():
        y = traced.compile(lambda x: (x.sin() * x.exp()).sum())(x)
        return [torch.autograd.grad(y, x, retain_graph=keep)[0] for keep in (True, False)]

    for _ in range(2):
        _, (first, second) = traced.during(run)
        assert torch.equal(first, second)
    assert traced.count == 1


def test_written_inputs_and_views_are_read_back(traced):
    def f(x, y):
        x.mul_(2)
        return x.view(-1), (x + y).relu(), y.t()

    def run():
        x, y = torch.ones(2, 3), torch.ones(2, 3)
        with torch.no_grad():
            flat, total, turned = traced.compile(f)(x, y)
        assert flat.data_ptr() == x.data_ptr() and turned.data_ptr() == y.data_ptr()
        assert torch.equal(x, torch.full((2, 3), 2.0)) and torch.equal(total, torch.full((2, 3), 3.0))

    assert [traced.during(run)[0] for _ in range(2)] == [1, 0]


def test_buffers_that_are_written_are_read_back(traced):
    def run():
        torch.manual_seed(0)
        norm = torch.nn.BatchNorm1d(3)
        x = torch.randn(5, 3, requires_grad=True)
        traced.through_aten(norm)(x).sum().backward()
        return norm.running_mean.clone(), norm.num_batches_tracked.clone()

    (first, made), (second, found) = traced.during(run), traced.during(run)
    assert (first, second) == (1, 0)
    assert torch.equal(made[0], found[0]) and made[1] == found[1] == 1


def test_compiled_autograd_finds_the_backward_graph_of_an_entry(traced):
    def f(x):
        return (x.sin() * 3).sum()

    x = torch.randn(4, requires_grad=True)
    expected = torch.autograd.grad(f(x), x)[0]

    def run():
        y = traced.through_aten(f)(x)
        with torch._dynamo.compiled_autograd._enable(lambda gm: gm):
            x.grad = None
            y.backward()
        torch.testing.assert_close(x.grad, expected)

    torch.autograd.grad(traced.through_aten(f)(x), x)
    assert traced.during(run)[0] == 0


# ---- entries -------------------------------------------------------------------------------------------------------


def entries(folder):
    return sorted(path for path in folder.iterdir() if b"cxxinductor.graph_cache" in path.read_bytes())


def test_damaged_entries_are_made_again(traced):
    x = torch.ones(4, 4)
    run = lambda: traced.through_aten(scaled)(x)  # noqa: E731
    assert traced.during(run)[0] == 1
    (entry,) = entries(traced.folder)
    entry.write_bytes(entry.read_bytes()[:-1] + b"x")
    count, y = traced.during(run)
    assert count == 1 and torch.equal(y, scaled(x))
    assert traced.during(run)[0] == 0


def test_an_entry_without_plan_and_kernels_is_compiled_again(traced):
    run = lambda: traced.compile(scaled)(torch.ones(4, 4))  # noqa: E731
    assert traced.during(run)[0] == 1
    kept = entries(traced.folder)
    for entry in traced.folder.iterdir():
        if entry not in kept:
            entry.unlink()
    cxxinductor.reset_counters()
    assert traced.during(run)[0] == 0 and cxxinductor.counters()["graphs"] == 1


def test_strides_that_come_out_otherwise_are_traced_again(traced, monkeypatch):
    """As on a machine whose plans choose other strides for what a forward graph saves: the backward graph was compiled for the first's."""
    x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, 4)
    run = lambda: torch.autograd.grad(traced.compile(lambda x: ((x @ w).sin() * x.exp()).sum())(x), x)  # noqa: E731
    assert traced.during(run)[0] == 1
    from cxxinductor import graph_cache

    load = graph_cache._unpickle

    def other_strides(content):
        entry = load(content)
        saved = entry.compiled_fw.saved
        assert saved.strides
        entry.compiled_fw.saved = saved._replace(strides=[(1, 99) if s and len(s) == 2 else s for s in saved.strides])
        return entry

    monkeypatch.setattr(graph_cache, "_unpickle", other_strides)
    assert traced.during(run)[0] == 1


def test_other_backends_keep_their_own_cache(traced):
    assert traced.during(lambda: traced.through_aten(scaled)(torch.ones(4, 4)))[0] == 1
    y = torch.compile(scaled, backend="aot_eager")(torch.ones(4, 4))
    assert torch.equal(y, scaled(torch.ones(4, 4)))


def test_reports_name_the_lines_of_the_model(traced):
    def first(x):
        return x.sin() + 5

    def second(x):
        return x.sin() + 5

    for fn, counts in ((first, (1, 0)), (second, (1, 0))):
        for count in counts:
            with cxxinductor.reports.collect() as found:
                assert traced.during(lambda: traced.compile(fn)(torch.ones(2, 4)))[0] == count
            lines = {call[2] for kernel in found[0].details["kernels"] for call in kernel["calls"]}
            assert lines == {fn.__code__.co_firstlineno + 1}


def test_a_warning_names_the_first_op_of_a_graph_from_the_cache(traced):
    described = []
    for count in (1, 0):
        with pytest.warns(UserWarning, match="runs op by op through ATen") as warned:
            assert traced.during(lambda: traced.through_aten(scaled)(torch.ones(4, 4)))[0] == count
        described.append(str(warned[0].message))
    assert all("(2 calls, the first is aten.mul.Tensor (traced_graphs.py:" in text for text in described), described
    assert described[1] == described[0].replace("))", ")) from the cache", 1)


# ---- transfer ------------------------------------------------------------------------------------------------------


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_artifacts_carry_all_entries(traced, monkeypatch, tmp_path):
    model = torch.nn.Linear(4, 2)
    x = torch.randn(3, 4, requires_grad=True)
    traced.folder = tmp_path / "one"
    with CacheArtifactManager.with_fresh_cache():
        traced.during(lambda: step(traced, model, x))
        content, info = torch.compiler.save_cache_artifacts()
    assert sorted(info.artifacts["cxxinductor"]) == names(traced.folder)
    monkeypatch.setenv("CXXINDUCTOR_CACHE_DIR", str(tmp_path / "two"))
    with CacheArtifactManager.with_fresh_cache():
        torch.compiler.load_cache_artifacts(content)
    made = names(traced.folder)
    traced.folder = tmp_path / "two"
    assert names(traced.folder) == made
    assert traced.during(lambda: step(traced, model, x))[0] == 0
    assert names(traced.folder) == made


def test_an_entry_that_is_gone_when_artifacts_are_saved_is_made_again(traced, monkeypatch, tmp_path):
    run = lambda: traced.compile(scaled)(torch.ones(4, 4))  # noqa: E731
    traced.folder = tmp_path / "one"
    with CacheArtifactManager.with_fresh_cache():
        traced.during(run)
        traced.during(run)  # which reads what the first wrote
        (result,) = entries(traced.folder)
        result.unlink()
        content, info = torch.compiler.save_cache_artifacts()
    assert sorted(info.artifacts["cxxinductor"]) == sorted([result.name, *names(traced.folder)])
    monkeypatch.setenv("CXXINDUCTOR_CACHE_DIR", str(tmp_path / "two"))
    with CacheArtifactManager.with_fresh_cache():
        torch.compiler.load_cache_artifacts(content)
    assert names(tmp_path / "two") == names(traced.folder)
    traced.folder = tmp_path / "two"
    count, y = traced.during(run)
    assert count == 1 and torch.equal(y, scaled(torch.ones(4, 4)))


class Store:
    def __init__(self):
        self.content, self.asked = {}, 0

    def get(self, name):
        self.asked += 1
        return self.content.get(name)

    def put(self, name, content):
        self.content[name] = content


def test_a_remote_store_fills_empty_folders(traced, tmp_path):
    store = Store()
    model = torch.nn.Linear(4, 2)
    x = torch.randn(3, 4, requires_grad=True)

    def traced_in(folder):
        traced.folder = tmp_path / folder
        count = traced.during(lambda: step(traced, model, x))[0]
        cxxinductor._C.wait_for_compiles()
        return count

    traced_in("first")  # a process reads and writes what its host compiler is once
    try:
        cxxinductor.set_remote_cache(store, secret=b"mine")
        assert traced_in("one") == 1 and sorted(store.content) == names(tmp_path / "one")
        assert traced_in("two") == 0 and names(tmp_path / "two") == names(tmp_path / "one")
        store.asked = 0
        assert traced_in("two") == 0 and store.asked == 0  # the folder has all by then
        cxxinductor.set_remote_cache(store, secret=b"other")
        signed = dict(store.content)
        assert traced_in("three") == 1
        store.content = {name: content[:-1] + b"x" for name, content in signed.items()}
        cxxinductor.set_remote_cache(store, secret=b"mine")
        assert traced_in("four") == 1
    finally:
        cxxinductor.set_remote_cache(None)


# ---- processes -----------------------------------------------------------------------------------------------------

PROGRAM = """
import json, os, sys, time, torch, cxxinductor
import torch._functorch.aot_autograd as aot
traced = []
capture = aot.aot_stage1_graph_capture
aot.aot_stage1_graph_capture = lambda *args: (traced.append(1), capture(*args))[1]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
x = torch.randn(3, 4, requires_grad=True)
eager = torch.autograd.grad(model(x).square().sum(), [x, *model.parameters()])
if len(sys.argv) > 1:  # all begin at once
    print("READY", flush=True)
    sys.stdin.readline()
found = torch.compile(lambda x: model(x).square().sum(), backend="cxxinductor")
gradients = torch.autograd.grad(found(x), [x, *model.parameters()])
for e, g in zip(eager, gradients):
    torch.testing.assert_close(g, e)
cxxinductor._C.wait_for_compiles()
print(json.dumps({"traced": len(traced), "inductor": "torch._inductor.ir" in sys.modules, **cxxinductor.counters()}))
"""


def start(folder, *arguments, program=PROGRAM):
    environment = {**os.environ, "CXXINDUCTOR_CACHE_DIR": str(folder)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", program, *arguments], env=environment, text=True, **pipes)


def result(process):
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors[-3000:]
    return json.loads(out.splitlines()[-1])


def test_one_of_several_processes_compiles_and_a_later_one_reads(tmp_path):
    ranks = [start(tmp_path, "together") for _ in range(2)]
    for rank in ranks:
        assert rank.stdout.readline() == "READY\n"
    for rank in ranks:
        rank.stdin.write("\n")
        rank.stdin.flush()
    found = [result(rank) for rank in ranks]
    results, compiled = len(entries(tmp_path)), len(names(tmp_path)) - len(entries(tmp_path))
    is_known = compiled - 4  # what the host compiler is, unless a wrapper stands before it
    assert results == 1 and is_known in (0, 1), names(tmp_path)  # plans and kernels of two graphs, and no locks
    written, read = (sum(rank[counter] for rank in found) for counter in ("cache_writes", "cache_hits"))
    tracing = sum(rank["traced"] for rank in found)  # each rank traces, unless it was late
    assert written - tracing - 4 in (is_known, 2 * is_known), (found, names(tmp_path))  # both ranks may ask the compiler at once
    assert written + read == 2 * (4 + 1 + is_known), found
    later = result(start(tmp_path))
    assert (later["traced"], later["inductor"]) == (0, False)
    assert (later["cache_writes"], later["cache_hits"]) == (0, compiled + results)


def test_graphs_of_other_backends_keep_their_keys():
    """Inductor's have theirs under the name that marks ours, and PyTorch's cache, which ours stands in for, asks for it."""

    class Graph:
        pass

    theirs, ours = Graph(), Graph()
    theirs._fx_graph_cache_key = "key"
    graph_cache.mark(ours, "calls", "inference", "1 calls", None)
    assert graph_cache._marked(theirs) is None and theirs._fx_graph_cache_key == "key"
    assert graph_cache._marked(ours).calls == "calls" and graph_cache._marked(ours) is None
