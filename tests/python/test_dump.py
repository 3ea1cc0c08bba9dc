"""The dump folder, and the command that times a dumped kernel alone."""

import re
import subprocess
import sys

import pytest
import torch

import cxxinductor
from cxxinductor import time_kernel


def model(x, w):
    f = torch.nn.functional
    return torch.softmax(f.gelu(x @ w) * 0.4375, -1), f.layer_norm(x, (8,)).sum(), x.sum(0)


@pytest.fixture
def dumped(tmp_path, device):
    """Dumps a small model; gives the graph's folder."""

    def dump(dynamic=False, what="all"):
        options = {"dump": what, "dump_dir": str(tmp_path)}
        x, w = torch.randn(6, 8, device=device), torch.randn(8, 8, device=device)
        torch.compile(model, backend="cxxinductor", dynamic=dynamic, options=options)(x, w)
        (folder,) = tmp_path.iterdir()
        return folder

    return dump


def kernels_of(folder):
    return sorted(path.stem for path in (folder / "kernels").glob("*.plan"))


def test_all_forms_are_written(dumped, device):
    folder = dumped()
    texts = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    assert texts["calls.txt"].startswith("calls @inference") and "aten::mm" in texts["calls.txt"]
    begins = {"import": "graph", "graph-passes": "graph", "lower": "program", "fuse": "program", "loops-passes": "program", "select-kernels": "plan", "place-memory": "plan", "merge-kernels": "plan", "fit-memory": "plan"}  # fmt: skip
    stages = sorted(name for name in texts if re.match(r"\d\d-", name))
    assert [name[3:-4] for name in stages] == [*begins, "source"], "numbered in pipeline order"
    for stage, word in begins.items():
        (text,) = (texts[name] for name in stages if name[3:-4] == stage)
        assert text.startswith(f"{word} @inference"), stage
    (plan,) = (texts[name] for name in stages if name.endswith("-fit-memory.txt"))
    assert re.search(r"\w+ -> \w+: \w+", texts["missed_fusions.txt"])
    extension = ".cu" if device == "cuda" else ".cpp"
    sources = sorted(path.stem for path in (folder / "kernels").glob("*" + extension))
    assert sources == kernels_of(folder) and len(sources) >= 2
    assert all(name in plan for name in sources)
    text = (folder / "kernels" / (sources[0] + extension)).read_text()
    assert "aten." in text and "#line" in text
    assert len(text.splitlines()) < 100, "the kernel, not what it calls"
    included = set(re.findall(r'^#include "(.+)"$', text, re.M))
    assert included and all((folder / "kernels" / name).stat().st_size > 0 for name in included)
    assert (folder / "kernels" / "shared" / "scalar_math.h").exists(), "what templates include themselves"


def test_only_what_is_asked_for_is_written(dumped):
    folder = dumped(what="graph,after:fuse,calls")
    assert sorted(path.name for path in folder.iterdir()) == ["01-import.txt", "02-graph-passes.txt", "05-fuse.txt", "calls.txt"]


def test_a_plan_that_fits_is_kept(dumped):
    folder = dumped(what="plan")
    names = [path.name for path in sorted(folder.iterdir())]
    assert names == ["07-select-kernels.txt", "08-place-memory.txt", "09-merge-kernels.txt", "10-fit-memory.txt"]
    assert (folder / names[-2]).read_text() == (folder / names[-1]).read_text()


def test_a_folder_that_cannot_be_written_costs_the_dump_alone(tmp_path, capfd):
    (tmp_path / "file").write_text("")
    options = {"dump": "all", "dump_dir": str(tmp_path / "file")}
    x = torch.randn(8)
    cxxinductor.reset_counters()
    torch.testing.assert_close(torch.compile(torch.cos, backend="cxxinductor", options=options)(x), x.cos())
    assert re.search(r"there is no dump of \w+: cannot create the dump folder", capfd.readouterr().err)
    counters = cxxinductor.counters()
    assert counters["kernels"] == 1 and counters["aten_fallback"] == 0


def test_an_unknown_stage_is_refused(tmp_path):
    options = {"dump": "graph,after:lowering", "dump_dir": str(tmp_path)}
    with pytest.raises(cxxinductor.UserError, match="expected the name of a stage, found 'lowering'; known are import, graph-passes"):
        cxxinductor.config.resolve(options)


def test_each_command_times_its_kernel(dumped):
    folder = dumped()
    commands = re.findall(r"^python (-m cxxinductor\.time_kernel) '(.*)' (\w+)$", (folder / "kernels" / "README.txt").read_text(), re.M)
    assert [kernel for _, _, kernel in commands] == kernels_of(folder)
    module, path, kernel = commands[0]
    run = [sys.executable, *module.split(), path, kernel, "--repeat", "5", "--check"]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^{kernel} on \w+(:0)?: [\d.]+ us, reads \d+ and writes \d+ bytes: [\d.]+ GB/s$", printed, re.M)
    assert re.search(r"^a copy of as many bytes: [\d.]+ us", printed, re.M)
    assert printed.startswith(f"check=interp: {kernel} agrees with the interpreter\n")


def test_every_kernel_can_be_timed_and_checked(dumped):
    folder = dumped()
    for kernel in kernels_of(folder):
        timing = time_kernel.time_kernel(folder, kernel, repeat=3, check=True)
        assert timing.seconds > 0 and timing.copy_seconds > 0 and timing.bytes_read > 0 and timing.bytes_written > 0


def test_sizes_that_are_symbols_take_values(dumped):
    folder = dumped(dynamic=True)
    symbolic = [k for k in kernels_of(folder) if "sym s" in (folder / "kernels" / f"{k}.plan").read_text().split("\n")[0]]
    assert symbolic
    for kernel in symbolic:
        (name, *_), *_ = cxxinductor._C.plan_symbols((folder / "kernels" / f"{kernel}.plan").read_text())
        assert time_kernel.time_kernel(folder, kernel, symbols={name: 33}, repeat=3, check=True).seconds > 0
        with pytest.raises(cxxinductor.UserError, match=f"known: .*{name}"):
            time_kernel.time_kernel(folder, kernel, symbols={"nonsense": 3})


def test_an_edited_source_is_what_runs(dumped):
    folder = dumped()
    kernel = next(k for k in kernels_of(folder) if "softmax" in k)
    source = next((folder / "kernels").glob(f"{kernel}.c*"))
    edited, count = re.subn(r"0\.4375f|0x1\.cp-2f", "2.0f", source.read_text())
    assert count > 0
    source.write_text(edited)
    with pytest.raises(cxxinductor.KernelMismatch, match=kernel):
        time_kernel.time_kernel(folder, kernel, repeat=1, check=True)


def test_an_edited_template_is_what_runs(dumped):
    folder = dumped()
    kernel = next(k for k in kernels_of(folder) if "softmax" in k)
    prelude = next((folder / "kernels").glob("c*/prelude.*"))
    prelude.write_text(prelude.read_text() + "\n#error edited\n")
    with pytest.raises(RuntimeError, match="edited"):
        time_kernel.time_kernel(folder, kernel, repeat=1)


def test_what_is_not_checked_is_said(tmp_path, device):
    def fn(total, places, x):
        return total.index_add(0, places, x)

    options = {"dump": "source", "dump_dir": str(tmp_path)}
    places = torch.randint(0, 8, (300_000,), device=device)
    torch.compile(fn, backend="cxxinductor", options=options)(torch.zeros(8, device=device), places, torch.randn(300_000, device=device))
    (folder,) = tmp_path.iterdir()
    printed = [str(time_kernel.time_kernel(folder, kernel, repeat=1, check=True)) for kernel in kernels_of(folder)]
    assert any(" was not checked: a scatter of 300000 points is too long" in text.split("\n")[0] for text in printed), printed


def test_calls_of_a_graph_that_falls_back_are_written(tmp_path, device):
    options = {"dump": "source", "dump_dir": str(tmp_path), "tier": "aten"}
    with pytest.warns(UserWarning) as caught:
        torch.compile(model, backend="cxxinductor", options=options)(torch.randn(6, 8, device=device), torch.randn(8, 8, device=device))
    (folder,) = tmp_path.iterdir()
    assert [path.name for path in folder.iterdir()] == ["calls.txt"]
    assert "aten::mm" in (folder / "calls.txt").read_text()
    (warning,) = (w for w in caught if "cxxinductor" in str(w.message))
    assert f"its calls are in {folder}/calls.txt" in str(warning.message)


def test_a_kernel_that_is_not_there_lists_those_that_are(dumped):
    folder = dumped()
    with pytest.raises(cxxinductor.UserError, match=kernels_of(folder)[0]):
        time_kernel.time_kernel(folder, "k9_nothing")
    assert time_kernel.main([str(folder), "k9_nothing"]) == 1
