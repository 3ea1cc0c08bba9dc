"""C++ and C programs on a machine without Python and compilers: a folder with libc, LibTorch and what `cmake --install` makes, as the root."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
PROGRAMS = [BUILD / "examples" / name for name in ("run_model", "c_host/run_package", "text_generation/text_generation")]
# Of RFC 8032, section 7.1, test 1.
KEY = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"
PUBLIC_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
NAMESPACE = ["unshare", "--map-root-user", "--mount"]
THROUGH_ATEN = "runs op by op through ATen"


def may_change_root():
    try:
        return subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = [
    pytest.mark.skipif(not all(program.exists() for program in PROGRAMS), reason="built by `make test`"),
    pytest.mark.skipif(not may_change_root(), reason="this machine does not let us make a mount namespace (unshare)"),
]


def system_libraries():
    """The loader and what programs of C++ need besides: {name: file}."""
    listed = subprocess.run(["ldd", str(BUILD / "lib" / "libcxxinductor.so")], capture_output=True, text=True, check=True).stdout
    names = r"(?:libc|libm|libdl|librt|libutil|libpthread|libstdc\+\+|libgcc_s)\.so\.\d+"
    found = dict(re.findall(rf"^\s*({names}) => (\S+)", listed, re.MULTILINE))
    assert {"libc.so.6", "libstdc++.so.6", "libgcc_s.so.1"} <= set(found)
    return found, re.search(r"^\s*(/\S*ld-linux\S*)", listed, re.MULTILINE).group(1)


class Container:
    def __init__(self, folder):
        self.root = folder / "root"
        self.app = self.root / "app"
        for name in ("app", "proc", "dev", "opt/libtorch/lib", "opt/nvidia", "lib64", "lib/x86_64-linux-gnu"):
            (self.root / name).mkdir(parents=True)
        libraries, loader = system_libraries()
        shutil.copy(loader, self.root / loader.lstrip("/"))
        for name, file in libraries.items():
            shutil.copy(file, self.root / "lib/x86_64-linux-gnu" / name)
        subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(self.root / "opt/cxxinductor")], check=True, capture_output=True)
        for program in PROGRAMS:
            shutil.copy(program, self.app)
        torch_folder = Path(torch.__file__).parent
        self.mounts = {"/proc": "proc", "/dev": "dev", torch_folder / "lib": "opt/libtorch/lib"}
        if (torch_folder.parent / "nvidia").exists():  # where PyTorch's CUDA build looks for its libraries
            self.mounts[torch_folder.parent / "nvidia"] = "opt/nvidia"

    def run(self, *command, status=0, **environment):
        mounts = " && ".join(f"mount --rbind '{source}' '{self.root / target}'" for source, target in self.mounts.items())
        done = subprocess.run(
            [*NAMESPACE, "sh", "-c", f"{mounts} && cd / && exec chroot '{self.root}' \"$@\"", "sh", *map(str, command)],
            env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/opt/cxxinductor/lib:/opt/libtorch/lib", **environment},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def cxxinductor(self, *arguments, **options):
        return self.run("/opt/cxxinductor/bin/cxxinductor", *arguments, **options)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5), nn.Softmax(-1)).eval()


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    folder = tmp_path_factory.mktemp("container")
    made = Container(folder)
    with torch.no_grad():
        torch.export.save(torch.export.export(network(), (torch.randn(4, 6),)), made.app / "model.pt2")
        batch = {0: Dim("b", min=1, max=64)}
        torch.export.save(torch.export.export(network(), (torch.randn(4, 6),), dynamic_shapes=(batch,)), made.app / "dynamic.pt2")
    (folder / "key.pem").write_text(KEY)
    subprocess.run(
        [str(BUILD / "bin" / "cxxinductor"), "compile", str(made.app / "model.pt2"), "-o", str(made.app / "model.cxxi"), "--sign", str(folder / "key.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    return made


def expected_sum():
    """Of what run_package gives the model."""
    with torch.no_grad():
        return network()((torch.arange(24) / 24).view(4, 6)).sum().item()


def printed_sum(done):
    return float(re.search(r"^output f32\[4, 5\] on cpu: sum (\S+)$", done.stdout, re.MULTILINE).group(1))


def test_there_is_neither_python_nor_a_compiler(container):
    found = {path.name for path in container.root.rglob("*") if path.is_file() and os.access(path, os.X_OK)}
    programs = {name for name in found if ".so" not in name}
    assert programs == {"cxxinductor", "run_model", "run_package", "text_generation"}


def test_a_trusted_package_runs_its_code(container):
    done = container.run("/app/run_package", "/app/model.cxxi", PUBLIC_KEY)
    assert abs(printed_sum(done) - expected_sum()) < 1e-5
    assert "read plan" in done.stdout and THROUGH_ATEN not in done.stdout and done.stderr == ""


def test_a_package_without_trust_runs_through_aten(container):
    done = container.run("/app/run_package", "/app/model.cxxi")
    assert abs(printed_sum(done) - expected_sum()) < 1e-5
    assert "read plan" not in done.stdout and done.stderr.count(THROUGH_ATEN) == 1


def test_an_exported_model_runs_through_aten_and_says_so_once(container):
    x = torch.randn(9, 6)
    torch.save([x], container.app / "inputs.pt")
    done = container.run("/app/run_model", "/app/dynamic.pt2", "/app/inputs.pt", "/app/outputs.pt")
    assert done.stderr.count(THROUGH_ATEN) == 1 and "compiler" in done.stderr
    with torch.no_grad():
        torch.testing.assert_close(torch.load(container.app / "outputs.pt")[0], network()(x))


def test_many_calls_say_so_once(container):
    sys.path.insert(0, str(ROOT / "examples" / "text_generation"))
    try:
        from export import export, random_model
    finally:
        sys.path.pop(0)
    torch.export.save(export(random_model()), container.app / "decoder.pt2")
    done = container.run("/app/text_generation", "/app/decoder.pt2", "--tokens", "20")
    assert done.stderr.count(THROUGH_ATEN) == 1 and len(done.stdout.splitlines()[0].split()) == 20


def test_the_program(container):
    assert container.cxxinductor("--version").stdout.startswith("cxxinductor ")
    assert "input: f32[4, 6]" in container.cxxinductor("inspect", "/app/model.pt2").stdout
    verified = container.cxxinductor("verify", "/app/model.pt2")
    assert "verified" in verified.stdout and "aten_fallback 1" in verified.stdout and verified.stderr.count(THROUGH_ATEN) == 1
    trusted = {"CXXINDUCTOR_TRUSTED_KEYS": PUBLIC_KEY}
    verified = container.cxxinductor("verify", "/app/model.cxxi", **trusted)
    assert "verified" in verified.stdout and "aten_fallback 0" in verified.stdout and verified.stderr == ""
    assert "compiled" in container.cxxinductor("bench", "/app/model.cxxi", "--samples", 3, **trusted).stdout
    assert "compiler" in container.cxxinductor("explain", "/app/model.pt2").stdout
