"""Makes a failing program small: fewer steps, outputs, inputs and sizes, as long as it fails."""

from __future__ import annotations

import dataclasses
import re
import time
from typing import Callable, Iterator

from .program import Input, Program
from .run import is_telling


def without_step(program: Program, position: int) -> Program | None:
    """Less that step and all that needs its results; None where nothing stays."""
    gone = set(program.steps[position].results)
    steps = list(program.steps[:position])
    for step in program.steps[position + 1 :]:
        if gone & set(step.operands):
            gone |= set(step.results)
        else:
            steps.append(step)
    outputs = tuple(name for name in program.outputs if name not in gone)
    if not outputs:
        made = [name for step in steps for name in step.results] or [x.name for x in program.inputs]
        outputs = tuple(made[-1:])
    return _tidy(dataclasses.replace(program, steps=tuple(steps), outputs=outputs)) if outputs else None


def _bypassed(program: Program, position: int) -> Iterator[Program]:
    """The result of that step replaced by one of its operands."""
    step = program.steps[position]
    if len(step.results) != 1:
        return
    (result,) = step.results
    for operand in dict.fromkeys(step.operands):
        rename = lambda text: re.sub(rf"\b{result}\b", operand, text)  # noqa: E731
        later = tuple(
            dataclasses.replace(s, text=rename(s.text), operands=tuple(operand if o == result else o for o in s.operands))
            for s in program.steps[position + 1 :]
        )
        outputs = tuple(dict.fromkeys(operand if o == result else o for o in program.outputs))
        yield _tidy(dataclasses.replace(program, steps=program.steps[:position] + later, outputs=outputs))


def _tidy(program: Program) -> Program:
    """Without inputs that nothing names."""
    text = program.body().split("\n", 1)[1]
    needed: list[Input] = []
    for x in reversed(program.inputs):
        if re.search(rf"\b{x.name}\b", text + " ".join(other.text for other in needed)):
            needed.insert(0, x)
    return dataclasses.replace(program, inputs=tuple(needed))


def _smaller(program: Program) -> Iterator[Program]:
    for position in reversed(range(len(program.steps))):
        smaller = without_step(program, position)
        if smaller is not None:
            yield smaller
        yield from _bypassed(program, position)
    if len(program.outputs) > 1:
        for position in range(len(program.outputs)):
            yield _tidy(dataclasses.replace(program, outputs=program.outputs[:position] + program.outputs[position + 1 :]))
    for position, x in enumerate(program.inputs):
        plain = [dataclasses.replace(x, leaf=False)] if x.leaf else []
        if "numbers" in x.text and x.text != "numbers(*{shape})":
            plain.append(dataclasses.replace(x, text="numbers(*{shape})"))
        for other in plain:
            yield dataclasses.replace(program, inputs=(*program.inputs[:position], other, *program.inputs[position + 1 :]))
    for size in sorted({n for x in program.inputs for n in x.shapes[0]}, reverse=True):
        for less in (2, 3, 4):
            if less < size and program.variants == 1:
                swap = lambda x: dataclasses.replace(x, shapes=(tuple(less if n == size else n for n in x.shapes[0]),))  # noqa: E731
                yield dataclasses.replace(program, inputs=tuple(swap(x) for x in program.inputs))
    if program.variants > 1:
        for variant in range(1, program.variants):
            drop = lambda x: dataclasses.replace(x, shapes=x.shapes[:variant] + x.shapes[variant + 1 :])  # noqa: E731
            if program.variants > 2:
                yield dataclasses.replace(program, variants=program.variants - 1, inputs=tuple(drop(x) for x in program.inputs))
        first = lambda x: dataclasses.replace(x, shapes=x.shapes[:1])  # noqa: E731
        yield dataclasses.replace(program, variants=1, inputs=tuple(first(x) for x in program.inputs))


def shrink(program: Program, fails: Callable[[Program], bool], seconds: float = 60.0) -> Program:
    """The smallest program found in that time that still fails and is sound in eager."""
    end = time.monotonic() + seconds
    found = True
    while found:
        found = False
        for smaller in _smaller(program):
            if time.monotonic() > end:
                return program
            if is_telling(smaller) and fails(smaller):
                program, found = smaller, True
                break
    return program
