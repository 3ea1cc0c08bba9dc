"""The applications in examples/, with small models, against eager."""

import os
import re
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BUILT = ROOT / "build" / "release" / "examples"
PROGRAM = ROOT / "build" / "release" / "bin" / "cxxinductor"

pytestmark = pytest.mark.skipif(not (BUILT / "train_digits" / "train_digits").exists(), reason="built by `make test`")


@pytest.fixture(autouse=True)
def environment(device, tmp_path, monkeypatch):
    """On a GPU the programs share no cache, so that what they compiled for it is seen, and nothing multiplies in TF32: batches of other sizes are
    compared. For the CPU there is no GPU."""
    if device == "cpu":
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        yield
        return
    monkeypatch.setenv("CXXINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    # Not by attribute: torch.testing's own tests, whose inputs ours share, forbid it in their process.
    with torch.backends.cudnn.flags(enabled=True, benchmark=torch.backends.cudnn.benchmark, allow_tf32=False):
        yield


@pytest.fixture
def ran_there(device, tmp_path):
    """After the test: that the programs compiled kernels for the GPU, if it is about one. Cubins are ELF files of machine 190 (EM_CUDA)."""
    yield
    if device == "cuda":
        files = [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]
        assert any(re.search(rb"\x7fELF.{14}\xbe\x00", data, re.DOTALL) for data in files), f"no code for a GPU in {len(files)} files"


def command(name, *arguments, status=0, **environment):
    program = BUILT / name if name != "cxxinductor" else PROGRAM
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=300, env=os.environ | environment)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stdout + done.stderr


def exporter(name):
    """The module export.py beside the application."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"export_{name}", EXAMPLES / name / "export.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_exporter(name, *arguments):
    subprocess.run([sys.executable, str(EXAMPLES / name / "export.py"), *map(str, arguments)], check=True, capture_output=True, timeout=300)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory, request):
    path = tmp_path_factory.mktemp("decoder") / "gpt2.pt2"
    run_exporter("text_generation", path, "--device", request.config.getoption("--device"))
    return path


PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


def generated(path, *arguments):
    text = command("text_generation/text_generation", path, "--prompt", ",".join(map(str, PROMPT)), "--tokens", 40, *arguments)
    assert re.search(r"^compiled: prompt of 8 tokens in [\d.]+ ms, then [\d.]+ tokens/s$", text, re.MULTILINE), text
    return [int(token) for token in text.splitlines()[0].split()], text


def test_text_generation_writes_the_tokens_of_transformers(decoder, device, ran_there):
    model = exporter("text_generation").random_model().to(device)
    with torch.no_grad():
        expected = model.generate(torch.tensor([PROMPT], device=device), max_new_tokens=40, do_sample=False, eos_token_id=None, pad_token_id=0)[0, 8:].tolist()
    assert len(set(expected)) > 5, "the weights repeat one token, which shows nothing"
    tokens, text = generated(decoder, "--compare")
    assert tokens == expected and "the tokens are equal" in text


def test_sampled_text_depends_on_the_seed(decoder):
    first, second, other = (generated(decoder, "--sample", 0.9, "--seed", seed)[0] for seed in (1, 1, 2))
    assert first == second != other and first != generated(decoder)[0]
    assert "exceed the cache of 128 positions" in command("text_generation/text_generation", decoder, "--tokens", 126, status=2)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory, request):
    path = tmp_path_factory.mktemp("classifier") / "model.pt2"
    run_exporter("classification_server", path, "--batch", 8, "--device", request.config.getoption("--device"))
    return path


def check_load(text, name, requests):
    """Throughput and latency of one load; every request is in its histogram."""
    section = text[text.index(f"{name}: ") :]
    found = re.match(rf"{name}: [\d.]+ images/s in batches of ([\d.]+); latency p50 ([\d.]+) ms, p90 ([\d.]+) ms, p99 ([\d.]+) ms\n", section)
    batch, *percentiles = map(float, found.groups())
    assert 1 < batch <= 8 and percentiles == sorted(percentiles)
    histogram = re.match(r"(?:  < +[\d.]+ ms +\d+ #*\n)+", section[found.end() :]).group(0)
    assert sum(int(row.split()[3]) for row in histogram.splitlines()) == requests


def test_classification_server(classifier, ran_there):
    text = command("classification_server/classification_server", classifier, "--requests", 300, "--clients", 8, "--batch", 8, "--compare")
    check_load(text, "compiled", 300)
    check_load(text, "ATen", 300)
    assert "compared with ATen: 0 of 300 labels differ" in text


def test_classification_server_for_other_clients(classifier, tmp_path, device, ran_there):
    path = tmp_path / "socket"
    server = subprocess.Popen([str(BUILT / "classification_server" / "classification_server"), str(classifier), "--serve", str(path), "--batch", "4"],
                              stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        line = server.stdout.readline()
        assert "serving" in line and f" on {device}" in line
        torch.manual_seed(1)
        images = torch.randn(10, 3, 16, 16)
        with torch.no_grad():
            model = torch.export.load(classifier).module()  # of 8 images at most
            scores, labels = torch.cat([model(half.to(device)) for half in images.split(5)]).softmax(1).cpu().max(1)
        connections = [socket.socket(socket.AF_UNIX) for _ in range(5)]
        for connection in connections:
            connection.connect(str(path))
        for half in (0, 5):
            for i, connection in enumerate(connections):
                connection.sendall(images[half + i].numpy().tobytes())
            for i, connection in enumerate(connections):
                label, score = struct.unpack("=if", connection.recv(8, socket.MSG_WAITALL))
                assert label == labels[half + i] and abs(score - scores[half + i]) < 1e-4
        server.terminate()  # with open connections
        assert server.wait(30) == 0 and not path.exists()
    finally:
        server.kill()


def test_a_failed_request_ends_its_connection(tmp_path, device):
    """A model that takes two images at most, in a server that collects four."""
    path, address = tmp_path / "model.pt2", tmp_path / "socket"
    module = exporter("classification_server")
    torch.export.save(module.export(module.small_network(), 16, 2, device), path)
    text = command("classification_server/classification_server", path, "--batch", 4, "--serve", address, status=1)
    assert re.search(r"input \d+ \(images\) is [34], but the graph was compiled for 1 <= \w+ <= 2", text), text


DIGITS = [EXAMPLES / "train_digits" / "data" / name for name in ("images.idx3-ubyte", "labels.idx1-ubyte")]


def test_training_reaches_its_accuracy_on_the_recorded_device(ran_there):
    text = command("train_digits/train_digits", *DIGITS, "--epochs", 6, "--expect", 0.96)
    losses = [float(loss) for loss in re.findall(r"^epoch +\d+: loss ([\d.]+),", text, re.MULTILINE)]
    assert len(losses) == 6 and losses[-1] < losses[0] / 5
    calls, runs, recordings, through_aten = map(int, re.search(r"(\d+) calls recorded, (\d+) runs of (\d+) recordings, (\d+) ops through", text).groups())
    assert calls > 1000 and runs >= 6 * 22 and recordings < 20 and through_aten == 0, text


def test_training_in_eager_is_the_same_program(device):
    start = time.monotonic()
    text = command("train_digits/train_digits", *DIGITS, "--epochs", 1, "--device", device, "--expect", 1.01, status=1)
    assert "calls recorded" not in text and "accuracy on 359 test images: " in text and time.monotonic() - start < 120
    assert "expected bytes in IDX format" in command("train_digits/train_digits", __file__, DIGITS[1], status=2)


class OnDevice(torch.nn.Module):
    """Takes tensors of the CPU, which a host in C has, and computes on a device."""

    def __init__(self, device):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).to(device)

    def forward(self, x):
        return self.layers(x.to(self.layers[0].weight.device)).cpu()


def test_c_host_runs_a_package(tmp_path, device, ran_there):
    model = OnDevice(device).eval()
    torch.export.save(torch.export.export(model, (torch.randn(4, 6),)), tmp_path / "model.pt2")
    key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"
    (tmp_path / "key.pem").write_text(key)
    public_key = re.search(r"\b[0-9a-f]{64}\b", command("cxxinductor", "compile", tmp_path / "model.pt2", "-o", tmp_path / "model.cxxi", "--sign",
                                                        tmp_path / "key.pem")).group(0)  # fmt: skip
    expected = model((torch.arange(24) / 24).view(4, 6)).sum().item()
    for arguments, trusted in (((tmp_path / "model.cxxi", public_key), True), ((tmp_path / "model.cxxi",), False), ((tmp_path / "model.pt2",), False)):
        text = command("c_host/run_package", *arguments)
        assert abs(float(re.search(r": sum (\S+)$", text, re.MULTILINE).group(1)) - expected) < 1e-4
        assert ("read plan" in text) == trusted
    assert "expected dense f32 tensors of fixed sizes" in command("c_host/run_package", ROOT / "tests/data/pt2/nested.pt2", status=1)


def test_custom_op():
    text = command("custom_op/custom_op")
    assert float(re.search(r"largest difference from eager: (\S+)", text)[1]) < 1e-4
    assert "1 kernels, 1 launches and 0 extern calls" in text
