"""Bisection of what cxxinductor writes for a graph: nothing wrong, a wrong kernel, a slow graph, a failing command, and what is refused."""

import textwrap

import pytest
import torch
from children import run_python

import cxxinductor
from cxxinductor import _C, bisect


def model(x, w):
    return torch.softmax(torch.relu(x @ w) * 0.5 + 1, -1), x.sum(0)


def dumped(folder, fn, *inputs, dynamic=False, **options):
    """The folder of the one graph that is dumped."""
    torch._dynamo.reset()
    torch.compile(fn, backend="cxxinductor", dynamic=dynamic, options={"dump": "all", "dump_dir": str(folder), **options})(*inputs)
    (found,) = folder.iterdir()
    return found


@pytest.fixture
def right(tmp_path):
    return dumped(tmp_path, model, torch.randn(6, 8), torch.randn(8, 8))


@pytest.mark.parametrize("against", ["interp", "eager"])
def test_nothing_is_wrong(right, against, capsys):
    lines = []
    report = bisect.bisect(right, against=against, progress=lines.append)
    assert report.symptom == "none" and report.culprit is None and report.notes == []
    assert any("run kernels" in line for line in lines) and any(line.endswith(": fuse") for line in lines)
    assert bisect.main([str(right), "--against", against, "--forms"]) == 1
    assert "nothing is wrong" in capsys.readouterr().out


def test_symbols_random_draws_and_written_inputs(tmp_path):
    def fn(x):
        x.add_(1)
        return torch.dropout(x, 0.5, True).sum(-1)

    folder = dumped(tmp_path, fn, torch.randn(6, 8), dynamic=True)
    for against in ("interp", "eager"):
        report = bisect.bisect(folder, against=against, sizes=_some_sizes(folder), run_kernels=False)
        assert report.symptom == "none", report.text


def _some_sizes(folder):
    text = (folder / "calls.txt").read_text()
    return {"s0": 5} if "s0" in text else {}


def test_saved_inputs_are_taken(right):
    torch.save([torch.full((6, 8), float("inf")), torch.randn(8, 8)], right / "inputs.pt")
    assert bisect.bisect(right, run_kernels=False).symptom == "none"
    torch.save([torch.randn(6, 8)], right / "inputs.pt")
    with pytest.raises(cxxinductor.UserError, match="expected 2 inputs, found 1"):
        bisect.bisect(right)


WRONG_OP = """
    import torch, cxxinductor
    from cxxinductor import bisect
    library = torch.library.Library("bisect_tests", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    torch.library.register_fake("bisect_tests::twice", lambda x: torch.empty_like(x), lib=library)
    op = torch.ops.bisect_tests.twice.default
    cxxinductor.register_op(op, cpu="({0} * 3)", definition="result = mul(x, 2)")
    x = torch.randn(4, 8)
    options = {"dump": "all", "dump_dir": FOLDER}
    torch.compile(lambda x: op(x + 1).sum(-1), backend="cxxinductor", options=options)(x)
    import pathlib
    (folder,) = pathlib.Path(FOLDER).iterdir()
    for against in ("interp", "eager"):
        report = bisect.bisect(folder, against=against)
        assert report.symptom == "kernel differs", report
        assert "is the first whose output differs from the interpreter's" in report.detail and "twice" in report.detail, report
        assert report.culprit is None, report
    assert bisect.main([str(folder)]) == 0
"""


def test_a_kernel_whose_text_is_wrong_is_named(tmp_path):
    program = WRONG_OP.replace("FOLDER", repr(str(tmp_path / "dump")))
    run = run_python(program)
    assert run.returncode == 0, run.stderr
    assert "a kernel differs from the plan" in run.stdout and "no single pass or fusion is guilty" in run.stdout


def test_a_wrong_import_is_found_against_eager_alone(tmp_path):
    program = WRONG_OP.replace('cpu="({0} * 3)", definition="result = mul(x, 2)"', 'cpu="({0} * 3)", definition="result = mul(x, 3)"')
    program = program[: program.index("    for against")] + textwrap.dedent(
        """
        assert bisect.bisect(folder).symptom == "none"
        report = bisect.bisect(folder, against="eager")
        assert (report.symptom, report.stage, report.culprit) == ("differs", "import", None), report
        """
    ).replace("\n", "\n    ")
    program = program.replace("FOLDER", repr(str(tmp_path / "dump")))
    run = run_python(program)
    assert run.returncode == 0, run.stderr


def test_a_judge_finds_a_fusion_and_a_pass(right):
    report = bisect.bisect(right, judge=lambda options: "bad" if options["fusion_limit"] in (-1, *range(2, 1000)) else "")
    assert (report.symptom, report.culprit.kind, report.culprit.number) == ("judged", "fusion", 2)
    assert report.culprit.stage == "fuse" and report.culprit.avoided_by == "fusion_limit=1"
    assert " region @" in report.culprit.name and report.culprit.before != report.culprit.after
    assert "what it changes:" in str(report) and "option fusion_limit=1" in str(report)

    report = bisect.bisect(right, judge=lambda options: "" if options["pass_limit"] == 0 or "loops-dead-code" in options["skip_passes"] else "bad")
    assert report.culprit.kind == "pass" and report.culprit.number == 1 and report.culprit.name


def test_a_command_is_run_with_the_limits(right, capsys):
    command = 'test "${CXXINDUCTOR_FUSION_LIMIT:-9}" -lt 3'
    assert bisect.main([str(right), "--command", command]) == 0
    assert "fusion_limit=3" in capsys.readouterr().out
    assert bisect.main([str(right), "--command", "true"]) == 1
    assert bisect.main([str(right), "--command", "false"]) == 2
    assert "no single pass or fusion is guilty" in capsys.readouterr().out


def test_times_are_compared_with_other_options(right, capsys):
    assert bisect.main([str(right), "--slow", "1000"]) == 1
    assert bisect.main([str(right), "--slow", "0.0001", "--than", "fusion=true"]) == 2  # with any options
    assert "us; with the baseline" in capsys.readouterr().out


def test_a_dump_states_its_options(tmp_path):
    folder = dumped(tmp_path, model, torch.randn(6, 8), torch.randn(8, 8), numerics="fast", skip_passes="graph-cse,graph-no-ops")
    seen = []
    bisect.bisect(folder, judge=lambda given: seen.append(given) or "")
    assert seen[0]["numerics"] == "fast" and seen[0]["skip_passes"] == "graph-cse,graph-no-ops" and seen[0]["dump"] == ""


def test_custom_operators_are_imported(tmp_path, monkeypatch, capsys):
    (tmp_path / "operators_of_mine.py").write_text(
        "import torch\n"
        "@torch.library.custom_op('cxxi_bisect::twice', mutates_args=())\n"
        "def twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
        "twice.register_fake(torch.empty_like)\n"
    )
    calls = tmp_path / "dump" / "calls.txt"
    calls.parent.mkdir()
    calls.write_text(
        "calls @mine {\n"
        '  input %x: f32[4] storage 1\n  %twice: f32[4] storage 2 = "cxxi_bisect::twice"(%x)\n  %sin: f32[4] storage 3 = "aten::sin"(%twice)\n'
        "  return %sin\n}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert bisect.main([str(calls.parent)]) == 2
    assert "--import MODULE" in capsys.readouterr().err
    given = [str(calls.parent), "--import", "operators_of_mine"]
    assert bisect.main(given) == 2 and "allow_ops" in capsys.readouterr().err
    assert bisect.main([*given, "--option", "allow_ops=cxxi_bisect::twice"]) == 1
    assert bisect.main([str(calls.parent), "--import", "no_such_module"]) == 2
    assert "no_such_module" in capsys.readouterr().err


def test_passes_over_texts_are_found(right, tmp_path):
    (tmp_path / "passes_of_mine.py").write_text(
        "import cxxinductor\n"
        "def faulty(text):\n    return text.replace('relu(', 'neg(')\n"
        "def quiet(text):\n    return text\n"
        "for function in (quiet, faulty):\n    cxxinductor.register_graph_pass(function, stage='lower', version='1')\n"
    )
    program = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('cxxinductor.bisect', run_name='__main__')"
    for more in ([], ["--option", "skip_passes=quiet"]):
        done = run_python(program, tmp_path, right, "--import", "passes_of_mine", *more)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "guilty: registered pass faulty, after stage lower" in done.stdout and "option skip_passes=faulty" in done.stdout, done.stdout


def test_a_pass_that_the_graph_was_compiled_with_must_be_registered(tmp_path, capsys):
    registration = cxxinductor.register_graph_pass(lambda text: text.replace("relu(", "neg("), stage="lower", name="faulty", version="1")
    folder = dumped(tmp_path, model, torch.randn(6, 8), torch.randn(8, 8))
    assert "guilty: registered pass faulty" in str(bisect.bisect(folder))
    registration.remove()
    assert bisect.main([str(folder)]) == 2
    assert "compiled with the pass faulty, which is not registered" in capsys.readouterr().err
    settings = folder / "settings.txt"
    settings.write_text("".join(line for line in settings.read_text().splitlines(True) if "faulty" not in line))
    assert bisect.main([str(folder)]) == 1


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--size", "s9=4"], "no input has the symbol s9"),
        (["--size", "s0"], "--size: expected name=value"),
        (["--option", "no_such=1"], "unknown option 'no_such'"),
        (["--option", "skip_passes=magic"], "known are graph-dead-code"),
    ],
)
def test_bad_arguments_are_refused(right, arguments, words, capsys):
    assert bisect.main([str(right), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_folder_without_a_graph_is_refused(tmp_path, capsys):
    assert bisect.main([str(tmp_path)]) == 2
    assert "has neither calls.txt nor 01-import.txt" in capsys.readouterr().err
    with pytest.raises(SystemExit) as status:
        bisect.main([])
    assert status.value.code == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="the graph is for a GPU that is not there")
def test_a_graph_of_a_gpu_that_is_not_there(right, capsys):
    for name in ("calls.txt", "settings.txt"):
        (right / name).unlink()
    text = right / "01-import.txt"
    text.write_text(text.read_text().replace("(", " on cuda:0 (", 1))
    assert bisect.main([str(right)]) == 2
    assert "does not say which: move the graph with device cpu" in capsys.readouterr().err
    assert bisect.bisect(right, device="cpu").notes == []
    (right / "settings.txt").write_text("options: numerics=eager\ntarget: cuda:0 sm_90a\n")
    report = bisect.bisect(right)
    assert report.symptom == "none" and report.notes == ["kernels were not run"]
    report = bisect.bisect(right, judge=lambda options: "bad" if options["fusion_limit"] != 0 else "")
    assert "on cuda:0" in report.culprit.after


def test_the_text_of_a_graph_has_no_eager_reference(right):
    (right / "calls.txt").unlink()
    assert bisect.bisect(right, run_kernels=False).symptom == "none"
    with pytest.raises(cxxinductor.UserError, match="needs the calls"):
        bisect.bisect(right, against="eager")


def test_inputs_that_do_not_fit_are_refused(right, capsys):
    for content, message in (
        ([torch.randn(3, 3), torch.randn(8, 8)], r"input 0: expected f32[6, 8], found Float[3, 3]"),
        ([torch.randn(6, 8).double(), torch.randn(8, 8)], "input 0: expected f32[6, 8], found Double"),
        ({"a": 1}, "expected a list of tensors and integers"),
    ):
        torch.save(content, right / "inputs.pt")
        for more in ([], ["--forms"], ["--against", "eager"]):
            assert bisect.main([str(right), *more]) == 2 and message in capsys.readouterr().err
    (right / "inputs.pt").write_text("junk")
    assert bisect.main([str(right)]) == 2 and "nothing that torch.save wrote" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--seed", "-1"], ["--seed", str(10**30)], ["--size", f"s0={10**30}"]])
def test_numbers_out_of_range_are_refused(right, arguments):
    done = run_python("import runpy; runpy.run_module('cxxinductor.bisect', run_name='__main__')", right, *arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr
