"""Files, state dictionaries, storages."""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch
from torch import nn

from . import program
from .loops import data, images


def saved(value: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


@program
def tensors_are_saved(where: str) -> Any:
    x = data(4, 6).to(where)
    state = {"x": x, "view": x[1:3], "transposed": x.t(), "half": x.half(), "flag": x > 0, "empty": x[:0], "scalar": x.sum(), "leaf": nn.Parameter(x[0].clone())}
    file = saved(state)
    back = torch.load(file)
    file.seek(0)
    on_cpu = torch.load(file, map_location="cpu")
    file.seek(0)
    renamed = torch.load(file, map_location={f"{where}:0": where, "cpu": where})
    file.seek(0)
    full = torch.load(file, weights_only=False, map_location=lambda storage, location: storage)
    assert back["x"].untyped_storage()._cdata == back["view"].untyped_storage()._cdata
    back["view"].zero_()
    return [back, on_cpu, renamed, {name: value.cpu() for name, value in full.items()}, saved(state).getbuffer().nbytes > 0]


@program
def loaded_to_the_device(where: str) -> Any:
    file = saved({"x": data(4, 6), "y": data(2).double()})
    found = torch.load(file, map_location=where)
    file.seek(0)
    return [found, torch.load(file, map_location=torch.device(where))]


@program
def old_files(where: str) -> Any:
    return torch.load(saved({"x": data(4, 6).to(where), "n": 3}, _use_new_zipfile_serialization=False))


@program
def mapped_files(where: str) -> Any:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        torch.save({"x": data(4, 6)}, file.name)
        return torch.load(file.name, mmap=True, map_location=where)


@program
def models_are_saved(where: str) -> Any:
    model = images().to(where)
    optimizer = torch.optim.AdamW(model.parameters())
    model(data(2, 3, 12, 12).to(where)).sum().backward()
    optimizer.step()
    file = saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    other = images().to(where)
    found = torch.load(file)
    missing = other.load_state_dict(found["model"])
    optimizer = torch.optim.AdamW(other.parameters())
    optimizer.load_state_dict(found["optimizer"])
    other(data(2, 3, 12, 12, seed=1).to(where)).sum().backward()
    optimizer.step()
    whole = torch.load(saved(model), weights_only=False)
    assigned = images()
    assigned.load_state_dict(found["model"], assign=True)
    return [str(missing), other.state_dict(), whole.state_dict(), assigned.state_dict(), pickle.loads(pickle.dumps(data(3).to(where)))]


@program
def modules_move(where: str) -> Any:
    model = images().to(where)
    with torch.no_grad():
        first = model.eval()(data(2, 3, 12, 12).to(where))
        back = model.cpu()(data(2, 3, 12, 12))
        again = model.to(where)(data(2, 3, 12, 12).to(where))
    empty = nn.Linear(3, 4, device="meta").to_empty(device=where)
    empty.load_state_dict({"weight": data(4, 3), "bias": data(4)})
    built = nn.Linear(3, 4, device=where, dtype=torch.float64)
    nn.init.kaiming_normal_(built.weight)
    nn.init.orthogonal_(built.weight)
    nn.init.trunc_normal_(built.bias)
    return [first, back, again, empty.state_dict(), built.state_dict()]


@program
def storages(where: str) -> Any:
    x = data(4, 6).to(where)
    y = x[1:]
    same = x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr(), x.data_ptr() == y.data_ptr() - 24, x.data_ptr() == x.clone().data_ptr(), x.data_ptr() != 0
    storage = x.untyped_storage()
    z = torch.empty(0, device=where).set_(storage, 2, (3,), (2,))
    z.add_(1)
    copied = storage.clone()
    w = torch.empty(0, device=where).set_(copied, 0, (24,), (1,))
    x.mul_(2)
    return [same, storage.nbytes(), storage.size(), str(storage.device.type == torch.device(where).type), z, w, x, storage.cpu().tolist()[:8], x.is_set_to(y), torch.UntypedStorage(8, device=where).nbytes()]
