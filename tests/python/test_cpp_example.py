"""The C++ API in a program that links LibTorch and libcxxinductor, without Python: exported models against eager."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim

import cxxinductor

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "examples" / "run_model"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="built by `make test`")


class Network(nn.Module):
    """Convolutions, a norm, attention, several results; a flag that the export specialises."""

    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, images, scale, doubled):
        x = torch.relu(self.norm(self.convolution(images)))
        x = x.flatten(2).transpose(1, 2)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        logits = self.head(x.mean(1)) * scale
        return {"logits": logits * 2 if doubled else logits, "classes": logits.argmax(-1)}, x.shape[0]


def run(tmp_path, program, inputs, *, fails=False, warns="", **environment):
    torch.export.save(program, tmp_path / "model.pt2")
    torch.save(list(inputs), tmp_path / "inputs.pt")
    command = [str(PROGRAM), str(tmp_path / "model.pt2"), str(tmp_path / "inputs.pt"), str(tmp_path / "outputs.pt")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | environment)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    assert warns in done.stderr
    assert warns or fails or not done.stderr, done.stderr
    return done.stderr if fails else torch.load(tmp_path / "outputs.pt")


def exported(model, args, **dynamic):
    return torch.export.export(model, args, **dynamic).run_decompositions()


def test_a_network_with_a_dynamic_batch(tmp_path):
    torch.manual_seed(0)
    model = Network().eval()
    batch = {0: Dim("batch", min=2, max=64)}
    program = exported(model, (torch.randn(4, 3, 8, 8), torch.tensor(0.5), True), dynamic_shapes=(batch, None, None))
    inputs = (torch.randn(7, 3, 8, 8), torch.tensor(0.25), True)
    with torch.no_grad():
        expected, rows = model(*inputs)
    logits, classes, found_rows = run(tmp_path, program, inputs)
    torch.testing.assert_close(logits, expected["logits"])
    assert torch.equal(classes, expected["classes"]) and found_rows == rows == 7
    error = run(tmp_path, program, (*inputs[:2], False), fails=True)
    assert "input 'doubled': expected True, which the model was exported for, found False" in error
    error = run(tmp_path, program, (torch.randn(65, 3, 8, 8), *inputs[1:]), fails=True)
    assert "images" in error and "64" in error


class Writes(nn.Module):
    """Writes to buffers, to views, through lists; what eager sees afterwards."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(3))
        self.register_buffer("cache", torch.zeros(4, 8))

    def forward(self, x):
        self.steps.add_(1)
        self.cache[1:3].copy_(x)
        y = x.clone()
        y[0].mul_(2)
        y[:, ::2] += 1
        first, second = y.chunk(2, -1)
        second.sub_(first)
        return y + self.cache.sum(), self.steps * 2, first


class Composites(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, -1)
        product = torch.einsum("bij,bkj->bik", a, b) + a @ b.mT
        image = torch.nn.functional.interpolate(x[:, None], scale_factor=2, mode="bilinear")
        classes = torch.nn.functional.one_hot((x > 0).long(), 2)
        return product, image, classes, x.roll(1, 0).flip(1).std(-1), torch.where(x > 0, x, 0.5).cumsum(-1)


def as_exported():
    """Models as torch.export leaves them: composites of ATen's and writes in place."""
    torch.manual_seed(0)
    batch = {0: Dim("batch", min=2, max=64)}
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
    convolutions = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Hardswish(inplace=True))
    yield pytest.param(Network(), (torch.randn(4, 3, 8, 8), torch.tensor(0.5), True), (batch, None, None), id="network")
    yield pytest.param(encoder, (torch.randn(2, 5, 16),), None, id="encoder")
    yield pytest.param(convolutions, (torch.randn(2, 3, 12, 12),), (batch,), id="convolutions")
    yield pytest.param(nn.LSTM(8, 16, 2), (torch.randn(5, 2, 8),), None, id="lstm")
    yield pytest.param(Writes(), (torch.randn(2, 8),), None, id="writes")
    yield pytest.param(Composites(), (torch.randn(3, 4, 6),), None, id="composites")
    yield pytest.param(Composites(), (torch.randn(3, 4, 6),), (batch,), id="composites of any batch")


@pytest.mark.parametrize(("model", "args", "dynamic"), list(as_exported()))
def test_exports_that_are_not_decomposed(tmp_path, model, args, dynamic):
    program = torch.export.export(model.eval(), args, dynamic_shapes=dynamic)
    found = run(tmp_path, program, args)
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(model(*args))
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b)
            assert a.stride() == b.stride()
        else:
            assert a == b


def test_writes_to_an_input_in_other_strides_are_refused(tmp_path):
    class Adds(nn.Module):
        def forward(self, x):
            x.add_(1)
            return x * 2

    program = torch.export.export(Adds(), (torch.zeros(3, 4),))
    (found,) = run(tmp_path, program, (torch.ones(3, 4),))
    assert torch.equal(found, torch.full((3, 4), 4.0))
    assert "strides" in run(tmp_path, program, (torch.ones(4, 3).t(),), fails=True)  # the write would go to a copy


def test_memory_formats_and_dtypes(tmp_path):
    model = nn.Sequential(nn.Conv2d(8, 16, 3), nn.GELU(), nn.Conv2d(16, 8, 1)).to(torch.bfloat16, memory_format=torch.channels_last)
    x = torch.randn(2, 8, 9, 9, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    program = exported(model, (x,))
    for given in (x, x.contiguous()):
        (found,) = run(tmp_path, program, (given,))
        torch.testing.assert_close(found, model(x).detach(), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("environment", [{"PATH": "", "CXX": "", "CXXINDUCTOR_CACHE": "off"}, {"CXXINDUCTOR_TIER": "aten"}], ids=["no compiler", "aten"])
def test_what_is_not_compiled_runs_through_aten(tmp_path, environment):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    program = exported(model, (torch.randn(3, 4),), dynamic_shapes=({0: Dim("batch", min=2, max=64)},))
    x = torch.randn(5, 4)
    (found,) = run(tmp_path, program, (x,), warns="runs op by op through ATen", **environment)
    torch.testing.assert_close(found, model(x).detach())
    for wrong, message in ((torch.randn(65, 4), "is 65, but"), (torch.randn(5, 3), "expected sizes"), (x.double(), "expected dtype f32")):
        run(tmp_path, program, (wrong,), fails=True, warns=message, **environment)


@torch.library.custom_op("cxxi_example::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def test_ops_that_a_file_may_not_call(tmp_path):
    class Calls(nn.Module):
        def forward(self, x):
            return twice(x) + 1

    error = run(tmp_path, exported(Calls(), (torch.randn(3),)), (torch.randn(3),), fails=True)
    assert "cxxi_example::twice" in error and "allow_ops" in error


def test_example_links_no_python():
    assert "libpython" not in subprocess.run(["ldd", str(PROGRAM)], capture_output=True, text=True).stdout


def checked(*command, **kwargs):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """`cmake --install`, moved afterwards: its files may not name the folder that they were installed into."""
    folder = tmp_path_factory.mktemp("cxxinductor")
    checked("cmake", "--install", ROOT / "build" / "release", "--prefix", folder / "before")
    return (folder / "before").rename(folder / "installed")


@pytest.fixture(scope="module")
def unpacked_libtorch(tmp_path_factory):
    """A folder as LibTorch's archives have it, with nothing of Python."""
    folder = tmp_path_factory.mktemp("unpacked") / "libtorch"
    folder.mkdir()
    for name in ("include", "lib", "share"):
        (folder / name).symlink_to(Path(torch.__file__).parent / name)
    return folder


def check_example(program, tmp_path):
    torch.save([torch.ones(3, 2)], tmp_path / "inputs.pt")
    assert "output CPUFloatType[3, 2]" in checked(program, ROOT / "tests" / "data" / "pt2" / "mlp.pt2", tmp_path / "inputs.pt")


def test_examples_build_against_an_installed_library(installed, unpacked_libtorch, tmp_path):
    """Beside LibTorch as its archive has it; test_install.py builds some beside PyTorch's package."""
    checked("cmake", "-S", ROOT / "examples", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={installed};{unpacked_libtorch}", "-DCMAKE_CXX_STANDARD=17")
    checked("cmake", "--build", tmp_path, "--target", "run_model")
    assert str(unpacked_libtorch) in (tmp_path / "CMakeCache.txt").read_text()
    check_example(tmp_path / "run_model", tmp_path)


def test_pytorch_is_found_by_its_own_prefix(installed, tmp_path):
    checked("cmake", "-S", ROOT / "examples", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={installed};{torch.utils.cmake_prefix_path}")
    checked("cmake", "--build", tmp_path, "--target", "run_package")
    assert "output f32[3, 2]" in checked(tmp_path / "c_host" / "run_package", ROOT / "tests" / "data" / "pt2" / "mlp.pt2")


def pkg_config(installed, *arguments):
    search = {"PKG_CONFIG_PATH": str(installed / "lib" / "pkgconfig")}
    return checked("pkg-config", *arguments, "cxxinductor", env=os.environ | search).split()


def test_pkg_config(installed, unpacked_libtorch, tmp_path):
    assert pkg_config(installed, "--modversion") == [cxxinductor.__version__]
    flags = pkg_config(installed, "--cflags", "--libs", f"--define-variable=libtorch={unpacked_libtorch}")
    assert any(str(unpacked_libtorch) in flag for flag in flags) and str(torch.__file__) not in " ".join(flags)
    flags = pkg_config(installed, "--cflags", "--libs")
    (tmp_path / "program.cpp").write_text(re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1))
    checked("c++", "-std=c++17", "-o", tmp_path / "program", tmp_path / "program.cpp", *flags)
    shutil.copy(ROOT / "tests" / "data" / "pt2" / "mlp.pt2", tmp_path / "model.pt2")
    assert "[ CPUFloatType{3,2} ]" in checked(tmp_path / "program", cwd=tmp_path, env=os.environ | {"CXXINDUCTOR_DUMP": "calls"})
    assert (tmp_path / "cxxinductor_dump").is_dir()


def test_pkg_config_for_c(installed, tmp_path):
    checked("cc", "-std=c99", "-o", tmp_path / "c_host", ROOT / "tests" / "api" / "c_host.c", *pkg_config(installed, "--cflags", "--libs"), "-lm")
    assert checked(tmp_path / "c_host", ROOT / "tests" / "data" / "pt2", tmp_path / "c_host.cxxi") == "the C API works\n"


def test_installed_program(installed, tmp_path):
    assert checked(installed / "bin" / "cxxinductor", "--version") == f"cxxinductor {cxxinductor.__version__}\n"
