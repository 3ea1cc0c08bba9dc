"""Random programs of every kind: new seeds each run; CXXINDUCTOR_FUZZ_SEED repeats one, FUZZ_PROGRAMS says how many of a kind."""

import os
import random

import pytest
from fuzz.generate import KINDS, generate
from fuzz.report import failure

PROGRAMS = int(os.environ.get("FUZZ_PROGRAMS", 10))
FIRST_SEED = int(os.environ.get("CXXINDUCTOR_FUZZ_SEED", random.SystemRandom().randrange(10**9)))


# The seed is in the test's name, so that a crash tells it too.
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + PROGRAMS))
@pytest.mark.parametrize("kind", KINDS)
def test_random_program(kind, seed, device):
    if report := failure(generate(seed, kind), device):
        pytest.fail(f"CXXINDUCTOR_FUZZ_SEED={seed} FUZZ_PROGRAMS=1: {report}", pytrace=False)
