"""The .pt2 reader: its calls are those of the exported program's FX graph, op by op, and its fixtures are what torch writes."""

import io
import math
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import sympy
import torch
from torch import nn
from torch.export import Dim

import cxxinductor
from cxxinductor import _C

DATA = Path(__file__).parents[1] / "data"
DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
    torch.complex64: "c64",
}
FUNCTIONS = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "min": min, "max": max}


# ---- what the reader made ------------------------------------------------------------------------------------------


def read(program):
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return _C.read_pt2_text(buffer.getvalue())


def sample(name):
    """A value for each symbol: some prime, by its name."""
    return sympy.prime(sum(map(ord, name)) % 50 + 3)


def evaluate(text):
    return eval(text, {**FUNCTIONS, **{name: sample(name) for name in re.findall(r"[a-zA-Z_]\w*", text) if name not in FUNCTIONS}})


def evaluate_list(text):
    return list(evaluate(f"[{text}]"))


def row_major(sizes):
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


TYPE = re.compile(r"%([\w.]+): (?:(none|symfloat|symbool)|symint\((.*?)\)(?=,|$| =)|(\w+)\[(.*?)\](?: strides \[(.*?)\])?(?: offset\((.*?)\))?)")


def types(text):
    """(dtype, sizes, strides) of each declaration, or what else it is."""
    found = []
    for _, other, symint, dtype, sizes, strides, _ in TYPE.findall(text):
        if not dtype:
            found.append(other or "symint")
            continue
        sizes = evaluate_list(sizes)
        found.append((dtype, sizes, evaluate_list(strides) if strides else row_major([max(s, 1) for s in sizes])))
    return found


def calls_read(text):
    """(op, results, operands) of each call."""
    calls = []
    for line in text.splitlines():
        match = re.match(r'  (?:(%.*?) = )?"([\w.:]+)"(?: overload "(\w+)")?\((.*)\)(?: list)?(?: ordered)?(?: from .*)?$', line)
        if match:
            results, op, _, arguments = match.groups()
            arguments = re.sub(r'"(?:[^"\\]|\\.)*"', "", arguments)
            calls.append((op, types(results or ""), re.findall(r"%([\w.]+)", arguments)))
    return calls


# ---- what the FX graph has -----------------------------------------------------------------------------------------


def concrete(size):
    if isinstance(size, int):
        return size
    return int(size.node.expr.xreplace({s: sympy.Integer(sample(str(s))) for s in size.node.expr.free_symbols}))


def fx_type(value):
    if value is None:
        return "none"
    if isinstance(value, torch.Tensor):
        sizes = [concrete(s) for s in value.shape]
        strides = [concrete(s) for s in value.stride()]
        return DTYPES[value.dtype], sizes, strides
    return "symint" if isinstance(value, (int, torch.SymInt)) else "symfloat"


def is_arithmetic(node):
    return not isinstance(node.target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)) or "aten.sym_" in str(node.target)


def calls_of(program):
    calls = []
    for node in program.graph.nodes:
        if node.op != "call_function" or is_arithmetic(node):
            continue
        assert isinstance(node.target, torch._ops.OpOverload), node.target
        value = node.meta.get("val") if node.target._schema.returns else []
        results = [fx_type(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
        tensors = [n.name for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
        name, overload = node.target._schema.name, node.target._schema.overload_name
        calls.append((f"{name}.{overload}" if overload else name, results, tensors))
    return calls


def inputs_of(program):
    values = [n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"]
    return [fx_type(v) for v in values if isinstance(v, (torch.Tensor, torch.SymInt))]


def distinct(names):
    return list(dict.fromkeys(names))


# ---- models --------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)) + x)


class Resnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 7, stride=2, padding=3)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.stem(x)), 3, 2, 1)
        return self.head(nn.functional.adaptive_avg_pool2d(self.blocks(x), 1).flatten(1))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
        self.embed = nn.Embedding(50, 16)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens) + tokens.shape[1]))


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.constant = torch.arange(4.0)
        self.register_buffer("state", torch.zeros(4))

    def forward(self, *args):
        return self.function(self, *args)


def mutated(self, x):
    self.state.add_(x.sum(0))
    self.state.mul_(2)
    x[0] = self.state
    return x * self.constant


def nested(self, inputs):
    return {"sum": [inputs["a"] + inputs["b"]["c"][0]], "none": None, "number": 3}


def sizes(self, x):
    y = x[: x.shape[0] // 2]
    return y.reshape(-1), y.shape[0], x.shape[0] * x.shape[1] + 1, y.expand(3, -1, -1)


def lists(self, x):
    a, *_, b = torch.split(x, 2, dim=0)
    values, index = torch.topk(x, 2)
    return torch.cat([a, b]), list(torch.unbind(x, 1)), values, index, torch.stack([a, b]).amax(0)


def scatter(self, x, index):
    x = x.clone()
    x[index] = 1.0
    x[:, index] += 2.0
    return x.index_put((index, index), torch.tensor(3.0), accumulate=True), x[None, index, 1:]


def dtypes(self, x):
    y = x.to(torch.float16) + x.to(torch.bfloat16) * 2
    return y.double(), x > 0, x.to(torch.int8) // 3, x.to(torch.complex64) * 1j, torch.full((2,), -math.inf), x.to(torch.uint8)


def layouts(self, x):
    y = x.contiguous(memory_format=torch.channels_last)
    return torch.empty_like(y, memory_format=torch.preserve_format).zero_() + torch.ones(2, 3, dtype=torch.float64).sum(), x.permute(1, 3, 0, 2)


def data_sizes(self, x):
    n = x.sum().to(torch.int64).item()
    torch._check(n >= 0)
    torch._check(n < 100)
    return torch.zeros(n), x.nonzero()


def random(self, x):
    return nn.functional.dropout(x, 0.5, True) + torch.rand_like(x)


def attention(self, q, k, v):
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def none_results(self, x, g):
    y, mean, rstd = torch.native_layer_norm(x, [4], None, None, 1e-5)
    return torch.ops.aten.native_layer_norm_backward(g, x, [4], mean, rstd, None, None, [True, False, False])[0] + y


@torch.library.custom_op("cxxinductor_pt2_test::twice", mutates_args=())
def twice(x: torch.Tensor, factors: list[float], name: str = "twice") -> list[torch.Tensor]:
    return [x * factor for factor in factors]


@twice.register_fake
def _(x, factors, name="twice"):
    return [torch.empty_like(x) for _ in factors]


def custom(self, x):
    return torch.ops.cxxinductor_pt2_test.twice(x, [1.0, 2.0], name="both")[1] + 1


batch, length = Dim("batch", min=2, max=64), Dim("length", min=2, max=128)
heads = [torch.randn(1, 2, 8, 16) for _ in range(3)]
MODELS = {
    "resnet_eval": (Resnet().eval(), (torch.randn(2, 3, 32, 32),), ({0: batch},)),
    "resnet_train": (Resnet(), (torch.randn(2, 3, 32, 32),), None),
    "transformer": (Transformer(), (torch.zeros(3, 5, dtype=torch.int64),), ({0: batch, 1: length},)),
    "transformer_eval": (Transformer().eval(), (torch.zeros(3, 5, dtype=torch.int64),), ({0: batch, 1: length},)),
    "mutated": (Function(mutated), (torch.randn(3, 4),), None),
    "nested": (Function(nested), ({"a": torch.ones(2), "b": {"c": [torch.ones(2)]}},), None),
    "sizes": (Function(sizes), (torch.randn(6, 4),), (({0: Dim.AUTO, 1: Dim.AUTO},),)),
    "lists": (Function(lists), (torch.randn(6, 4),), None),
    "scatter": (Function(scatter), (torch.randn(4, 4), torch.tensor([0, 2])), None),
    "dtypes": (Function(dtypes), (torch.randn(4),), None),
    "layouts": (Function(layouts), (torch.randn(2, 3, 4, 5),), None),
    "data_sizes": (Function(data_sizes), (torch.ones(5),), None),
    "random": (Function(random), (torch.ones(5),), None),
    "none_results": (Function(none_results), (torch.randn(3, 4), torch.randn(3, 4)), None),
    "custom": (Function(custom), (torch.randn(3),), None),
    "attention": (Function(attention), tuple(heads), None),
}


@pytest.mark.parametrize("decomposed", [False, True], ids=["as_exported", "decomposed"])
@pytest.mark.parametrize("name", MODELS)
def test_calls_are_those_of_the_exported_graph(name, decomposed):
    module, args, dynamic_shapes = MODELS[name]
    program = torch.export.export(module, args, dynamic_shapes=dynamic_shapes, strict=name == "transformer")
    if decomposed:
        program = program.run_decompositions()
    text = read(program)
    inputs = [types(line)[0] for line in text.splitlines() if line.startswith("  input ")]
    assert inputs == inputs_of(program)
    found, expected = calls_read(text), calls_of(program)
    assert [call[0] for call in found] == [call[0] for call in expected]
    for (op, results, operands), (_, wanted, tensors) in zip(found, expected):
        assert (op, results) == (op, wanted)
        assert (op, distinct(operands)) == (op, tensors)
    mutated_inputs = [line for line in text.splitlines() if line.startswith("  final ")]
    signature = program.graph_signature
    assert len(mutated_inputs) == len(signature.buffers_to_mutate) + len(signature.user_inputs_to_mutate)


def test_fixtures_are_what_torch_writes(tmp_path):
    # In a process of its own: names in traces depend on what was traced before.
    subprocess.run([sys.executable, DATA / "make_pt2.py", tmp_path], check=True, capture_output=True)
    names = sorted(path.stem for path in tmp_path.glob("*.pt2"))
    assert names == sorted(path.stem for path in (DATA / "pt2").glob("*.pt2"))
    for name in names:
        text = _C.read_pt2_text((DATA / "pt2" / f"{name}.pt2").read_bytes())
        assert text == _C.read_pt2_text((tmp_path / f"{name}.pt2").read_bytes())
        assert text == (DATA / "pt2" / f"{name}.txt").read_text()


def renamed(program, old, new):
    """The archive of a program without weights, with another text in its graph."""
    written, changed = io.BytesIO(), io.BytesIO()
    torch.export.save(program, written)
    with zipfile.ZipFile(written) as archive, zipfile.ZipFile(changed, "w") as other:
        for entry in archive.infolist():
            other.writestr(entry.filename, archive.read(entry).replace(old, new) if entry.filename.endswith("model.json") else archive.read(entry))
    return changed.getvalue()


class Cond(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))


def test_what_is_not_read_is_named():
    program = torch.export.export(Cond(), (torch.ones(4, 4),))
    with pytest.raises(cxxinductor.Unsupported, match=r"graph\.nodes\[\d+\] \(.*\): higher_order::bond"):
        _C.read_pt2_text(renamed(program, b"higher_order.cond", b"higher_order.bond"))


def test_subgraphs_are_graphs_of_their_own():
    text = read(torch.export.export(Cond(), (torch.ones(4, 4),)))
    assert re.search(r'"higher_order::cond"\(%gt, "true_graph_0", "false_graph_0", \[%x\]\)', text)
    for name, op in (("true_graph_0", "add"), ("false_graph_0", "sub")):
        body = text[text.index(f"  calls @{name} {{") :].split("\n  }", 1)[0]
        assert f"aten::{op}.Tensor" in body


def test_operands_of_control_flow_have_to_fit():
    program = torch.export.export(Cond(), (torch.ones(4, 4),))
    operands = b'{"as_tensors": [{"name": "x"}]}'
    with pytest.raises(cxxinductor.UserError, match=r"higher_order::cond.*: expected 1 operands of @true_graph_0, found 0"):
        _C.read_pt2_text(renamed(program, operands, b'{"as_tensors": []}'))
    with pytest.raises(cxxinductor.UserError, match="a list as argument 3"):
        _C.read_pt2_text(renamed(program, operands, b'{"as_tensor": {"name": "x"}}'))


def test_autocast_is_a_mode_of_calls():
    def autocast(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            with torch.autocast("cpu", enabled=False):
                return y, x @ x

    text = read(torch.export.export(Function(autocast), (torch.ones(4, 4),), strict=False))
    assert len(re.findall("aten::matmul", text)) == 2
    assert len(re.findall(r"aten::matmul.* autocast cpu bf16", text)) == 1


def test_errors_name_the_place():
    with pytest.raises(cxxinductor.UserError, match="expected a zip archive"):
        _C.read_pt2_text(b"not a zip")
    damaged = bytearray((DATA / "pt2" / "mlp.pt2").read_bytes())
    damaged[damaged.index(b'"graph_module"') + 1] ^= 1
    with pytest.raises(cxxinductor.UserError, match=r"models/model.json: expected the checksum"):
        _C.read_pt2_text(bytes(damaged))
