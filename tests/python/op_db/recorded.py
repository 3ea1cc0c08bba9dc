"""torch's operators on the recorded device against eager on the CPU that backs it: `python -m op_db.recorded --operators 'nn.*'`.

Each sample is called, with gradients where there are any. Recordings run through ATen unless --tier says otherwise: what is compared is
what the device does (metadata, aliases, writes, errors); kernels have sweeps of their own. --errors: calls that eager refuses.
--through-aten prints the ops that could not be recorded, and the operators that call them.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import fnmatch
import functools
import json
import os
import queue
import sys
import time
from typing import Any, Callable, Iterator, Sequence

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

import cxxinductor

from . import worker
from .calls import Call, calls, dtypes, forms, name_of, operators
from .program import Program
from .run import different, outcome

DEVICE = "cxxi"
DTYPES = (torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64)


def register(tier: str = "aten") -> None:
    cxxinductor.register_device(DEVICE, backing="cpu", options={"tier": tier})
    set_rng_state = torch.set_rng_state

    # The CPU's own generator does not know what is recorded; some of op_db's functions set its state.
    def after_recorded(state: torch.Tensor) -> None:
        cxxinductor.mark_step()
        set_rng_state(state)

    torch.set_rng_state = after_recorded


# ---- One call ----------------------------------------------------------------------------------------------------------
def on_device(tree: Any) -> Any:
    """The same arguments there: tensors share storages as they do here."""
    storages: dict[int, torch.Tensor] = {}

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return moved(value)
        if value == "cpu" or (isinstance(value, torch.device) and value.type == "cpu"):
            return torch.device(DEVICE)
        return value

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        memory = tensor.untyped_storage()
        if memory._cdata not in storages:
            plain = torch.empty(0, dtype=tensor.dtype).set_(memory, 0, (memory.nbytes() // tensor.element_size(),))
            storages[memory._cdata] = plain.to(DEVICE)
        there = storages[memory._cdata].detach().view(tensor.dtype)
        there = there.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        return there.requires_grad_(tensor.requires_grad)

    return tree_map(move, tree)


def returned(tree: Any) -> Any:
    return tree_map(lambda x: x.detach().cpu() if isinstance(x, torch.Tensor) else x, tree)


def on_both(call: Call) -> str:
    """What differs, or ""."""
    program = Program((call,))

    def run(*arguments: torch.Tensor, there: bool) -> Any:
        leaves, structure = tree_flatten(call.arguments)
        given = iter(arguments)
        args, kwargs = structure.unflatten([next(given) if isinstance(x, torch.Tensor) else (on_device(x) if there else x) for x in leaves])
        return call.function(*args, **kwargs)

    here = functools.partial(run, there=False)
    expected = outcome(program, here, program.arguments())
    try:
        found = outcome(program, functools.partial(run, there=True), on_device(program.arguments()))
        found = dataclasses.replace(found, **{name: returned(getattr(found, name)) for name in ("outputs", "memory", "gradients")})
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error).strip()[:300]}"
    devices = found.facts.pop("devices")
    expected.facts.pop("devices")
    if program.arguments() and any(device.type != DEVICE for device in devices):
        return f"results on {devices}"
    return different(program, here, found, expected)


def error_of(run: Callable[[], Any]) -> str:
    try:
        for value in tree_leaves(run()):
            returned(value)
    except Exception as error:
        return type(error).__name__
    return ""


def wrong_errors(name: str) -> Iterator[str]:
    op = operators()[name]
    if op.error_inputs_func is None:
        return

    def call(arguments: Any) -> Any:
        return op(arguments[0], *arguments[1], **arguments[2])

    for number, sample in enumerate(op.error_inputs("cpu")):
        arguments = (sample.sample_input.input, sample.sample_input.args, sample.sample_input.kwargs)
        expected = error_of(lambda: call(arguments))
        found = error_of(lambda: call(on_device(arguments)))
        if found != expected:
            yield f"error {number}: {found or 'none'}, in eager {expected}: {sample.error_regex[:100]}"


# ---- One operator, in a process ----------------------------------------------------------------------------------------
def results(unit: Sequence[Any], samples: int, errors: bool) -> Iterator[dict[str, Any]]:
    name, dtype, form = unit
    start = time.monotonic()
    if errors:
        for text in wrong_errors(name):
            yield {"operator": name, "dtype": "", "form": "", "sample": "", "text": text}
    for call in [] if errors else calls(operators()[name], getattr(torch, dtype), "cpu", form, samples):
        before = cxxinductor.device_counters()["through_aten"]
        text = on_both(call)
        through = cxxinductor.device_counters()["through_aten"] - before
        yield {"operator": name, "dtype": dtype, "form": form, "sample": call.sample, "text": text, "through_aten": through}
    ops = [line.split()[2] for line in cxxinductor.explain_device().splitlines() if line.startswith("through ATen: ")]
    yield {"done": list(unit), "seconds": round(time.monotonic() - start, 2), "ops": ops}


def units(patterns: Sequence[str], chosen: Sequence[torch.dtype], chosen_forms: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for name, op in operators().items():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            continue
        for dtype in [d for d in chosen if d in op.supported_dtypes("cpu")]:
            for form in forms(op, dtype, "cpu"):
                if form in chosen_forms:
                    yield name, str(dtype).removeprefix("torch."), form


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", default="*")
    parser.add_argument("--dtypes", default=",".join(str(d).removeprefix("torch.") for d in DTYPES))
    parser.add_argument("--forms", default="plain,inplace,backward,strided")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--tier", default="aten")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--through-aten", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        register(given.tier)
        worker.serve(functools.partial(results, samples=given.samples, errors=given.errors))
        return 0
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    patterns = given.operators.split(",")
    chosen = [getattr(torch, name) for name in given.dtypes.split(",")]
    every = [(name, "", "") for name in operators() if any(fnmatch.fnmatch(name, p) for p in patterns)]
    for unit in every if given.errors else units(patterns, chosen, given.forms.split(",")):
        waiting.put(unit)
    found: list[dict[str, Any]] = []

    def tell(result: dict[str, Any]) -> None:
        found.append(result)
        if result.get("text"):
            print(result["operator"], result["dtype"], result["form"], result["sample"], result["text"], sep=" ", flush=True)

    def died(unit: Any, reason: str) -> None:
        tell({"operator": unit[0], "dtype": unit[1], "form": unit[2], "sample": "", "text": reason})

    command = [sys.executable, "-m", "op_db.recorded", "--worker", "--samples", str(given.samples), "--tier", given.tier]
    worker.drive(command + ["--errors"] * given.errors, waiting, tell, died)
    ran = [result for result in found if "text" in result]
    print(f"{len(ran)} calls, {sum(bool(r['text']) for r in ran)} that differ, {sum(bool(r.get('through_aten')) for r in ran)} with ops through ATen")
    if given.through_aten:
        print(json.dumps(sorted({op for result in found for op in result.get("ops", ())}), indent=0))
    return any(result["text"] for result in ran)


if __name__ == "__main__":
    sys.exit(main())
