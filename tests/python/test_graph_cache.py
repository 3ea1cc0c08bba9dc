"""AOTAutograd's results in the cache on disk: what a second process reads, what has no key, and what changes a key."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

SETUP = """
import json, sys, torch
from torch._functorch._aot_autograd import graph_compile
import torch._functorch.aot_autograd as aot
import cxxinductor
traced = []
capture = aot.aot_stage1_graph_capture
aot.aot_stage1_graph_capture = lambda *args: (traced.append(1), capture(*args))[1]
torch.manual_seed(0)
def compiled(fn, **options):
    return torch.compile(fn, backend="cxxinductor", options=options or None)
def say(**values):
    values = {k: v.tolist() if isinstance(v, torch.Tensor) else v for k, v in values.items()}
    print("SAYS " + json.dumps({"traced": len(traced), **values, "inductor": "torch._inductor.lowering" in sys.modules}))
"""


def run(program, cache, **environment):
    program = SETUP + textwrap.dedent(program)
    environment = {**os.environ, "CXXINDUCTOR_CACHE_DIR": str(cache), **environment}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("SAYS ")]
    assert done.returncode == 0 and lines, done.stderr[-3000:]
    return json.loads(lines[-1][len("SAYS ") :])


TRAINING = """
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
x = torch.randn(3, 4, requires_grad=True)
eager = torch.autograd.grad(model(x).square().sum(), [x, *model.parameters()])
found = compiled(lambda x: model(x).square().sum())
gradients = torch.autograd.grad(found(x), [x, *model.parameters()])
for e, g in zip(eager, gradients):
    torch.testing.assert_close(g, e)
say(first=gradients[0], counters=cxxinductor.counters())
"""


def test_second_process_does_not_trace(tmp_path):
    first, second = (run(TRAINING, tmp_path) for _ in range(2))
    assert (first["traced"], second["traced"]) == (1, 0)
    assert second["first"] == first["first"] and second["counters"] == first["counters"]
    assert second["counters"]["graphs"] == 2 and not second["inductor"]


def test_inference_with_written_inputs_and_views(tmp_path):
    program = """
    def f(x, y):
        x.mul_(2)
        return x.view(-1), (x + y).relu(), y.t()
    x, y = torch.ones(2, 3), torch.ones(2, 3)
    with torch.no_grad():
        flat, total, turned = compiled(f)(x, y)
    assert flat.data_ptr() == x.data_ptr() and turned.data_ptr() == y.data_ptr()
    say(x=x, total=total)
    """
    first, second = (run(program, tmp_path) for _ in range(2))
    assert (first["traced"], second["traced"]) == (1, 0)
    assert first["x"] == second["x"] == [[2.0] * 3] * 2 and first["total"] == second["total"] == [[3.0] * 3] * 2


PLAIN = """
x = torch.full((4, 4), 2.0)
{before}
f = compiled(lambda x: (x * {factor}).sum(0), {options})
with torch.set_grad_enabled({grad}):
    say(y=f({given}))
"""
DEFAULTS = {"before": "", "factor": "3", "options": "", "grad": "False", "given": "x"}


@pytest.mark.parametrize(
    "change",
    [
        {"factor": "4"},
        {"given": "x[:2]"},
        {"given": "x.t()[:, :2]"},
        {"given": "x.double()"},
        {"given": "x.requires_grad_()", "grad": "True"},
        {"options": "fusion=False"},
        {"before": "torch.use_deterministic_algorithms(True)"},
        {"before": "torch.set_num_threads(1 if torch.get_num_threads() > 1 else 2)"},
        {"before": "torch.backends.cuda.enable_flash_sdp(False)"},
    ],
    ids=str,
)
def test_what_changes_a_result_changes_its_key(tmp_path, change):
    run(PLAIN.format(**DEFAULTS), tmp_path)
    assert run(PLAIN.format(**{**DEFAULTS, **change}), tmp_path)["traced"] == 1
    assert run(PLAIN.format(**DEFAULTS), tmp_path)["traced"] == 0


@pytest.mark.parametrize("off", [{"CXXINDUCTOR_CACHE": "off"}, {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}], ids=str)
def test_it_can_be_turned_off(tmp_path, off):
    assert [run(PLAIN.format(**DEFAULTS), tmp_path, **off)["traced"] for _ in range(2)] == [1, 1]


def test_inputs_that_share_memory_have_another_key(tmp_path):
    program = """
    base = torch.ones(4)
    def f(x, y):
        x.add_(1)
        return x + y
    other = {other}
    with torch.no_grad():
        say(y=compiled(f)(base[:2], other))
    """
    run(program.format(other="torch.ones(4)[:2]"), tmp_path)
    shared = run(program.format(other="base[:2]"), tmp_path)
    assert shared["traced"] == 1 and shared["y"] == [4.0, 4.0]


@pytest.mark.parametrize(
    "program",
    [
        """
        @torch.library.custom_op("mine::double", mutates_args=())
        def double(x: torch.Tensor) -> torch.Tensor:
            return x * 2
        double.register_fake(lambda x: torch.empty_like(x))
        say(y=compiled(lambda x: torch.ops.mine.double(x) + 1)(torch.ones(2)))
        """,
        """
        f = torch.compile(lambda x: x * x.shape[0], backend="cxxinductor", dynamic=True)
        say(y=f(torch.ones(5)))
        """,
        """
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                return g * 2
        say(y=compiled(lambda x: Double.apply(x) + 1)(torch.ones(2, requires_grad=True)).detach())
        """,
    ],
    ids=["custom operator", "symbolic sizes", "Python's derivative"],
)
def test_graphs_without_a_key_are_traced(tmp_path, program):
    first, second = (run(program, tmp_path) for _ in range(2))
    assert first["traced"] == second["traced"] == 1 and first["y"] == second["y"]


def test_damaged_and_foreign_entries_are_traced_again(tmp_path):
    first = run(TRAINING, tmp_path)
    for entry in tmp_path.iterdir():
        entry.write_bytes(entry.read_bytes()[:-1] + b"x")
    second = run(TRAINING, tmp_path)
    assert second["traced"] == 1 and second["first"] == first["first"]
    assert run(TRAINING, tmp_path)["traced"] == 0


def test_an_entry_without_its_plan_is_planned_again(tmp_path):
    run(TRAINING, tmp_path)
    for entry in tmp_path.iterdir():
        if b"cxxinductor.graph_cache" not in entry.read_bytes():
            entry.unlink()
    again = run(TRAINING, tmp_path)
    assert again["traced"] == 0 and again["counters"]["graphs"] == 2


def test_inductor_keeps_its_own_cache(tmp_path):
    program = """
    say(a=compiled(lambda x: x * 2)(torch.ones(2)), b=torch.compile(lambda x: x * 2, backend="aot_eager")(torch.ones(2)))
    """
    assert run(program, tmp_path)["b"] == [2.0, 2.0]


def test_artifacts_carry_all_entries(tmp_path):
    save = TRAINING.replace("say(", "open('{0}', 'wb').write(torch.compiler.save_cache_artifacts()[0])\nsay(")
    load = "info = torch.compiler.load_cache_artifacts(open('{0}', 'rb').read())\n" + TRAINING.replace("say(", "say(kinds=list(info.artifacts), ")
    file = tmp_path / "artifacts"
    run(save.replace("{0}", str(file)), tmp_path / "one")
    made = sorted(path.name for path in (tmp_path / "one").iterdir())
    found = run(load.replace("{0}", str(file)), tmp_path / "two")
    assert found["traced"] == 0 and "cxxinductor" in found["kinds"]
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == made


STORE = """
import pathlib
class Store:
    folder = pathlib.Path("{store}")
    asked = 0
    def get(self, name):
        Store.asked += 1
        path = self.folder / name
        return path.read_bytes() if path.exists() else None
    def put(self, name, content):
        (self.folder / name).write_bytes(content)
cxxinductor.set_remote_cache(Store(), {trust})
"""


def test_a_remote_store_fills_empty_folders(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    program = STORE.format(store=store, trust="secret=b'mine'") + TRAINING.replace("say(", "say(asked=Store.asked, ")
    assert run(program, tmp_path / "one")["traced"] == 1
    made = sorted(path.name for path in store.iterdir())
    assert made == sorted(path.name for path in (tmp_path / "one").iterdir())
    assert run(program, tmp_path / "two")["traced"] == 0
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == made
    assert run(program, tmp_path / "two")["asked"] == 0  # the folder has all by then
    # Entries of another secret, and damaged ones, are not used.
    assert run(program.replace("b'mine'", "b'other'"), tmp_path / "three")["traced"] == 1
    for path in store.iterdir():
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert run(program, tmp_path / "four")["traced"] == 1


def test_a_store_that_raises_costs_a_warning():
    import cxxinductor
    from cxxinductor import cache_transfer

    class Broken:
        def get(self, name):
            raise OSError("no route to host")

        put = get

    store = cache_transfer._CheckedStore(Broken(), b"mine")
    with pytest.warns(UserWarning, match="get failed: OSError: no route to host"):
        assert store.get("00") is None
    with pytest.raises(cxxinductor.UserError, match="expected a secret"):
        cxxinductor.set_remote_cache(Broken())
