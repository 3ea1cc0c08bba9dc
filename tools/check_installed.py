"""Uses an installed cxxinductor as its users do: torch.compile, an exported model, the program. Usage: PYTHON tools/check_installed.py, in any folder.

The interpreter's environment is what is checked; nothing of the source tree but one exported model is used.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

import torch

MODEL = Path(__file__).resolve().parent.parent / "tests" / "data" / "pt2" / "mlp.pt2"  # down(relu(up(x))), x: f32[3, 2]


def check_compile():
    assert "cxxinductor" in torch._dynamo.list_backends()
    assert not any(name.startswith("cxxinductor") for name in sys.modules), "found without an import"
    x = torch.randn(5, 33)
    fn = lambda x: torch.softmax(x + 1, -1)  # noqa: E731
    torch.testing.assert_close(torch.compile(fn, backend="cxxinductor")(x), fn(x))
    import cxxinductor

    assert cxxinductor.counters()["graphs"] == 1 and cxxinductor.counters()["aten_fallback"] == 0


def check_load():
    import cxxinductor

    x = torch.randn(3, 2)
    model = cxxinductor.load(MODEL)
    up, bias, down = (model.weight(name) for name in ("up.weight", "up.bias", "down.weight"))
    (found,) = torch.utils._pytree.tree_leaves(model.run(x))
    torch.testing.assert_close(found, torch.relu(x @ up.T + bias) @ down.T)


def check_program():
    program = Path(sysconfig.get_path("scripts")) / "cxxinductor"
    done = subprocess.run([str(program), "verify", str(MODEL)], capture_output=True, text=True)
    assert done.returncode == 0 and "verified" in done.stdout and done.stderr == "", done.stdout + done.stderr


if __name__ == "__main__":
    check_compile()
    check_load()
    check_program()
    import cxxinductor

    print(cxxinductor.__file__)
