"""The shrinker leaves what a failure needs, and what it prints is a program that runs."""

import pytest
import torch
from fuzz.generate import KINDS, generate
from fuzz.shrink import shrink


def test_only_the_guilty_step_is_left():
    program = next(p for p in (generate(seed, "inference") for seed in range(200)) if "tanh" in p.body() and len(p.steps) > 4)
    small = shrink(program, lambda p: "tanh" in p.body(), seconds=20)
    assert len(small.steps) <= 3 and sum("tanh" in step.text for step in small.steps) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_program(kind):
    first, second = generate(5, kind), generate(5, kind)
    assert first.source() == second.source()
    compile(first.source(), "source", "exec")
    for a, b in zip(first.arguments(), second.arguments()):
        assert torch.equal(a, b)
