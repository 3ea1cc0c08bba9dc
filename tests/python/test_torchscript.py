"""cxxinductor.optimize on scripted and traced modules: right beside eager, in as few compiled parts as control flow on data allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
from children import run_python
from torch import Tensor, nn

import cxxinductor
from cxxinductor import torchscript

LIBRARY = Path(cxxinductor.__file__).parent / "libcxxinductor.so"


def regions(module: torch.jit.ScriptModule) -> int:
    return sum(name.startswith("region_") for name, _ in module.named_children())


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def check_equal(found: Any, expected: Any) -> None:
    assert len(leaves(found)) == len(leaves(expected))
    for a, b in zip(leaves(found), leaves(expected)):
        if isinstance(b, Tensor):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
            assert a.stride() == b.stride()
        else:
            assert a == b


def check(module: nn.Module, *calls: tuple[Any, ...], parts: int, trace: bool = False, compiled: bool = True) -> torch.jit.ScriptModule:
    module.eval()
    scripted = torch.jit.trace(module, calls[0], check_trace=False) if trace else torch.jit.script(module)
    optimized = cxxinductor.optimize(scripted)
    assert regions(optimized) == parts, torchscript.describe(optimized)
    cxxinductor.reset_counters()
    with torch.inference_mode():
        for call in calls:
            check_equal(optimized(*call), module(*call))
    if compiled:
        text = torchscript.describe(optimized)
        assert "not compiled" not in text and "op by op" not in text and "as written" not in text, text
        assert cxxinductor.counters()["eager_fallback"] == cxxinductor.counters()["aten_fallback"] == 0
    return optimized


# Models.


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 8)

    def forward(self, x: Tensor, state: Optional[Tensor] = None) -> Tuple[List[Tensor], Tensor]:
        h = torch.zeros(x.size(1), 8) if state is None else state
        steps: List[Tensor] = []
        for i in range(x.size(0)):
            h = self.cell(x[i], h)
            steps.append(h)
        return steps, h


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Tensor, cache: Optional[Tuple[Tensor, Tensor]]) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        q, k, v = [y.view(b, t, 2, 8).transpose(1, 2) for y in [q, k, v]]
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = torch.softmax(q @ k.transpose(-2, -1) / 8**0.5, -1) @ v
        return x + self.out(y.transpose(1, 2).reshape(b, t, 16)), (k, v)


class Generator(nn.Module):
    """Like GPT: blocks with caches of keys, and a loop that feeds each token back."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(11, 16), nn.Linear(16, 11)
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, tokens: Tensor, steps: int) -> Tensor:
        caches: List[Optional[Tuple[Tensor, Tensor]]] = [None, None]
        fed = tokens
        for _ in range(steps):
            x = self.embed(fed)
            for i, block in enumerate(self.blocks):
                x, made = block(x, caches[i])
                caches[i] = made
            fed = self.head(x[:, -1:]).argmax(-1)
            tokens = torch.cat([tokens, fed], 1)
            if bool((fed == 100).all()):
                break
        return tokens


class Detector(nn.Module):
    """Like the end of a detector: boxes that pass a threshold, sorted, by image."""

    def forward(self, boxes: Tensor, scores: Tensor) -> List[Dict[str, Tensor]]:
        results: List[Dict[str, Tensor]] = []
        size = torch.tensor([32.0, 32.0, 32.0, 32.0])
        for i in range(boxes.size(0)):
            scaled = (boxes[i].sigmoid() * size).clamp(min=0.0, max=31.0)
            probability = scores[i].softmax(-1)[:, 1:].max(-1)[0]
            keep = torch.where(probability > 0.3)[0]
            if keep.numel() > 0:
                order = probability[keep].argsort(descending=True)
                keep = keep[order]
            chosen = scaled[keep]
            results.append({"boxes": chosen, "areas": (chosen[:, 2] - chosen[:, 0]) * (chosen[:, 3] - chosen[:, 1])})
        return results


class Pyramid(nn.Module):
    """Lists of maps, a loop over them from the last, sizes that decide."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList([nn.Conv2d(c, 4, 1) for c in (2, 3)])

    def forward(self, maps: Dict[str, Tensor]) -> Dict[str, Tensor]:
        features = list(maps.values())
        last = self.inner[1](features[1])
        results: List[Tensor] = [last]
        for i, layer in enumerate(self.inner):
            if i == 0:
                y = layer(features[i])
                last = y + torch.nn.functional.interpolate(last, size=y.shape[-2:], mode="nearest")
                results.insert(0, last)
        if results[0].size(0) > 2:
            results.append(results[0].flatten(1).relu())
        return {str(i): result for i, result in enumerate(results)}


class Writes(nn.Module):
    def forward(self, x: Tensor, flag: bool, scale: float) -> Tuple[Tensor, Tensor, int, Tuple[str, Optional[Tensor]]]:
        y = x.clone()
        y[0].mul_(scale)
        parts = [part.relu_() for part in y.chunk(2, -1)]
        parts.append(parts[0] + 1)
        while len(parts) < 5:
            parts.append(parts[-1] * 2)
        z = torch.cat(parts, -1)
        if flag:
            z = z.neg()
        assert z.dim() == 2
        return z, y, z.size(1) * 2, ("name", None)


def test_recurrent() -> None:
    x = torch.randn(5, 3, 8)
    check(Recurrent(), (x,), (x[:3],), (x, torch.randn(3, 8)), parts=1)


def test_traced_sizes() -> None:
    class Fold(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            b, c, h = x.shape
            return x.view(b * (c // 2), -1).softmax(-1).view(b, c, h) + h % 4

    calls = [(torch.randn(b, 4, 6),) for b in (2, 3, 5, 7)]
    check(Fold(), *calls, parts=1, trace=True)


def test_generator() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(0, 11, (2, 4))
    optimized = check(Generator(), (tokens, 3), parts=3)  # around writes to a list from outside the loop
    assert "runs as TorchScript: aten::Bool, prim::Loop" in torchscript.describe(optimized)


def test_detector() -> None:
    torch.manual_seed(0)
    boxes, scores = torch.randn(2, 9, 4), torch.randn(2, 9, 3)
    optimized = check(Detector(), (boxes, scores), (boxes[:, :5], scores[:, :5]), parts=1, compiled=False)
    assert "1 calls ran as written, for they were not compiled" in torchscript.describe(optimized)  # torch.where: then in parts


def test_pyramid() -> None:
    def maps(batch: int) -> tuple[Any, ...]:
        return ({"a": torch.randn(batch, 2, 8, 8), "b": torch.randn(batch, 3, 4, 4)},)

    check(Pyramid(), maps(2), maps(3), maps(5), parts=1)


def test_writes_lists_and_constants() -> None:
    x = torch.randn(4, 8)
    check(Writes(), (x, True, 2.0), (x, False, 2.0), (torch.randn(3, 8), False, 2.0), parts=2)  # around `while`


def test_attention_module() -> None:
    torch.manual_seed(0)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.attention(x, x, x, need_weights=False)[0].relu()

    check(Attention(), (torch.randn(2, 5, 16),), (torch.randn(2, 6, 16),), (torch.randn(2, 7, 16),), parts=1)


def test_vision_transformer_is_one_region() -> None:
    """Its layers ask for autocast and grad mode between tensors."""
    vision = pytest.importorskip("torchvision", reason="torchvision is not installed").models.vision_transformer
    torch.manual_seed(0)
    module = vision.VisionTransformer(image_size=32, patch_size=16, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32)
    nn.init.normal_(module.heads.head.weight)
    check(module, (torch.randn(2, 3, 32, 32),), (torch.randn(3, 3, 32, 32),), parts=1)


def test_a_size_that_fits_one_number_alone() -> None:
    """The symbol of a changing size is a number again where the code compares it with one."""

    class Joined(nn.Module):
        def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
            return torch.cat([x.relu(), y + 1], 0) * z

    sizes = [(2, 4), (3, 3), (1, 5)]
    check(Joined(), *((torch.randn(a, 3), torch.randn(b, 3), torch.randn(6, 3)) for a, b in sizes), parts=1)


def test_lstm_cells_of_a_stack() -> None:
    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells = nn.ModuleList([nn.LSTMCell(8, 8), nn.LSTMCell(8, 8)])

        def forward(self, x: Tensor, states: List[Tuple[Tensor, Tensor]]) -> Tuple[Tensor, List[Tuple[Tensor, Tensor]]]:
            made: List[Tuple[Tensor, Tensor]] = []
            for i, cell in enumerate(self.cells):
                h, c = cell(x, states[i])
                made.append((h, c))
                x = h
            return x, made

    states = [(torch.randn(3, 8), torch.randn(3, 8)) for _ in range(2)]
    check(Stack(), (torch.randn(3, 8), states), parts=1)


class ComparesShapes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 2 + 1 if x.shape == [4, 6] else x * 3 + 2
        return y.exp() if [x.size(0), 6] != [5, x.size(1)] else y.sin() + 1


class WritesSizes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 2 + 1 if f"{x.size(0)}" == "4" else x * 3 + 2
        return y.exp() if str(x.size(0)) != "5" else y.sin() + 1


class KeepsSizes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        sizes = [x.size(0), x.size(1)]
        sizes.append(sizes[0] * 2)
        return x.exp().view(sizes[::-1][1:]) + sizes[-1]


@pytest.mark.parametrize("module", [ComparesShapes, WritesSizes, KeepsSizes])
def test_code_that_looks_at_sizes(module: Any) -> None:
    """After two sizes they are symbols, of which comparisons and texts need the number."""
    scripted = torch.jit.script(module().eval())
    optimized = cxxinductor.optimize(scripted)
    with torch.inference_mode():
        for rows in (2, 3, 6, 4, 5, 7):
            x = torch.randn(rows, 6)
            check_equal(optimized(x), scripted(x))


def test_traced_sizes_below_zero() -> None:
    class Offset(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            n = x.shape[0] - 10
            return x * (n // 3) + n % 3 + torch.div(n, 4, rounding_mode="trunc") if isinstance(n, Tensor) else x * (n // 3) + n % 3

    module = Offset()
    traced = torch.jit.trace(module, torch.ones(2, 6), check_trace=False)
    optimized = cxxinductor.optimize(traced.eval())
    with torch.inference_mode():
        for rows in (2, 3, 5, 4, 12):
            x = torch.ones(rows, 6)
            check_equal(optimized(x), traced(x))


def test_complex_arguments_are_told_apart_by_their_signs() -> None:
    class Inverse(nn.Module):
        def forward(self, x: Tensor, c: complex) -> Tensor:
            return 1.0 / torch.view_as_real(x * c)

    scripted = torch.jit.script(Inverse().eval())
    optimized = cxxinductor.optimize(scripted)
    x = torch.ones(1, dtype=torch.complex64)
    with torch.inference_mode():
        for c in (complex(0.0, 0.0), complex(-0.0, 0.0)):
            assert torch.equal(optimized(x, c), scripted(x, c))


def test_an_optimized_module_is_not_optimized_again() -> None:
    optimized = cxxinductor.optimize(torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()))
    with pytest.raises(cxxinductor.UserError, match="found an optimized one"):
        cxxinductor.optimize(optimized)


# Containers of Python are copied on their way in: what was written is given back.


class DictsInAList(nn.Module):
    """As the last step of torchvision's Mask R-CNN."""

    def forward(self, values: List[Dict[str, Tensor]]) -> Tuple[Tensor, List[Dict[str, Tensor]]]:
        for i, held in enumerate(values):
            boxes = held["a"] * 2 + 1
            values[i]["a"] = boxes
            if "b" in held:
                values[i]["b"] = torch.nn.functional.pad(held["b"], (1, 1)) * boxes.sum()
        return values[0]["a"].exp(), values


class ListsInADict(nn.Module):
    def forward(self, values: Dict[str, List[Tensor]]) -> Tuple[Tensor, Dict[str, List[Tensor]]]:
        lists = values["a"]
        lists.append(lists[0] * 2 + 1)
        values["b"][0] = lists[1].sin() + 1
        return values["b"][0].cos() * lists[-1], values


class ListInATuple(nn.Module):
    def forward(self, values: Tuple[List[Tensor], Tensor]) -> Tuple[Tensor, Tuple[List[Tensor], Tensor]]:
        held, x = values
        held.append(x * 2 + 1)
        return (held[0] + held[1]).exp(), values


class ListsInLists(nn.Module):
    def forward(self, values: List[List[Tensor]]) -> Tuple[Tensor, List[List[Tensor]]]:
        first = values[0]
        made = [first[0] * 2 + 1, first[0].exp()]
        values.append(made)
        values[1].append(made[1] * 3 + 1)
        first[0] = values[1][0].cos() + values[-1][1]
        return first[0].sin() + 1, values


class MaybeAList(nn.Module):
    def forward(self, values: List[Optional[List[Tensor]]]) -> Tuple[Tensor, List[Optional[List[Tensor]]]]:
        held = values[0]
        assert held is not None
        held[0] = held[0] * 2 + 1
        return held[0].exp() + 1, values


@pytest.mark.parametrize(
    ("module", "make"),
    [
        (DictsInAList, lambda: [{"a": torch.ones(3, 4), "b": torch.ones(2, 5)}, {"a": torch.ones(2, 4)}]),
        (ListsInADict, lambda: {"a": [torch.ones(3)], "b": [torch.ones(3), torch.zeros(3)]}),
        (ListInATuple, lambda: ([torch.ones(3)], torch.full((3,), 0.5))),
        (ListsInLists, lambda: [[torch.ones(3)], [torch.zeros(3)]]),
        (MaybeAList, lambda: [[torch.ones(3)], None]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_writes_to_containers_inside_arguments(module: Any, make: Any) -> None:
    scripted = torch.jit.script(module().eval())
    optimized = cxxinductor.optimize(scripted)
    with torch.inference_mode():
        for _ in range(3):
            check_equal(optimized(make()), scripted(make()))


# What is not plain inference.


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 2:
            raise ValueError("expected a matrix")
        return torch.softmax(self.linear(x).relu() + 1, -1)

    @torch.jit.export
    def score(self, x: Tensor, weight: Optional[Tensor] = None) -> Tensor:
        y = torch.tanh(self.linear(x)) * 2
        return y.sum(-1) if weight is None else (y * weight).sum(-1)


def test_methods_beside_forward() -> None:
    module = Small().eval()
    optimized = cxxinductor.optimize(torch.jit.script(module))
    x = torch.randn(3, 8)
    with torch.inference_mode():
        check_equal(optimized(x), module(x))
        check_equal(optimized.score(x), module.score(x))
        check_equal(optimized.score(x, x), module.score(x, x))
    assert regions(optimized) == 2


def test_gradients_and_autocast_run_as_written() -> None:
    module = Small().eval()
    optimized = cxxinductor.optimize(torch.jit.script(module))
    a, b = (torch.ones(3, 8, requires_grad=True) for _ in range(2))
    cxxinductor.reset_counters()
    optimized(a).square().sum().backward()
    module(b).square().sum().backward()
    torch.testing.assert_close(a.grad, b.grad)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        assert optimized(torch.ones(3, 8)).dtype == module(torch.ones(3, 8)).dtype
    text = torchscript.describe(optimized)
    assert "1 calls ran as written, for arguments require gradients" in text
    assert "1 calls ran as written, for autocast is on" in text
    assert cxxinductor.counters()["eager_fallback"] == 2


def test_the_ops_in_a_kernel_are_named() -> None:
    optimized = cxxinductor.optimize(torch.jit.script(nn.Sequential(nn.GELU(), nn.Softmax(-1)).eval()))
    with torch.no_grad():
        optimized(torch.randn(4, 8))
    text = torchscript.describe(optimized)
    assert "    fuses aten.gelu.default, aten._softmax.default\n" in text and "in another order than eager's: aten._softmax.default\n" in text, text


def test_errors_are_those_of_the_code() -> None:
    optimized = cxxinductor.optimize(torch.jit.script(Small().eval()))
    with torch.inference_mode():
        with pytest.raises(torch.jit.Error, match="expected a matrix"):
            optimized(torch.randn(8))
        with pytest.raises(RuntimeError):
            optimized(torch.randn(3, 9))
        assert optimized(torch.randn(3, 8)).shape == (3, 8)


def test_training_mode_is_refused() -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    module.eval()
    module[1].train()
    with pytest.raises(cxxinductor.UserError, match="found 1 in training mode"):
        cxxinductor.optimize(torch.jit.script(module))


def exported() -> torch.export.ExportedProgram:
    return torch.export.export(nn.Linear(2, 2).eval(), (torch.ones(1, 2),))


@pytest.mark.parametrize("model, found", [(lambda: nn.Linear(2, 2).eval(), "Linear"), (exported, "ExportedProgram"), (lambda: None, "NoneType")])
def test_only_torchscript_is_taken(model: Any, found: str) -> None:
    with pytest.raises(cxxinductor.UserError, match=f"optimize: expected a ScriptModule, from torch.jit.script or torch.jit.trace, found {found}"):
        cxxinductor.optimize(model())
    with pytest.raises(cxxinductor.UserError, match=f"describe: expected a ScriptModule, from optimize, found {found}"):
        torchscript.describe(model())


# Where a region cannot be compiled for some arguments, it is split there.


def test_a_failing_op_splits_its_region() -> None:
    class Counts(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = torch.relu(x * 2) + 1
            chosen = torch.where(y.sum(-1) > 6)[0]  # as many as the elements say
            return torch.tanh(y[chosen] + 1) * 2

    module = Counts().eval()
    optimized = cxxinductor.optimize(torch.jit.script(module))
    with torch.inference_mode():
        for _ in range(3):
            x = torch.randn(4, 4)
            check_equal(optimized(x), module(x))
    text = torchscript.describe(optimized)
    assert "region_0_0" in text, text
    assert "1 calls ran as written, for they were not compiled" in text


# Programs that only load the library.


def test_programs_that_only_load_the_library_opt_in() -> None:
    code = f"""
    import torch
    torch.ops.load_library({str(LIBRARY)!r})
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.Softmax(-1)).eval()
    scripted = torch.jit.script(layer)
    with torch.no_grad():
        for rows in (3, 3, 3, 3, 5, 7, 9):
            x = torch.randn(rows, 8)
            torch.testing.assert_close(scripted(x), layer(x))
        x = torch.randn(2, 3, 8)
        torch.testing.assert_close(scripted(x), layer(x))
    print("region_group" in str(torch.jit.last_executed_optimized_graph()))
    x = torch.randn(3, 8, requires_grad=True)
    scripted(x).square().sum().backward()
    y = x.detach().clone().requires_grad_()
    layer(y).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    """
    for wanted in ("1", "0"):
        done = run_python(code, environment={"CXXINDUCTOR_JIT": wanted})
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == str(wanted == "1")


def test_threads_share_an_optimized_module() -> None:
    from concurrent.futures import ThreadPoolExecutor

    module = Writes().eval()
    optimized = cxxinductor.optimize(torch.jit.script(module))

    def call(i: int) -> None:
        with torch.inference_mode():
            x = torch.randn(2 + i % 5, 8)
            check_equal(optimized(x, i % 2 == 0, 2.0), module(x, i % 2 == 0, 2.0))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, range(24)))


class KeepsFormat(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        y = x * 2
        return y.clone(), torch.cat([y, x], 1), torch.nn.functional.avg_pool2d(y, 1)


@pytest.mark.parametrize("channels, size", [(1, (4, 5)), (3, (1, 1))])
def test_a_dimension_of_size_1_has_the_format_of_its_strides(channels: int, size: tuple[int, int]) -> None:
    inputs = [torch.randn(rows, channels, *size) for rows in (2, 3, 4, 5)]
    calls = [(x.contiguous(memory_format=kind),) for x in inputs for kind in (torch.contiguous_format, torch.channels_last)]
    calls += [(torch.empty_strided(x.shape, torch.empty(x.shape, memory_format=torch.channels_last).stride()).copy_(x),) for x in inputs]
    optimized = check(KeepsFormat(), *calls, parts=1)
    assert torchscript.describe(optimized).count("extern calls per call") <= 6, torchscript.describe(optimized)
