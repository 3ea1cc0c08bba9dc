"""Random programs through torch.compile: 50 a run, a new seed each time (CXXINDUCTOR_FUZZ_SEED repeats one); the seed is in the failure."""

import os
import random

import pytest
import torch
from compare import assert_as_good_as_eager, nudged, to_double

PROGRAMS = 50

UNARY = [torch.sin, torch.tanh, torch.sigmoid, torch.relu, torch.neg, torch.abs, torch.nn.functional.gelu, torch.nn.functional.silu,
         lambda x: x * 0.37, lambda x: x + 2, lambda x: x.clamp(-1, 1), lambda x: torch.exp(-x.abs()), lambda x: x.square(),
         lambda x: torch.where(x > 0, x, x * 0.1)]
BINARY = [torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, lambda a, b: a / (b.abs() + 1), lambda a, b: torch.where(a < b, a, b)]
ROWS = [lambda x: torch.softmax(x, -1), lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]), lambda x: x - x.mean(-1, keepdim=True),
        lambda x: x / (x.norm(dim=-1, keepdim=True) + 1), lambda x: torch.log_softmax(x, -1), lambda x: x - x.amax(0, keepdim=True)]
VIEWS = [lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2), lambda x: x.flip(0), lambda x: x.reshape(-1).reshape(x.shape),
         lambda x: torch.cat([x[:1], x[1:]], 0), lambda x: torch.nn.functional.pad(x, (1, 0))[..., 1:],
         lambda x: x.roll(1, -1), lambda x: x[torch.arange(x.shape[0] - 1, -1, -1, device=x.device)]]
ENDS = [lambda x: x, lambda x: x.sum(-1), lambda x: x.mean(0), lambda x: x.amax(-1), lambda x: x.t() * 2, lambda x: x.var(-1), lambda x: x[1:] + 1]


def random_program(rng):
    """A list of steps over a growing list of [rows, columns] values; returns the function of two inputs."""
    steps = []
    values = 2
    for _ in range(rng.randint(3, 14)):
        kind = rng.choice(["unary", "unary", "binary", "binary", "row", "view"])
        table = {"unary": UNARY, "binary": BINARY, "row": ROWS, "view": VIEWS}[kind]
        steps.append((rng.choice(table), [rng.randrange(values) for _ in range(2 if kind == "binary" else 1)]))
        values += 1
    outputs = [(rng.choice(ENDS), rng.randrange(values)) for _ in range(rng.randint(1, 3))] + [(ENDS[0], values - 1)]

    def fn(x, y):
        found = [x, y]
        for step, operands in steps:
            found.append(step(*(found[o] for o in operands)))
        return [end(found[o]) for end, o in outputs]

    return fn


BASE_SEED = int(os.environ.get("CXXINDUCTOR_FUZZ_SEED", random.SystemRandom().randrange(10**9)))


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_random_program(number, device):
    seed = BASE_SEED + number
    rng = random.Random(seed)
    shape = (rng.choice([1, 2, 5, 16, 33]), rng.choice([1, 3, 8, 31, 64, 130]))
    dtype = rng.choice([torch.float32, torch.float32, torch.float64, torch.bfloat16])
    fn = random_program(rng)
    torch.manual_seed(seed)
    inputs = [torch.randn(shape).to(device, dtype) for _ in range(2)]
    try:
        actual = torch.compile(fn, backend="cxxinductor")(*inputs)
        also = [fn(*nudged(inputs, seed + run)) for run in range(4)]
        assert_as_good_as_eager(actual, fn(*inputs), fn(*to_double(inputs)), factor=8.0, also=also)
    except Exception as error:
        raise AssertionError(f"CXXINDUCTOR_FUZZ_SEED={seed} (program 0 of that seed), shape {shape}, {dtype}: {error}") from error
