"""cxxinductor.memory_snapshot: what compiled graphs hold between calls."""

import gc

import pytest
import torch
from torch import nn

import cxxinductor


def rows(**wanted):
    return [row for row in cxxinductor.memory_snapshot() if all(row[key] == value for key, value in wanted.items())]


class Casts(nn.Module):
    """A weight that is cast in each call."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(64, 96, bias=False)

    def forward(self, x):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            return self.head(x)


@pytest.fixture
def new_rows():
    """Of graphs that are made in the test: others may still be there."""
    cxxinductor.wait_for_compiles()  # of kernels for sizes at hand, which hold their graph
    torch._dynamo.reset()
    gc.collect()
    before = rows()
    return lambda **wanted: [row for row in rows(**wanted) if row not in before]


def test_what_is_prepared(new_rows, device):
    model, x = Casts().to(device), torch.randn(4, 64, device=device)
    compiled = torch.compile(model, backend="cxxinductor", fullgraph=True, options={"freezing": True})
    with torch.no_grad():
        compiled(x)
        (row,) = new_rows(kind="prepared")
        assert row["bytes"] == 64 * 96 * 2 and row["device"].startswith(device) and row["graph"] and row["name"]
        assert row["origin"].startswith("k") and row["origin"].endswith("__head")
        compiled(x)
        assert new_rows(kind="prepared") == [row]
        model.head.weight.mul_(2)
        compiled(x)
    assert len(new_rows(kind="prepared")) == 1
    del compiled
    torch._dynamo.reset()
    gc.collect()
    # Recordings' memory is shared by all graphs, and the process keeps it.
    assert [row for row in new_rows() if row["kind"] not in ("recording", "scratch")] == []


def test_tensors_of_the_graph(new_rows, device):
    table = torch.randn(32, device=device)

    def fn(x):
        return x + torch.tensor([1.0, 2.0, 4.0], device=device).repeat(32 // 2)[:32] * table

    compiled = torch.compile(fn, backend="cxxinductor")
    torch.testing.assert_close(compiled(torch.ones(32, device=device)), fn(torch.ones(32, device=device)))
    held = new_rows(kind="constant")
    assert len(held) == 1 and held[0]["bytes"] == 12 and held[0]["origin"] == ""


@pytest.mark.gpu
def test_addresses_are_those_of_torchs_snapshot(new_rows, device):
    model, x = Casts().to(device), torch.randn(4, 64, device=device)
    compiled = torch.compile(model, backend="cxxinductor", fullgraph=True, options={"freezing": True})
    torch.cuda.memory._record_memory_history()
    try:
        with torch.no_grad():
            result = compiled(x)
        snapshot = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    (row,) = new_rows(kind="prepared")
    blocks = {block["address"]: block for segment in snapshot["segments"] for block in segment["blocks"]}
    assert blocks[row["address"]]["state"] == "active_allocated" and blocks[row["address"]]["requested_size"] == row["bytes"]
    label = "cxxinductor: graph " + row["graph"]
    made = [event for trace in snapshot["device_traces"] for event in trace if event.get("user_metadata") == label]
    assert any(event["addr"] == result.data_ptr() for event in made), made
    assert torch.cuda.memory._get_memory_metadata() == ""


@pytest.mark.gpu
def test_segments_of_recordings(device):
    model, x = nn.Linear(64, 64).to(device), torch.randn(4, 64, device=device)
    compiled = torch.compile(lambda x: model(x).sort()[0].relu(), backend="cxxinductor", options={"cuda_graphs": "on"})
    with torch.no_grad():
        for _ in range(5):
            compiled(x)
    segments = {segment["address"]: segment["total_size"] for segment in torch.cuda.memory_snapshot()}
    found = rows(kind="recording")
    assert found and all(segments[row["address"]] == row["bytes"] for row in found)


@pytest.mark.gpu
def test_scratch_memory_of_replays(device):
    model, x = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4))).to(device), torch.randn(64, 256, device=device)
    compiled = torch.compile(model, backend="cxxinductor", options={"cuda_graphs": "on"})
    with torch.no_grad():
        for _ in range(5):
            compiled(x)
    found = rows(kind="scratch")
    assert found and all(row["graph"] == row["name"] == "" and 0 < row["bytes"] <= 16 << 20 for row in found)
    blocks = {block["address"]: block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]}
    assert all(blocks[row["address"]]["requested_size"] == row["bytes"] for row in found)
