"""Packages: made here, loaded in other processes, with and without compilers, keys and weights."""

import collections
import dataclasses
import io
import json
import os
import re
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from children import run_python
from torch import nn
from torch.export import Dim
from torch.utils._pytree import tree_flatten, tree_leaves

import cxxinductor
from cxxinductor.trees import ModelTrees

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "bin" / "cxxinductor"
# Of RFC 8032, section 7.1, test 1.
KEY = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"
PUBLIC_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

# Runs a model on inputs in a process of its own: (path, inputs, options) -> results, weights and what was compiled.
RUN = """
import json, sys, warnings, torch, cxxinductor
from cxxinductor import _C
path, inputs, options, written = sys.argv[1], torch.load(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = cxxinductor.load(path, options=options)
results = [model.run_leaves(*given) for given in inputs]
torch.save({"results": results, "weights": {name: model.weight(name).clone() for name in model.weight_names()},
            "compiled": _C.compile_progress()[0], "counters": cxxinductor.counters(), "explain": model.explain(),
            "warnings": [str(w.message) for w in caught]}, written)
"""


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.last = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(x + self.last(self.second(F.relu(self.norm(self.first(x))))))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks, self.head = nn.Conv2d(3, 8, 7, stride=2), nn.Sequential(Block(8), Block(8)), nn.Linear(8, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 3, stride=2)
        return self.head(self.blocks(x).mean((2, 3))).softmax(-1)


class Transformer(nn.Module):
    """Tied weights, sizes that change."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(40, 16), nn.Linear(16, 40, bias=False)
        self.head.weight = self.embedding.weight
        self.norm, self.qkv, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, tokens):
        x = self.embedding(tokens)
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.down(F.gelu(self.up(self.norm(x))))
        return self.head(x), tokens.shape[1] * 2


class Counter(nn.Module):
    """Buffers that are updated, one of them handed out."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        self.total.mul_(0.5).add_(x.sigmoid().sum(0))
        return self.total * x.tanh(), self.total


def exported(name, device="cpu"):
    torch.manual_seed(0)
    if name == "convolutions":
        module, sizes = Convolutions().eval().to(device), [(torch.randn(2, 3, 64, 64, device=device),)]
        for norm in (m for m in module.modules() if isinstance(m, nn.BatchNorm2d)):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
        return torch.export.export(module, sizes[0]), sizes
    if name == "transformer":
        inputs = [(torch.randint(0, 40, shape, device=device),) for shape in [(3, 7), (2, 12), (5, 33)]]
        shapes = ({0: Dim("batch", min=2, max=64), 1: Dim("length", min=2, max=128)},)
        return torch.export.export(Transformer().eval().to(device), inputs[0], dynamic_shapes=shapes), inputs
    inputs = [(torch.randn(3, 4, device=device),) for _ in range(3)]
    return torch.export.export(Counter().to(device), inputs[0]), inputs


NAMES = ["convolutions", "transformer", "counter"]


@pytest.fixture(scope="module", params=NAMES)
def packaged(request, tmp_path_factory):
    """(folder with model.pt2, model.cxxi, signed.cxxi and inputs.pt; the results of the model compiled here)"""
    folder = tmp_path_factory.mktemp(request.param)
    program, inputs = exported(request.param, request.config.getoption("--device"))
    torch.export.save(program, folder / "model.pt2")
    torch.save(inputs, folder / "inputs.pt")
    (folder / "key.pem").write_text(KEY)
    cxxinductor.package(program, folder / "model.cxxi")
    cxxinductor.package(program, folder / "signed.cxxi", signing_key=folder / "key.pem")
    model = cxxinductor.load(folder / "model.pt2")
    results = [model.run_leaves(*(x.clone() for x in given)) for given in inputs]
    return folder, [[r.clone() if isinstance(r, torch.Tensor) else r for r in result] for result in results], model


def run_elsewhere(folder, name, tmp_path, compiler=True, **options):
    """In a process with an empty cache and, unless `compiler`, no program on PATH."""
    environment = {"CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    if not compiler:
        environment["PATH"] = str(tmp_path / "nothing")
    done = run_python(RUN, folder / name, folder / "inputs.pt", json.dumps(options), tmp_path / "out.pt", environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return torch.load(tmp_path / "out.pt")


def assert_same(found, expected, exact=True):
    assert len(found) == len(expected)
    for got, wanted in zip(found, expected):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted):
            if isinstance(b, torch.Tensor) and not exact:
                torch.testing.assert_close(a, b)
            else:
                assert torch.equal(a, b) if isinstance(b, torch.Tensor) else a == b


def test_trusted_packages_run_without_a_compiler(packaged, tmp_path):
    folder, expected, model = packaged
    found = run_elsewhere(folder, "model.cxxi", tmp_path, compiler=False, trust=True)
    assert_same(found["results"], expected)
    assert found["compiled"] == 0 and not found["warnings"]
    assert found["counters"]["graphs"] == 1 and found["counters"]["kernels"] > 0
    assert found["counters"]["aten_fallback"] == 0
    for name, tensor in found["weights"].items():
        torch.testing.assert_close(tensor, model.weight(name), rtol=0, atol=0)


def test_signed_packages_run_without_a_compiler(packaged, tmp_path):
    folder, expected, _ = packaged
    found = run_elsewhere(folder, "signed.cxxi", tmp_path, compiler=False, trusted_keys=f"{'0' * 64},{PUBLIC_KEY}")
    assert_same(found["results"], expected)
    assert found["compiled"] == 0 and found["counters"]["aten_fallback"] == 0


@pytest.mark.parametrize(
    "name, options, reason",
    [
        ("model.cxxi", {}, "it is not signed"),
        ("model.cxxi", {"trusted_keys": PUBLIC_KEY}, "it is not signed"),
        ("signed.cxxi", {}, f"signed with key {PUBLIC_KEY}"),
        ("signed.cxxi", {"trusted_keys": "0" * 64}, "which option trusted_keys does not list"),
    ],
)
def test_models_say_why_code_is_not_trusted(small, tmp_path, name, options, reason):
    program, inputs = small
    cxxinductor.package(program, tmp_path / name, signing_key=write_key(tmp_path) if name.startswith("signed") else "")
    model = cxxinductor.load(tmp_path / name, options=options)
    assert reason in model.explain() and "read plan" not in model.explain()
    assert cxxinductor.counters()["aten_fallback"] == 0
    torch.testing.assert_close(model.run(*inputs[0])[0], program.module()(*inputs[0])[0])


def test_code_that_is_not_trusted_is_compiled_again(packaged, tmp_path):
    folder, expected, _ = packaged
    found = run_elsewhere(folder, "signed.cxxi", tmp_path, trusted_keys="0" * 64)
    assert_same(found["results"], expected)
    assert found["compiled"] > 0 and found["counters"]["aten_fallback"] == 0
    assert "the package's machine code is not used" in found["explain"]


def test_without_trust_and_compiler_packages_run_through_aten(packaged, tmp_path, device):
    folder, expected, _ = packaged
    if device == "cuda":
        pytest.skip("NVRTC is a library, which is there")
    found = run_elsewhere(folder, "model.cxxi", tmp_path, compiler=False)
    assert_same(found["results"], expected, exact=False)
    assert found["compiled"] == 0 and found["counters"]["aten_fallback"] == 1
    assert "runs op by op through ATen" in found["explain"] and "it is not signed" in found["explain"]


@pytest.fixture(scope="module")
def transformer():
    return exported("transformer")


@pytest.fixture
def small(tmp_path):
    program, inputs = exported("counter")
    torch.save(inputs, tmp_path / "inputs.pt")
    return program, inputs


def test_weights_beside(transformer, tmp_path):
    program, inputs = transformer
    path = tmp_path / "model.cxxi"
    cxxinductor.package(program, path, weights_beside=True)
    weights = tmp_path / "model.cxxi.weights"
    state = program.state_dict
    assert weights.stat().st_size >= sum(t.numel() * 4 for name, t in state.items() if name != "head.weight")
    model = cxxinductor.load(path, options={"trust": True})
    torch.testing.assert_close(model.run(*inputs[1])[0], program.module()(*inputs[1])[0])
    assert model.weight("head.weight").data_ptr() == model.weight("embedding.weight").data_ptr()
    assert all(model.weight(name).data_ptr() % 64 == 0 for name in model.weight_names())
    del model

    right = weights.read_bytes()
    weights.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    with pytest.raises(cxxinductor.UserError, match="digest does not match"):
        cxxinductor.load(path)
    weights.write_bytes(right + b"x")
    with pytest.raises(cxxinductor.UserError, match=f"expected the {len(right)} bytes of weights"):
        cxxinductor.load(path)
    weights.unlink()
    with pytest.raises(cxxinductor.UserError, match="model.cxxi.weights: No such file"):
        cxxinductor.load(path)


def test_weights_are_packaged_as_they_are_now(small, tmp_path):
    program, inputs = small
    torch.export.save(program, tmp_path / "model.pt2")
    cxxinductor.package(program, tmp_path / "first.cxxi")
    model = cxxinductor.load(tmp_path / "first.cxxi", options={"trust": True})
    before = model.weight("total").clone()
    model.run(*inputs[0])
    assert not torch.equal(model.weight("total"), before)
    # The file is what it was.
    assert torch.equal(cxxinductor.load(tmp_path / "first.cxxi", options={"trust": True}).weight("total"), before)


def test_options_that_shape_kernels_are_the_packages_own(tmp_path):
    program, inputs = exported("transformer")
    cxxinductor.package(program, tmp_path / "model.cxxi", options={"fusion": False})
    model = cxxinductor.load(tmp_path / "model.cxxi", options={"trust": True})
    unfused = cxxinductor.counters()["kernels"]
    cxxinductor.reset_counters()
    cxxinductor.package(program, tmp_path / "model.cxxi")
    model = cxxinductor.load(tmp_path / "model.cxxi", options={"trust": True, "fusion": False})
    assert 0 < cxxinductor.counters()["kernels"] < unfused
    torch.testing.assert_close(model.run(*inputs[2])[0], program.module()(*inputs[2])[0])


def test_a_machine_without_the_instructions_compiles(small, tmp_path):
    program, inputs = small
    cxxinductor.package(program, tmp_path / "old.cxxi", archs=["x86-64-v2", "x86-64"])
    found = run_elsewhere(tmp_path, "old.cxxi", tmp_path, compiler=False, trust=True)
    assert found["compiled"] == 0 and found["counters"]["aten_fallback"] == 0
    with pytest.raises(cxxinductor.UserError, match="x86-64-v3 or x86-64-v4 .*found 'arm64'"):
        cxxinductor.package(program, tmp_path / "arm.cxxi", archs=["arm64"])




def test_what_is_no_package_is_refused(small, tmp_path):
    program, _ = small
    path = tmp_path / "model.cxxi"
    cxxinductor.package(program, path)
    right = path.read_bytes()
    for at in range(0, len(right), 997):
        path.write_bytes(right[:at] + bytes([right[at] ^ 4]) + right[at + 1 :])
        with pytest.raises((cxxinductor.UserError, cxxinductor.Unsupported, RuntimeError)):
            cxxinductor.load(path, options={"trust": True}).run()
    path.write_bytes(right[: len(right) // 2])
    with pytest.raises(cxxinductor.UserError, match=f"expected {len(right)} bytes, as its header says"):
        cxxinductor.load(path)
    path.write_bytes(right[:8] + struct.pack("<I", 9) + right[12:])
    with pytest.raises(cxxinductor.Unsupported, match="expected format version 2, found 9"):
        cxxinductor.load(path)


def test_other_files_of_torch_are_named(tmp_path):
    torch.jit.script(nn.Linear(2, 2)).save(tmp_path / "script.pt")
    torch.save(torch.zeros(2), tmp_path / "tensor.pt")
    for name, found in [("script.pt", "a TorchScript module: read it with torch::jit::load"), ("tensor.pt", "tensors without a program")]:
        with pytest.raises(cxxinductor.UserError, match=f"{name}: expected what torch.export.save wrote, found {found}"):
            cxxinductor.load(tmp_path / name)


@pytest.mark.parametrize("option, said", [("explain", "k0_"), ("time", "compile kernels")])
def test_options_print_after_loads(small, tmp_path, capfd, option, said):
    program, _ = small
    torch.export.save(program, tmp_path / "model.pt2")
    cxxinductor.load(tmp_path / "model.pt2", options={option: True})
    printed = capfd.readouterr()
    assert said in printed.err and printed.out == ""


def test_a_cache_that_cannot_be_used_is_said_once(small, tmp_path, capfd):
    program, _ = small
    torch.export.save(program, tmp_path / "model.pt2")
    (tmp_path / "file").write_text("")
    for _ in range(2):
        cxxinductor.load(tmp_path / "model.pt2", options={"cache_dir": str(tmp_path / "file")})
    assert capfd.readouterr().err.count("file' is not a folder") == 1


def test_builds_that_cannot_be_are_refused(small, tmp_path):
    program, _ = small
    with pytest.raises(cxxinductor.UserError, match="expected an architecture of .*sm_80, sm_90.*, found 'sm_x'"):
        cxxinductor.package(program, tmp_path / "model.cxxi", archs=["sm_x"])
    with pytest.raises(cxxinductor.UserError, match="package: expected what torch.export.export or optimize returned, found Linear"):
        cxxinductor.package(torch.nn.Linear(3, 3), tmp_path / "model.cxxi")
    with pytest.raises(cxxinductor.UserError, match="option 'tier': expected kernels"):
        cxxinductor.package(program, tmp_path / "model.cxxi", options={"tier": "aten"})
    assert not (tmp_path / "model.cxxi").exists()


def test_keys_that_are_none_are_refused(small, tmp_path):
    program, _ = small
    (tmp_path / "key.pem").write_text("no key")
    with pytest.raises(cxxinductor.UserError, match="key.pem: expected an Ed25519 private key"):
        cxxinductor.package(program, tmp_path / "model.cxxi", signing_key=tmp_path / "key.pem")
    assert not (tmp_path / "model.cxxi").exists()
    cxxinductor.package(program, tmp_path / "model.cxxi", signing_key=write_key(tmp_path))
    with pytest.raises(cxxinductor.UserError, match="trusted_keys.: expected Ed25519 public keys of 64 hexadecimal digits each"):
        cxxinductor.load(tmp_path / "model.cxxi", options={"trusted_keys": "abc"})


def write_key(folder):
    (folder / "right.pem").write_text(KEY)
    return folder / "right.pem"


@pytest.mark.skipif(not PROGRAM.exists(), reason="built by `make test`")
def test_the_program_makes_and_takes_packages(packaged, device, tmp_path):
    folder, _, _ = packaged

    def command(*arguments, status=0, **environment):
        done = subprocess.run(
            [str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, timeout=300, env=os.environ | environment
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    path, other = tmp_path / "model.cxxi", "sm_80" if device == "cpu" else "x86-64-v3"
    text = command("compile", folder / "model.pt2", "-o", path, "--weights", "beside", "--sign", folder / "key.pem", "--arch", other)
    assert f"{other}: not used, since no part of the model is on a device of this kind" in text and text.count("not used") == 1
    assert f"signed with key {PUBLIC_KEY}" in text and (tmp_path / "model.cxxi.weights").exists()
    shown = command("inspect", path)
    for part in (f"signed with key {PUBLIC_KEY}", "x86-64" if device == "cpu" else "sm_", "weights: ", "code"):
        assert part in shown
    keys = {"CXXINDUCTOR_TRUSTED_KEYS": PUBLIC_KEY}
    for subcommand in ("run", "verify"):
        assert "random, seed 0" in command(subcommand, path, **keys)
    assert "read plan" in command("explain", path, **keys)
    assert "read plan" not in command("explain", path)
    assert "medians of 2 samples" in command("bench", path, "--samples", "2", **keys)


def on_gpu(archive):
    """An archive of the CPU as an export with tensors on a GPU would have written it, which needs a GPU."""
    moved = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(moved, "w") as new:
        for name in old.namelist():
            data, info = old.read(name), zipfile.ZipInfo(name)
            if name.endswith(".json"):
                data = re.sub(rb'{"type": "cpu", "index": null}', b'{"type": "cuda", "index": 0}', data)
            padding = -(new.fp.tell() + 30 + len(name) + 4) % 64  # data at a multiple of 64 bytes, as PyTorch has it
            info.extra = b"FB" + padding.to_bytes(2, "little") + bytes(padding)
            new.writestr(info, data)
    return moved.getvalue()


def sections(path):
    """(kind, name, bytes) of each section: docs/design/package.md."""
    data = path.read_bytes()
    for i in range(struct.unpack_from("<I", data, 12)[0]):
        kind, _, offset, size, _, name = struct.unpack_from("<IIQQ32s72s", data, 160 + 128 * i)
        yield kind, name.rstrip(b"\0").decode(), data[offset : offset + size]


@pytest.mark.skipif(torch.version.cuda is None, reason="PyTorch brings NVRTC in its CUDA builds")
def test_packages_for_gpus_are_made_without_one(tmp_path):
    program, _ = exported("transformer")
    archive = io.BytesIO()
    torch.export.save(program, archive)
    (tmp_path / "model.pt2").write_bytes(on_gpu(archive.getvalue()))
    made = tmp_path / "model.cxxi"

    def make(*archs):
        options = cxxinductor.config.resolve({"cache_dir": str(tmp_path / "cache")})
        cxxinductor._C.package((tmp_path / "model.pt2").read_bytes(), str(made), list(archs), False, "", options)

    make("sm_80", "sm_90")
    found = list(sections(made))
    plans = {name.split()[0]: data for kind, name, data in found if kind == 3}
    assert set(plans) == {"sm_80", "sm_90"}
    assert all(b"on cuda:0" in plan or b"cuda:0" in plan for plan in plans.values())
    cubins = [data for kind, _, data in found if kind == 5]
    assert len(cubins) >= 2 * 3 and all(data[:4] == b"\x7fELF" and data[18:20] == b"\xbe\x00" for data in cubins)  # EM_CUDA
    if torch.cuda.is_available():
        return
    with pytest.raises(cxxinductor.UserError, match="name its architecture, as sm_80, sm_90"):
        make()
    with pytest.raises(cxxinductor.UserError, match="expected an architecture of .*sm_80, sm_90.*, found 'sm_x'"):
        make("sm_x")
    with pytest.raises(Exception):  # noqa: B017  PyTorch's own: there is no GPU for the weights
        cxxinductor.load(made, options={"trust": True})


@dataclasses.dataclass
class Batch:
    images: torch.Tensor
    mask: torch.Tensor


torch.export.register_dataclass(Batch, serialized_type_name="test_packages.Batch")


class Nested(nn.Module):
    def forward(self, batch, sizes, *, more, scale=2.0):
        y = batch.images * scale + more["b"] - more["a"][0]
        return {"z": y, "batch": Batch(y + 1, batch.mask), "sizes": [sizes[0], (sizes[1] + 1,)]}


@pytest.fixture(scope="module")
def nested(tmp_path_factory):
    """(exported program, its arguments, files: as it is and packaged)"""
    folder = tmp_path_factory.mktemp("nested")
    args = (Batch(torch.randn(3, 2), torch.ones(3, dtype=torch.bool)), (torch.randn(2), torch.randn(3)))
    kwargs = {"more": {"a": (torch.randn(2),), "b": torch.randn(2)}, "scale": 2.0}
    program = torch.export.export(Nested(), args, kwargs)
    torch.export.save(program, folder / "model.pt2")
    cxxinductor.package(program, folder / "model.cxxi")
    return program, args, kwargs, [folder / "model.pt2", folder / "model.cxxi"]


def test_models_take_and_return_the_containers_of_the_export(nested):
    program, args, kwargs, paths = nested
    expected, expected_structure = tree_flatten(program.module()(*args, **kwargs))
    other_order = {"scale": 2.0, "more": {"b": kwargs["more"]["b"], "a": kwargs["more"]["a"]}}
    for path in paths:
        model = cxxinductor.load(path)
        for given in (kwargs, other_order):
            found, structure = tree_flatten(model.run(*args, **given))
            assert structure == expected_structure
            assert_same([found], [expected], exact=False)
        assert_same([model.run_leaves(*tree_leaves((args, kwargs)))], [expected], exact=False)
        assert len(model.input_types()) == len(tree_leaves((args, kwargs)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda args, kwargs: (args[:1], kwargs), r"^run: expected 2 positional arguments \(batch_images: f32\[.*; sizes_1: f32.*\) and keywords more \(.*; .*\), scale \(.*\), found 1 and keywords more, scale$"),
        (lambda args, kwargs: ((), {}), r"^run: expected 2 positional arguments \(.*\) and keywords more \(.*\), scale \(.*\), found 0$"),
        (lambda args, kwargs: (args, {**kwargs, "other": 1}), "found 2 and keywords more, scale, other$"),
        (lambda args, kwargs: (args, {"more": kwargs["more"], "size": 2.0}), r"keywords more \(.*\), scale \(.*\), found 2 and keywords more, size$"),
        (lambda args, kwargs: ((args[0].images, args[1]), kwargs), r"^run: positional argument 0 \(batch_images: .*; batch_mask: .*\): Type mismatch; expected .*Batch.*Tensor"),
        (lambda args, kwargs: ((args[0], list(args[1])), kwargs), r"^run: positional argument 1 \(sizes_0: .*\): Node type mismatch; expected .*tuple.*list"),
        (lambda args, kwargs: (args, {**kwargs, "more": {"a": 1}}), r"^run: keyword more \(.*\): Node arity mismatch; expected 2, but got 1"),
        (lambda args, kwargs: ((args[0], (args[1], args[1])), kwargs), "found a tuple"),
    ],
)  # fmt: skip
def test_arguments_that_are_nested_otherwise_are_errors(nested, change, message):
    _, args, kwargs, paths = nested
    model = cxxinductor.load(paths[1])
    args, kwargs = change(args, kwargs)
    with pytest.raises(cxxinductor.UserError, match=message):
        model.run(*args, **kwargs)


def test_errors_of_calls_name_the_inputs(tmp_path):
    class Doubled(nn.Module):
        def forward(self, images):
            return images * 2

    torch.export.save(torch.export.export(Doubled(), (torch.randn(3, 16),)), tmp_path / "model.pt2")
    model, x = cxxinductor.load(tmp_path / "model.pt2"), torch.randn(3, 16)
    expected = r"^run: expected 1 positional argument \(images: f32\[3, 16\] on cpu\), found "
    for args, kwargs, found in (((), {}, "0"), ((), {"images": x}, "0 and keyword images"), ((x, 3), {}, "2")):
        with pytest.raises(cxxinductor.UserError, match=f"{expected}{found}$"):
            model.run(*args, **kwargs)


def tree(kind, context):
    leaf = {"type": None, "context": None, "children_spec": []}
    return json.dumps([1, {"type": kind, "context": context, "children_spec": [leaf]}])


FACTORY = {"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": ["a"]}


@pytest.mark.parametrize(
    ("kind", "context", "message"),
    [
        ("unknown.Type", "null", "expected containers of registered types, found 'unknown.Type'.*call run_leaves"),
        ("collections.namedtuple", "unknown.Pair", "registered types, found 'unknown.Pair'"),
        ("collections.defaultdict", {**FACTORY, "default_factory_module": "imported_by_a_file"}, "expected a defaultdict of a builtin type"),
        ("collections.defaultdict", {**FACTORY, "default_factory_name": "eval"}, "expected a defaultdict of a builtin type"),
        ("builtins.dict", '[{"__enum__": true, "fqn": "imported_by_a_file:Kind", "name": "A"}]', "enum of an imported module, found 'imported_by_a_file:Kind'"),
        ("builtins.dict", '[{"\\u005f_enum__": true, "fqn": "os:path", "name": "A"}]', "expected an enum of an imported module, found 'os:path'"),
        ("builtins.dict", "not JSON", "expected JSON, found 'not JSON'"),
        ("builtins.dict", None, "expected JSON, found None"),
    ],
)  # fmt: skip
def test_files_import_no_modules_through_their_containers(tmp_path, monkeypatch, kind, context, message):
    (tmp_path / "imported_by_a_file.py").write_text(f"open({str(tmp_path / 'called')!r}, 'w')\nlist = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(cxxinductor.UserError, match=message):
        ModelTrees(tree(kind, context), "")
    assert not (tmp_path / "called").exists()


def test_default_dictionaries(tmp_path):
    """Contexts that are no texts in the file."""

    class Parts(nn.Module):
        def forward(self, parts):
            return collections.defaultdict(list, {key: x + 1 for key, x in parts.items()}), collections.deque([parts["a"]], maxlen=3)

    parts = collections.defaultdict(list, a=torch.ones(2), b=torch.zeros(2))
    program = torch.export.export(Parts(), (parts,))
    torch.export.save(program, tmp_path / "model.pt2")
    cxxinductor.package(program, tmp_path / "model.cxxi")
    for name in ("model.pt2", "model.cxxi"):
        found, last = cxxinductor.load(tmp_path / name).run(parts)
        assert type(found) is collections.defaultdict and found.default_factory is list and type(last) is collections.deque
        assert_same([list(found.values())], [[torch.full((2,), 2.0), torch.ones(2)]])
