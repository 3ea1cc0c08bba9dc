"""The recorded device from Python. It is registered once in a process, so each test is a program of its own."""

import os
import subprocess
import sys
import textwrap


def run(program: str) -> str:
    lines = "import torch, cxxinductor\nfrom torch import nn\n" + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


TRAIN = """
def train(make, where, steps=4):
    torch.manual_seed(0)
    model = make().to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    losses = []
    for step in range(steps):
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(step)).to(where)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses
"""


def test_modules_train_as_in_eager():
    run(
        TRAIN
        + """
device = cxxinductor.register_device(backing="cpu")
assert str(device) == "cxxi" and torch.ones(2, device="cxxi:1").is_cxxi
for make in (
    lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 2)),
    lambda: nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.Softmax(-1), nn.Linear(16, 2)),
):
    expected, found = train(make, "cpu"), train(make, "cxxi")
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-5, atol=1e-6)
assert cxxinductor.device_counters()["through_aten"] == 0, cxxinductor.explain_device()
"""
    )


def test_values_printing_and_autocast():
    out = run(
        """
cxxinductor.register_device("lazy", backing="cpu")
x = torch.arange(6.0).reshape(2, 3).to("lazy")
print((x + 1)[1])
with torch.autocast("lazy", dtype=torch.bfloat16):
    assert (x @ x.T).dtype == torch.bfloat16
assert (x > 2).sum().item() == 3 and x.tolist() == [[0, 1, 2], [3, 4, 5]]
assert torch.lazy.device_count() == 2
torch.lazy.synchronize()
"""
    )
    assert "[4., 5., 6.]" in out and "lazy:0" in out


def test_the_slot_of_devices_is_taken():
    run(
        """
torch.utils.rename_privateuse1_backend("other")
try:
    cxxinductor.register_device()
except cxxinductor.UserError as error:
    assert "'other' has taken it" in str(error), error
else:
    raise AssertionError
"""
    )
