"""A process that runs programs recorded, and another one that runs them in eager: `python -m recorded.worker BACKING`.

It reads names, a line each, and answers in JSON. On a GPU PyTorch refuses eager's backward passes in a process that has the device.
"""

from __future__ import annotations

import json
import multiprocessing
import pickle
import sys
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

import cxxinductor

from . import Program, load_programs

# In eager cuDNN multiplies f32 in TF32 unless it is told not to, and its choice of algorithms changes the third digit. Both processes read this.
torch.backends.cudnn.allow_tf32 = False

DEVICE = "cxxi"
SEED = 7

Outcome = tuple[list[Any], str, list[Any]]  # values, their structure, and facts of each


def on_cpu(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def outcome(program: Program, where: str) -> Outcome:
    torch.manual_seed(SEED)
    leaves, structure = tree_flatten(program.function(where))
    facts = [(x.requires_grad, x.is_leaf) if isinstance(x, torch.Tensor) else type(x).__name__ for x in leaves]
    return [on_cpu(x) for x in leaves], str(structure), facts


def in_eager(name: str, where: str) -> bytes:
    warnings.simplefilter("ignore")
    return pickle.dumps(outcome(load_programs()[name], where))


def check(program: Program, expected: Outcome) -> dict[str, int]:
    before = cxxinductor.device_counters()
    found = outcome(program, DEVICE)
    assert found[1:] == expected[1:], f"{found[1:]}, in eager {expected[1:]}"
    for i, (a, e) in enumerate(zip(found[0], expected[0], strict=True)):
        if isinstance(e, (torch.Tensor, float)):
            torch.testing.assert_close(a, e, rtol=program.rtol, atol=program.atol, equal_nan=True, msg=lambda text, i=i: f"value {i}: {text}")
        else:
            assert a == e, f"value {i}: {a}, in eager {e}"
    return {key: count - before[key] for key, count in cxxinductor.device_counters().items()}


def main() -> None:
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr  # what a library prints must not come between our lines
    (backing,) = sys.argv[1:]
    programs = load_programs()
    cxxinductor.register_device(DEVICE, backing=backing)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as eager:
        for line in sys.stdin:
            name = line.strip()
            try:
                expected = pickle.loads(eager.submit(in_eager, name, backing).result())
                answer: dict[str, Any] = {"counters": check(programs[name], expected)}
            except Exception:
                answer = {"error": traceback.format_exc()}
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
