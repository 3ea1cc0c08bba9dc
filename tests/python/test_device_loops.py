"""Training loops, tensors, files and errors on the recorded device, beside eager on the device that backs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import load_programs

PROGRAMS = load_programs()
# Compiled too. Otherwise recordings run op by op: what is compared is the device; kernels have tests of their own.
COMPILED = ("a_perceptron", "convolutions_and_norms", "attention", "dropouts", "views")


class Worker:
    """The device is registered once in a process."""

    def __init__(self, tier: str, backing: str):
        environment = {**os.environ, "CXXINDUCTOR_TIER": tier}
        command = [sys.executable, "-m", "recorded.worker", backing]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent, env=environment
        )

    def check(self, name: str) -> dict[str, int]:
        print(name, file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline() or '{"error": "the process died"}')
        if "error" in answer:
            pytest.fail(answer["error"], pytrace=False)
        return answer["counters"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


def _worker(request, tier: str):
    worker = Worker(tier, request.config.getoption("--device"))
    yield worker
    worker.close()


@pytest.fixture(scope="module")
def op_by_op(request):
    yield from _worker(request, "aten")


@pytest.fixture(scope="module")
def compiled(request):
    yield from _worker(request, "kernels")


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, op_by_op, device):
    if device == "cuda" and PROGRAMS[name].not_on_gpus:
        pytest.skip(PROGRAMS[name].not_on_gpus)
    op_by_op.check(name)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_as_in_eager(name, compiled):
    counters = compiled.check(name)
    assert counters["runs"] > 0 and counters["through_aten"] == 0


OPERATORS = "index*,scatter*,*squeeze,resize_*,t,transpose,view*,as_strided*,conj*,nn.functional.dropout,nn.functional.embedding,nn.functional.scaled*"


@pytest.mark.parametrize("options", [("--dtypes", "float32", "--samples", "1"), ("--errors",)], ids=["results", "errors"])
def test_operators(options, device):
    """`python -m op_db.recorded` runs all."""
    if device != "cpu":
        pytest.skip("samples are the CPU's")
    command = [sys.executable, "-m", "op_db.recorded", "--operators", OPERATORS, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stdout
