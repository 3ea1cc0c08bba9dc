"""Packages of models with control flow and effects: a plan and kernels for each subgraph, run in a process without a compiler."""

import copy
import io
import json
import os
import subprocess
import warnings
import zipfile
from pathlib import Path

import pytest
import torch
from children import run_python
from exported_programs import NOTES, PROGRAMS, Function
from run_program import exported
from torch._higher_order_ops.associative_scan import associative_scan
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

import cxxinductor

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "bin" / "cxxinductor"

# Name -> how many subgraphs it has plans of.
SUBGRAPHS = {
    "cond": 2, "cond_of_sizes": 4, "nested_cond": 4, "loop": 2, "loop_of_dynamic_rows": 2, "scan_rows": 1, "scan_columns_backwards": 1,
    "scan_cells": 1, "mapped_rows": 1, "region": 0, "effects": 0, "custom_in_a_branch": 2,
}  # fmt: skip

# (folder, names): runs packages with nothing but these files, and says what was compiled.
RUN = """
import json, sys, torch, cxxinductor, exported_programs
from cxxinductor import _C
folder, answers = sys.argv[1], {}
for name in sys.argv[2].split(","):
    cxxinductor.reset_counters()
    exported_programs.NOTES.clear()
    model = cxxinductor.load(f"{folder}/{name}.cxxi", options={"trust": True, "allow_ops": "exported_programs"})
    calls, _ = torch.load(f"{folder}/{name}.calls")
    results = [model.run(*args, **kwargs) for args, kwargs in calls]
    answers[name] = {"results": results, "compiled": _C.compile_progress()[0], "counters": cxxinductor.counters(), "explain": model.explain(),
                     "notes": exported_programs.NOTES[:]}
torch.save(answers, f"{folder}/answers")
"""


def given(name):
    from exported_programs import Program, custom_in_a_branch

    if name == "custom_in_a_branch":
        x = torch.rand(3, 4)
        return Program(Function(custom_in_a_branch), (x,), others=[(-x,)], options={"allow_ops": "exported_programs"})
    return PROGRAMS[name]()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """NAME.cxxi, NAME.calls (arguments, results in eager) and `answers` of a process without a compiler."""
    folder = tmp_path_factory.mktemp("packages")
    for name in SUBGRAPHS:
        torch.manual_seed(0)
        program = given(name)
        archive = exported(program, decomposed=name == "effects")
        cxxinductor.package(archive, folder / f"{name}.cxxi", options=program.options)
        calls = [(args, program.kwargs) for args in (program.args, *program.others)]
        eager = archive.module()
        NOTES.clear()
        with torch.no_grad():
            results = [eager(*copy.deepcopy(args), **kwargs) for args, kwargs in calls]
        torch.save([calls, results], folder / f"{name}.calls")
        if name == "effects":
            (folder / "notes").write_text(json.dumps(NOTES))
    (folder / "nothing").mkdir()
    environment = {"PATH": str(folder / "nothing"), "CXXINDUCTOR_CACHE_DIR": str(folder / "cache")}
    done = run_python(RUN, folder, ",".join(SUBGRAPHS), environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def assert_same(found, expected):
    assert len(tree_leaves(found)) == len(tree_leaves(expected))
    for a, b in zip(tree_leaves(found), tree_leaves(expected)):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", SUBGRAPHS)
def test_trusted_packages_run_without_compiling(name, folder):
    answer = torch.load(folder / "answers")[name]
    assert_same(answer["results"], torch.load(folder / f"{name}.calls")[1])
    assert answer["compiled"] == 0 and answer["counters"]["aten_fallback"] == 0
    assert answer["counters"]["graphs"] == 1 + SUBGRAPHS[name]
    assert answer["explain"].count("read plan") == 1 + SUBGRAPHS[name]
    assert answer["explain"].count(", subgraph @") == SUBGRAPHS[name]


def test_effects_keep_their_order(folder):
    assert [list(note) for note in torch.load(folder / "answers")["effects"]["notes"]] == json.loads((folder / "notes").read_text())


@pytest.mark.parametrize("name", ["nested_cond", "loop"])
def test_packages_that_are_not_trusted_are_compiled(name, folder):
    model = cxxinductor.load(folder / f"{name}.cxxi")
    calls, expected = torch.load(folder / f"{name}.calls")
    assert_same([model.run(*args, **kwargs) for args, kwargs in calls], expected)
    assert "it is not signed" in model.explain() and cxxinductor.counters()["aten_fallback"] == 0


def test_packages_are_packaged_anew_and_several_at_once(folder, tmp_path):
    """Functions of a process are not in the file: it is the same, whatever the process has made before."""
    models = [cxxinductor.load(folder / f"{name}.cxxi", options={"trust": True}) for name in ("loop", "cond", "loop")]
    cxxinductor._C.package((folder / "loop.cxxi").read_bytes(), str(tmp_path / "anew.cxxi"), [], False, "", cxxinductor.config.resolve(None))
    assert (tmp_path / "anew.cxxi").read_bytes() == (folder / "loop.cxxi").read_bytes()
    for name, model in zip(("loop", "cond", "loop"), models):
        calls, expected = torch.load(folder / f"{name}.calls")
        assert_same([model.run(*args) for args, _ in calls], expected)


def test_what_the_caller_does_not_allow_is_refused_in_subgraphs(folder):
    with pytest.raises(cxxinductor.UserError, match="exported_programs::scale.*allow_ops"):
        cxxinductor.load(folder / "custom_in_a_branch.cxxi", options={"trust": True})


def on_cpu(archive):
    """An archive of a GPU as one of the CPU: eager has this operator on GPUs alone."""
    moved = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(moved, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(".json"):
                data = data.replace(b'{"type": "cuda", "index": 0}', b'{"type": "cpu", "index": null}')
            new.writestr(name, data)
    return moved.getvalue()


def test_associative_scan(tmp_path):
    def function(x, y):
        a, b = associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (x, y), dim=1, combine_mode="pointwise")
        return a + 1, b

    with warnings.catch_warnings(), FakeTensorMode(allow_non_fake_inputs=True):
        warnings.simplefilter("ignore")
        program = torch.export.export(Function(function), tuple(torch.empty(4, 5, device="cuda") for _ in range(2)))
    archive = io.BytesIO()
    torch.export.save(program, archive)
    (tmp_path / "model.pt2").write_bytes(on_cpu(archive.getvalue()))
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    a, b = [x[:, 0]], [y[:, 0]]
    for i in range(1, 5):
        a.append(a[-1] * x[:, i])
        b.append(b[-1] * x[:, i] + y[:, i])
    cxxinductor._C.package((tmp_path / "model.pt2").read_bytes(), str(tmp_path / "model.cxxi"), [], False, "", cxxinductor.config.resolve(None))
    for path in ("model.pt2", "model.cxxi"):
        model = cxxinductor.load(tmp_path / path, options={"trust": True})
        assert_same(model.run(x, y), (torch.stack(a, 1) + 1, torch.stack(b, 1)))
        assert ", subgraph @associative_scan_combine" in model.explain()


@pytest.mark.skipif(not PROGRAM.exists(), reason="built by `make test`")
@pytest.mark.parametrize(("name", "op"), [("nested_cond", "aten::cos"), ("scan_rows", "aten::sin")])  # of a subgraph
def test_the_program_takes_them(name, op, folder, tmp_path):
    def command(*arguments):
        done = subprocess.run(
            [str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, timeout=300, env=os.environ | {"CXXINDUCTOR_TRUST": "1"}
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    path = folder / f"{name}.cxxi"
    text = command("inspect", path)
    assert text.count("\n  plan ") == 1 + SUBGRAPHS[name] and text.count("in subgraph @") == SUBGRAPHS[name]
    assert "higher_order::" in text and op in text
    assert command("explain", path).count("read plan") == 1 + SUBGRAPHS[name]
    assert "verified" in command("verify", path)
    assert "outputs" in command("run", path)
    assert "medians of 2 samples" in command("bench", path, "--samples", "2")
    command("compile", path, "-o", tmp_path / "anew.cxxi")
    assert (tmp_path / "anew.cxxi").read_bytes() == path.read_bytes()
