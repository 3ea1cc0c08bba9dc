"""Autocast, scaled gradients, models of narrow dtypes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from . import program
from .loops import data, gradients, images, labels, perceptron


def device_type(where: str) -> str:
    return torch.device(where).type


def _autocast(where: str, dtype: torch.dtype, make: Any, x: torch.Tensor) -> Any:
    model = make().to(where)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, dtypes = [], []
    for step in range(2):
        optimizer.zero_grad()
        with torch.autocast(device_type(where), dtype=dtype):
            y = model(x.to(where))
            loss = F.cross_entropy(y.float(), labels(len(x), 4, step).to(where))
        dtypes.append(y.dtype)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, [p.dtype for p in model.parameters()], dtypes, list(model.parameters())]


for dtype in (torch.bfloat16, torch.float16):
    name = str(dtype).removeprefix("torch.")
    program(lambda where, dtype=dtype: _autocast(where, dtype, lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), data(6, 8)), name=f"autocast {name}", rtol=0.02, atol=0.01)  # fmt: skip
    program(lambda where, dtype=dtype: _autocast(where, dtype, lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4)), data(2, 3, 6, 6)), name=f"autocast of convolutions {name}", rtol=0.05, atol=0.02)  # fmt: skip


@program
def autocast_is_nested(where: str) -> Any:
    x = data(4, 4).to(where)
    kind = device_type(where)
    with torch.autocast(kind, dtype=torch.bfloat16):
        a = x @ x
        with torch.autocast(kind, enabled=False):
            b = x @ x
        c = (a @ x).float().softmax(-1)
        enabled = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    return [a.dtype, b, c.dtype, enabled, torch.is_autocast_enabled(kind)]


@program(rtol=0.02, atol=0.01)
def a_scaler(where: str) -> Any:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(device_type(where), init_scale=1024.0, growth_interval=2)
    scales, losses = [], []
    for step in range(5):
        optimizer.zero_grad()
        with torch.autocast(device_type(where), dtype=torch.float16):
            loss = F.mse_loss(model(data(4, 8, seed=step).to(where)).float(), data(4, 4, seed=step).to(where))
        scaled = scaler.scale(loss)
        (scaled * float("inf") if step == 2 else scaled).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        losses.append(loss.item())
    return [scales, losses, scaler.state_dict(), list(model.parameters())]


@program(rtol=0.02, atol=0.02)
def weights_in_bfloat16(where: str) -> Any:
    model = perceptron().to(where, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for step in range(2):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data(6, 8).to(where, torch.bfloat16)), labels(6, 4, step).to(where))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, gradients(model), list(model.parameters())]


@program
def weights_in_double(where: str) -> Any:
    model = images().double().to(where)
    loss = model(data(2, 3, 12, 12).double().to(where)).square().sum()
    loss.backward()
    return [loss, gradients(model)]


@program
def half_and_back(where: str) -> Any:
    model = nn.Linear(4, 4).to(where).half()
    kinds = [p.dtype for p in model.parameters()]
    return [kinds, list(model.float().parameters())]
