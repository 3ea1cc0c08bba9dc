"""The program `cxxinductor` on exported models, on files that are none, and on files that mean harm."""

import os
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Dict, Tuple

import pytest
import torch
from torch import nn
from torch.export import Dim

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "bin" / "cxxinductor"
FIXTURES = ROOT / "tests" / "data" / "pt2"
# Of RFC 8032, section 7.1, test 1.
KEY = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"
PUBLIC_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="built by `make test`")


def command(*arguments, status=0, **environment):
    """Standard output of a run whose arguments are right, standard error of others."""
    done = subprocess.run(
        [str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, timeout=300, env=os.environ | environment
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert status == 2 or done.stderr == "", done.stderr
    return done.stderr if status == 2 else done.stdout


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.norm, self.head = nn.Embedding(32, 16), nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, tokens, options):
        x = self.norm(self.embedding(tokens)) * options["scale"]
        return {"logits": torch.softmax(self.head(x), -1), "best": x.argmax(-1)}, tokens.shape[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    args = (torch.randint(0, 32, (4, 7)), {"scale": torch.tensor(0.5)})
    batch = ({0: Dim("batch", min=2, max=64)}, {"scale": None})
    program = torch.export.export(Network().eval(), args, dynamic_shapes=batch).run_decompositions()
    torch.export.save(program, path)
    return path, program.module(), args


def rewritten(source, target, **entries):
    """The archive with other bytes in some entries, named by how they end."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            key = next((key for key in entries if name.endswith(key.replace("__", "/").replace("_DOT_", "."))), None)
            data, info = old.read(name), zipfile.ZipInfo(name)
            # As PyTorch does, an extra field moves the data to a multiple of 64 bytes.
            padding = -(new.fp.tell() + 30 + len(name) + 4) % 64
            info.extra = b"FB" + padding.to_bytes(2, "little") + bytes(padding)
            new.writestr(info, data if key is None else entries[key](data))
    return target


SAMPLES = "sample_inputs__model_DOT_pt"


@pytest.mark.parametrize("subcommand", ["inspect", "explain", "run", "bench", "verify"])
def test_help(subcommand):
    assert subcommand in command("--help")
    text = command(subcommand, "--help")
    assert "file" in text and ("--option" in text or subcommand == "inspect")


def test_version():
    assert re.fullmatch(r"cxxinductor \d+\.\d+\.\d+\n", command("--version"))


def test_inspect(model):
    path, module, _ = model
    text = command("inspect", path)
    assert re.search(r"exported by PyTorch 2\.11\..*, with sample inputs", text)
    symbol = re.search(r"tokens: i64\[(\w+), 7\] on cpu where 2 <= \1 <= 64\n", text).group(1)
    assert f"\n  f32[{symbol}, 7, 5] on cpu where" in text and f"\n  symint({symbol})\n" in text and f"2 <= {symbol} <= 64\n" in text
    assert "head.weight: f32[5, 16] on cpu (parameter)" in text
    numbers = sum(tensor.numel() for tensor in module.state_dict().values())
    assert f"weights: {len(module.state_dict())}, {4 * numbers} bytes\n" in text
    assert "1 x aten::embedding\n" in text and "1 x aten::addmm\n" in text


def test_inspect_names_what_changes_and_constants():
    text = command("inspect", FIXTURES / "training.pt2")
    assert "norm.running_mean: f32[2] on cpu (buffer)" in text and "updates norm.running_mean" in text and "updates count" in text
    text = command("inspect", FIXTURES / "nested.pt2")
    assert "mode: " in text and "half" in text


def test_explain(model):
    text = command("explain", model[0])
    assert text.startswith("model '") and "aten::addmm" in text and "peak memory" in text
    assert "tier=aten" in command("explain", model[0], "--option", "tier=aten")


@pytest.mark.parametrize("how", ["one file", "two files"])
def test_run_with_inputs(model, tmp_path, how):
    path, module, _ = model
    tokens, scale = torch.randint(0, 32, (9, 7)), torch.tensor(2.0)
    files = [tmp_path / "a.pt", tmp_path / "b.pt"] if how == "two files" else [tmp_path / "a.pt"]
    for file, value in zip(files, (tokens, scale) if len(files) == 2 else ([tokens, scale],)):
        torch.save(value, file)
    text = command("run", path, "--outputs", tmp_path / "out.pt", "--inputs", *files)
    assert "i64[9, 7] on cpu" in text and "f32[9, 7, 5] on cpu: " in text
    logits, best, rows = torch.load(tmp_path / "out.pt")
    expected, expected_rows = module(tokens, {"scale": scale})
    torch.testing.assert_close(logits, expected["logits"])
    assert torch.equal(best, expected["best"]) and rows == expected_rows == 9


def test_run_with_samples_and_random_inputs(model):
    assert "inputs: the file's samples\n  i64[4, 7] on cpu" in command("run", model[0])
    symbol = re.search(r"i64\[(\w+), 7\]", command("inspect", model[0])).group(1)
    text = command("run", model[0], "--size", f"{symbol}=11", "--seed", 3)
    assert "inputs: random, seed 3\n  i64[11, 7] on cpu" in text
    assert command("run", model[0], "--random") == command("run", model[0], "--random")
    assert command("run", model[0], "--random") != command("run", model[0], "--random", "--seed", 1)


@pytest.mark.parametrize("name", ["mlp", "nested", "tied", "training"])
def test_verify_fixtures(name):
    """Nested arguments, constants, tied weights; buffers and inputs that the model updates."""
    text = command("verify", FIXTURES / f"{name}.pt2")
    assert "inputs: the file's samples\n" in text and "verified: compiled against ATen op by op" in text
    assert re.search(r"counters: graphs 1, kernels \d+, extern \d+, aten_fallback 0", text)
    assert ("updated norm.running_var: f32[2] on cpu: largest error" in text) == (name == "training")
    assert ("updated count: f32[] on cpu: largest error 0" in text) == (name == "training")
    command("verify", FIXTURES / f"{name}.pt2", "--random")


class Constants(nn.Module):
    """Arguments and results that are no tensors, nested; a swap of two inputs, each of which is the other's last version."""

    def forward(self, inputs, scale=1.0, mode="double", flag=True, nothing=None):
        first, (second, count) = inputs
        y = first * scale
        kept = first.clone()
        first.copy_(second)
        second.copy_(kept)
        return {"y": y, "mode": mode}, 3, nothing, flag, first.shape[0] * count


@pytest.mark.parametrize("decomposed", [True, False])
def test_verify_constants_and_updates_of_inputs(tmp_path, decomposed):
    args = ((torch.randn(4, 3), [torch.randn(4, 3), 5]), 2.0, "half", False, None)
    shapes = ((None, [None, Dim.DYNAMIC]), None, None, None, None)
    program = torch.export.export(Constants(), args, dynamic_shapes=shapes)
    program = program.run_decompositions() if decomposed else program
    torch.export.save(program, tmp_path / "model.pt2")
    for inputs in ([], ["--random"]):
        text = command("verify", tmp_path / "model.pt2", *inputs)
        assert text.count("  updated inputs_") == (2 if decomposed else 0) and "DIFFERS" not in text, text
        for line in (": half: equal", ": 3: equal", ": None: equal", ": False: equal"):
            assert line in text, text


@pytest.mark.parametrize("decomposed", [True, False])
def test_verify_batch_norm_in_training(tmp_path, decomposed):
    program = torch.export.export(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).train(), (torch.randn(2, 3, 8, 8),))
    torch.export.save(program.run_decompositions() if decomposed else program, tmp_path / "model.pt2")
    text = command("verify", tmp_path / "model.pt2")
    # Without decompositions the op itself updates its buffers, and the signature does not say so: they are shown where bits differ.
    assert "DIFFERS" not in text and (text.count("  updated 1.") == 3 or not decomposed), text


def test_verify_says_when_results_differ(model):
    assert "verified" in command("verify", model[0])
    text = command("verify", model[0], "--tolerance", "-1", status=1)
    assert "DIFFERS: allowed is -1" in text and "NOT verified" in text


def test_verify_in_half_precision(tmp_path):
    module = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 8)).to(torch.bfloat16).eval()
    program = torch.export.export(module, (torch.randn(4, 64, dtype=torch.bfloat16),)).run_decompositions()
    torch.export.save(program, tmp_path / "model.pt2")
    assert "bf16[4, 8] on cpu: largest error" in command("verify", tmp_path / "model.pt2", "--option", "numerics=fast")


def test_verify_of_what_runs_through_aten(model):
    done = subprocess.run([str(PROGRAM), "verify", str(model[0]), "--option", "tier=aten"], capture_output=True, text=True)
    assert done.returncode == 0 and "aten_fallback 1" in done.stdout and "runs op by op through ATen" in done.stderr


def test_bench(model):
    text = command("bench", model[0], "--samples", 3, "--random")
    for name in ("ATen", "compiled"):
        assert re.search(rf"^{name} +[\d.]+ (us|ms|s) +quartiles [\d.]+ \w+, [\d.]+ \w+$", text, re.MULTILINE), text
    assert re.search(r"ATen / compiled: [\d.]+ \(medians of 3 samples, \d+ threads\)", text)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "subcommand"),
        (["compress", "x.pt2"], "expected a subcommand (compile, inspect, explain, run, bench, verify), found 'compress'"),
        (["run"], "file"),
        (["run", "MODEL", "--option", "tier"], "expected name=value, found 'tier'"),
        (["run", "MODEL", "--option", "tear=aten"], "did you mean 'tier'"),
        (["run", "MODEL", "--size", "nosuch=3"], "no input has the symbol 'nosuch'; the symbols of the inputs: "),
        (["run", "MODEL", "--size", "batch"], "expected symbol=value"),
        (["run", "MODEL", "--inputs", "/nowhere/x.pt"], "/nowhere/x.pt: No such file"),
        (["run", "MODEL", "--inputs", "MODEL"], "expected tensors"),
        (["run", "MODEL", "--outputs", "/nowhere/x.pt"], "--outputs: /nowhere/x.pt: No such file"),
        (["bench", "MODEL", "--samples", "0"], "expected at least 1"),
        (["verify", "/nowhere/model.pt2"], "/nowhere/model.pt2: No such file"),
        (["inspect", __file__], "zip"),
        (["inspect", "/dev/null"], "expected a file"),
    ],
)
def test_wrong_use(model, arguments, message):
    text = command(*[str(model[0]) if argument == "MODEL" else argument for argument in arguments], status=2)
    assert message in text


def test_inputs_that_do_not_fit(model, tmp_path):
    tokens, scale = torch.randint(0, 32, (9, 7)), torch.tensor(2.0)
    for wrong, message in (
        ([tokens], "expected 2 inputs"),
        ([tokens.float(), scale], "tokens): expected dtype i64, found f32"),
        ([tokens[:1], scale], "tokens) is 1, but the graph was compiled for 2 <= "),
        ([tokens, 2.0], "expected a tensor, found Double"),
    ):
        torch.save(wrong, tmp_path / "inputs.pt")
        assert message in command("run", model[0], "--inputs", tmp_path / "inputs.pt", status=2)


def test_truncated_models(model, tmp_path):
    data = model[0].read_bytes()
    for part in (1, 100, len(data) // 2, len(data) - 200):
        (tmp_path / "cut.pt2").write_bytes(data[:part])
        for subcommand in ("inspect", "verify"):
            command(subcommand, tmp_path / "cut.pt2", status=2)


class Harm:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def saved(value, path):
    torch.save(value, path)
    return path.read_bytes()


def test_pickles_that_would_run_code(model, tmp_path):
    for protocol in (2, 4):
        torch.save([Harm(tmp_path / "harmed")], tmp_path / "harm.pt", pickle_protocol=protocol)
        assert "expected tensors" in command("run", model[0], "--inputs", tmp_path / "harm.pt", status=2)
    data = (tmp_path / "harm.pt").read_bytes()
    harmful = rewritten(model[0], tmp_path / "harmful.pt2", **{SAMPLES: lambda _: data})
    text = command("verify", harmful)
    assert "inputs: random, seed 0; not used: the file's sample inputs: expected tensors" in text
    assert not (tmp_path / "harmed").exists()


def test_messages_quote_no_control_characters(tmp_path):
    torch.save([torch.ones(3, 2)], tmp_path / "inputs.pt")
    for pickle in (b"\x80\x02cshell\nred\x1b[31m\n.", b"\x80\x02c\x1b]0;title\x07\nname\n)R.", b"\x80\x02\xff\x1b."):
        bad = rewritten(tmp_path / "inputs.pt", tmp_path / "bad.pt", data_DOT_pkl=lambda _: pickle)
        text = command("run", FIXTURES / "mlp.pt2", "--inputs", bad, status=2)
        assert text.isascii() and text.replace("\n", "").isprintable()


def test_tensors_beyond_their_storage(model, tmp_path):
    torch.save([torch.ones(4, 7, dtype=torch.int64), torch.tensor(1.0)], tmp_path / "inputs.pt")
    # _rebuild_tensor_v2(storage, offset 0, size (4, 7), stride (7, 1), ..): a tuple of two small integers is K\x04K\x07\x86 in pickle.
    for change in (b"K\x04K\xff\x86", b"K\xffK\x07\x86"):
        far = rewritten(tmp_path / "inputs.pt", tmp_path / "far.pt", data_DOT_pkl=lambda data: data.replace(b"K\x04K\x07\x86", change))
        assert (tmp_path / "far.pt").read_bytes() != (tmp_path / "inputs.pt").read_bytes()
        assert "expected tensors inside of their storage" in command("run", model[0], "--inputs", far, status=2)


def test_samples_that_do_not_fit_the_signature(model, tmp_path):
    for args in ((torch.ones(4, 7, dtype=torch.int64),), (torch.ones(4, 7), [1]), (torch.ones(4, 7), {"other": torch.ones(())})):
        data = saved((args, {}), tmp_path / "samples.pt")
        changed = rewritten(model[0], tmp_path / "changed.pt2", **{SAMPLES: lambda _: data})
        assert "random, seed 0; not used: the file's sample inputs: expected" in command("run", changed)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the model would run")
def test_a_model_on_a_gpu_finds_pytorchs_cuda_library(tmp_path):
    """The program links PyTorch's CPU library alone: without a GPU, PyTorch itself says what is missing."""
    change = rewritten(
        FIXTURES / "mlp.pt2", tmp_path / "gpu.pt2",
        models__model_DOT_json=lambda data: re.sub(rb'"type": ?"cpu", ?"index": ?null', b'"type":"cuda","index":0', data),
    )  # fmt: skip
    assert "on cuda" in command("inspect", change)
    text = subprocess.run([str(PROGRAM), "run", str(change)], capture_output=True, text=True).stderr
    assert re.search("NVIDIA driver|CUDA driver|No CUDA GPUs", text) and "not linked" not in text


def test_program_links_no_python():
    assert "libpython" not in subprocess.run(["ldd", str(PROGRAM)], capture_output=True, text=True).stdout


# TorchScript.


class Script(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor, scale: float, flag: bool = True) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
        y = torch.softmax(self.head(self.norm(x)) * scale, -1)
        return y, {"best": y.argmax(-1)} if flag else {"y": y + 1}


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("script")
    torch.jit.script(Script().eval()).save(str(folder / "model.pt"))
    (folder / "key.pem").write_text(KEY)
    return folder / "model.pt"


SHAPES = ["--input", "f32[4, 16]", "--input", "2.5"]


def test_inspect_torchscript(script):
    text = command("inspect", script)
    assert text.startswith("TorchScript module 'Script'\n") and "forward(" in text and "Tensor x, float scale, bool flag=True" in text
    assert "head.weight: f32[5, 16] on cpu" in text and f"weights: 4, {4 * (32 + 85)} bytes\n" in text
    assert re.search(r"\n +1 x aten::softmax\n", text)


def test_run_torchscript(script, tmp_path):
    x = torch.randn(3, 16)
    torch.save([x, 2.0, False], tmp_path / "inputs.pt")
    text = command("run", script, "--inputs", tmp_path / "inputs.pt", "--outputs", tmp_path / "outputs.pt")
    assert text.count("f32[3, 5] on cpu: ") == 2
    y, extra = torch.load(tmp_path / "outputs.pt")
    with torch.no_grad():
        expected = torch.jit.load(str(script))(x, 2.0, False)
    torch.testing.assert_close(y, expected[0])
    torch.testing.assert_close(extra, expected[1]["y"])


def test_verify_torchscript(script):
    text = command("verify", script, *SHAPES)
    assert "output 0: f32[4, 5] on cpu: largest error" in text and "output 1: i64[4] on cpu: largest error 0" in text
    assert re.search(r"counters: graphs 1, kernels [1-9]\d*, extern \d+, aten_fallback 0\nverified", text)
    assert "NOT verified" in command("verify", script, *SHAPES, "--tolerance", "-1", status=1)


def test_bench_and_explain_torchscript(script):
    assert "medians of 2 samples" in command("bench", script, *SHAPES, "--samples", 2)
    assert re.search(r"region_0: \d+ kernels", command("explain", script, *SHAPES))


def test_compile_torchscript(script, tmp_path):
    made = tmp_path / "compiled.pt"
    text = command("compile", script, "-o", made, *SHAPES, "--sign", script.parent / "key.pem")
    assert "region_0\n  region_0 of Float on cpu Contiguous[4, 16]" in text and f"signed with key {PUBLIC_KEY}" in text
    assert "optimized by cxxinductor" in command("inspect", made)
    trusted = {"CXXINDUCTOR_TRUSTED_KEYS": PUBLIC_KEY, "CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "PATH": "/nowhere"}
    text = command("verify", made, *SHAPES, **trusted)
    assert "aten_fallback 0\nverified" in text
    assert "read plan" in command("explain", made, *SHAPES, **trusted)
    assert "the file's machine code is not used: it is signed with key" in command("explain", made, *SHAPES)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["run"], 'expected --input "f32[1, 3, 224, 224]" for each argument of forward'),
        (["run", "--input", "f33[1]"], "expected a tensor as f32[1, 3, 224, 224], a number, True, False or None, found 'f33[1]'"),
        (["run", "--input", "f32[1, x]"], "--input: expected sizes, found 'f32[1, x]'"),
        (["run", "--input", "f32[-1]"], "--input: expected sizes, found 'f32[-1]'"),
        (["run", "--input", "f32[2] on gpu"], "expected a device behind the sizes"),
        (["run", "--input", "f32[2] on cuda:60"], "--input: this machine has no device cuda:60"),
        (["run", "--input", "f32[9223372036854775807, 9223372036854775807]"], "fits into memory"),
        (["run", "--size", "s0=3", "--input", "f32[1]"], "--size: TorchScript files have no symbols"),
        (["compile", "-o", "/nowhere/model.pt", *SHAPES], "/nowhere/model.pt: "),
        (["compile", "-o", "x.pt", "--weights", "beside", *SHAPES], "expected weights inside of a TorchScript file"),
    ],
)
def test_wrong_use_of_torchscript(script, arguments, message):
    assert message in command(arguments[0], script, *arguments[1:], status=2)


def test_shapes_are_for_torchscript(model):
    assert "--input: expected a TorchScript file" in command("run", model[0], "--input", "f32[1]", status=2)


def test_damaged_torchscript(script, tmp_path):
    data = script.read_bytes()
    for keep in (len(data) - 30, len(data) // 2):
        (tmp_path / "cut.pt").write_bytes(data[:keep])
        command("inspect", tmp_path / "cut.pt", status=2)
    (tmp_path / "changed.pt").write_bytes(data.replace(b"PK\3\4", b"PK\3\5", 1))
    assert "expected a file of torch.jit.save" in command("inspect", tmp_path / "changed.pt", status=2)
