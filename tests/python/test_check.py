"""Option check: right models pass, a kernel made wrong on purpose is named with its place in the model."""

import os
import shutil
import stat
import textwrap

import pytest
import torch
from children import run_python
from compare import assert_as_good_as_eager

import cxxinductor

MODES = ["interp", "eager"]


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        y = self.down(torch.nn.functional.gelu(self.up(self.norm(x))))
        return torch.softmax(x + y, -1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(11, 16)
        self.blocks = torch.nn.Sequential(Block(16), Block(16))

    def forward(self, tokens):
        x = self.blocks(self.embed(tokens))
        return x, x.sum(-1), x.argmax(-1), torch.cat([x, -x], 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mode", MODES)
def test_a_right_model_passes(mode, dtype, device):
    model = Model().eval().to(device, dtype)
    tokens = torch.randint(0, 11, (3, 5), device=device)
    compiled = torch.compile(model, backend="cxxinductor", options={"check": mode})
    with torch.no_grad():
        actual, expected = compiled(tokens), model(tokens)
        reference = Model().eval().to(device).double()
        reference.load_state_dict(model.state_dict())
        wanted = reference(tokens)
    assert cxxinductor.counters()["aten_fallback"] == 0
    assert cxxinductor.counters()["checked_launches"] >= 5
    assert_as_good_as_eager(actual[:2], expected[:2], wanted[:2])


@pytest.mark.parametrize("mode", MODES)
def test_training_steps_pass(mode, device):
    model = Model().to(device)
    compiled = torch.compile(model, backend="cxxinductor", options={"check": mode})
    compiled(torch.randint(0, 11, (3, 5), device=device))[0].square().mean().backward()
    assert all(p.grad is not None for p in model.parameters())
    assert cxxinductor.counters()["aten_fallback"] == 0


class ConvNet(torch.nn.Module):
    """Convolutions before norms: what their biases get is all rounding. Activations saved channels last, and views of them."""

    def __init__(self):
        super().__init__()
        convolution = torch.nn.Conv2d
        self.layers = torch.nn.Sequential(
            convolution(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            convolution(16, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Flatten(),
        )  # fmt: skip
        self.head = torch.nn.Linear(32 * 64, 10)

    def forward(self, images):
        return self.head(self.layers(images))


@pytest.mark.parametrize("mode", MODES)
def test_training_of_convolutions_passes(mode, device):
    torch.manual_seed(0)
    model = torch.compile(ConvNet().to(device), backend="cxxinductor", options={"check": mode})
    for batch in (8, 16, 12):
        images, classes = torch.randn(batch, 3, 16, 16, device=device), torch.randint(10, (batch,), device=device)
        torch.nn.functional.cross_entropy(model(images), classes).backward()
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_mutation_random_ops_and_changing_sizes_pass(mode, device):
    def fn(x, y):
        x.mul_(2).add_(y)
        y[1:3] += 1
        return torch.nn.functional.dropout(x, 0.5) + y, torch.sort(x, -1)[0] * 2

    compiled = torch.compile(fn, backend="cxxinductor", dynamic=True, options={"check": mode})
    for rows in (5, 9):
        x, y = torch.randn(rows, 4, device=device), torch.randn(rows, 4, device=device)
        ours, theirs = (x.clone(), y.clone()), (x.clone(), y.clone())
        compiled(*ours)
        fn(*theirs)
        torch.testing.assert_close(ours, theirs)
    assert cxxinductor.counters()["aten_fallback"] == 0


def test_check_is_an_option_and_a_variable(device):
    with pytest.raises(Exception, match="'off', 'eager', 'interp'"):
        torch.compile(lambda x: x + 1, backend="cxxinductor", options={"check": "on"})(torch.ones(2, device=device))


@pytest.mark.parametrize("mode", MODES)
def test_launches_that_agree_are_counted(mode, device):
    compiled = torch.compile(lambda x: torch.sort(x * 2 + 1)[0].exp(), backend="cxxinductor", options={"check": mode})
    for calls in (1, 2):
        compiled(torch.randn(7, device=device))
        assert cxxinductor.counters()["checked_launches"] == 2 * calls
    torch.compile(lambda x: x + 3, backend="cxxinductor")(torch.ones(3, device=device))
    assert cxxinductor.counters()["checked_launches"] == 4


WRONG_MODEL = """
    import sys
    import torch, cxxinductor

    class Scaled(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.linear, self.factor = torch.nn.Linear(8, 8), factor

        def forward(self, x):
            return torch.tanh(self.linear(x)) * self.factor

    torch.manual_seed(0)  # an output near 0 would not differ
    model = torch.nn.Sequential(Scaled(0.8125), Scaled(0.4375), Scaled(0.6875)).eval()
    try:
        with torch.no_grad():
            torch.compile(model, backend="cxxinductor")(torch.randn(4, 8))
    except cxxinductor.KernelMismatch as error:
        print(error)
    else:
        print("nothing found")
"""


@pytest.fixture
def wrong_compiler(tmp_path):
    """A folder with a host compiler that reads 0.4375 as 0.5."""
    script = tmp_path / "c++"
    real = shutil.which("c++") or shutil.which("g++")
    script.write_text(
        textwrap.dedent(f"""\
            #!/bin/sh
            for argument in "$@"; do
              case "$argument" in */unit.cpp) sed -i 's/0x1\\.cp-2f/0x1p-1f/' "$argument" ;; esac
            done
            exec {real} "$@"
            """)
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return tmp_path


@pytest.mark.parametrize("mode", MODES + ["off"])
def test_a_wrong_kernel_is_named(mode, wrong_compiler):
    environment = {
        "PATH": f"{wrong_compiler}:{os.environ['PATH']}",
        "CXXINDUCTOR_CHECK": mode,
        "CXXINDUCTOR_CACHE": "off",
    }
    run = run_python(WRONG_MODEL, environment=environment, check=True)
    if mode == "off":
        assert run.stdout.strip() == "nothing found"
        return
    assert f"check={mode}: kernel k1_" in run.stdout, run.stdout
    assert "aten.mul.Tensor" in run.stdout and "aten.tanh.default (1)" in run.stdout
    assert "32 of 32 elements differ" in run.stdout and "f32[4, 8]" in run.stdout


def test_a_scatter_in_place_is_no_mismatch(device):
    def fn(x, places):
        return torch.full_like(x, -1.0).scatter(-1, places, 2.0) + x

    x, places = torch.randn(4, 8, device=device), torch.randint(0, 8, (4, 3), device=device)
    torch.testing.assert_close(torch.compile(fn, backend="cxxinductor", options={"check": "eager"})(x, places), fn(x, places))
