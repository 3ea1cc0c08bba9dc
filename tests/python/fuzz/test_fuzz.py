"""Random programs of every kind: the same in each run, so that a change fails for its own sake.

CXXINDUCTOR_FUZZ_SEED is a number to repeat, or "random" for programs that nobody has seen yet; FUZZ_PROGRAMS says how many of a kind.
"""

import os
import random

import pytest
from fuzz.generate import KINDS, generate
from fuzz.report import failure

PROGRAMS = int(os.environ.get("FUZZ_PROGRAMS", 3))
GIVEN = os.environ.get("CXXINDUCTOR_FUZZ_SEED", "20261121")
FIRST_SEED = random.SystemRandom().randrange(10**9) if GIVEN == "random" else int(GIVEN)


# The seed is in the test's name, so that a crash tells it too.
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + PROGRAMS))
@pytest.mark.parametrize("kind", KINDS)
def test_random_program(kind, seed, device):
    if report := failure(generate(seed, kind), device):
        pytest.fail(f"CXXINDUCTOR_FUZZ_SEED={seed} FUZZ_PROGRAMS=1: {report}", pytrace=False)
