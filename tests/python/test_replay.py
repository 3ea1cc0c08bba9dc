"""Programs as they are written, with ATen's composites and ops in place, against eager: the calls of op_db's samples.

``make_fx(pre_dispatch=True)`` records what a program calls. Those calls take the way of a file's (``CompiledGraph::from_file``): composites
take themselves apart, writes become results, and the rest is compiled. Values, dtypes, strides, whose memory results show, what inputs
become, and the state of the generator must be eager's. Ops in place are called on a tensor and on views of one, and all with symbolic sizes
too, where no guard may be left.
``python tests/python/test_replay.py [samples [operator ...]]`` runs all operators and prints a table.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import sys
import warnings
from typing import Any, Callable, Iterator

import pytest
import torch
from op_db.calls import Call, calls, operators
from op_db.expected_failures import EXPECTED_FAILURES
from op_db.program import Program, programs
from op_db.run import Finding, different, outcome
from test_infer import channels_last
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing._internal import common_methods_invocations
from torch.utils._pytree import tree_leaves

from cxxinductor import _C, fx_reader
from cxxinductor.errors import Unsupported

KINDS = ((torch.float32, "plain"), (torch.float32, "strided"), (torch.float32, "formats"), (torch.int64, "plain"), (torch.bfloat16, "plain"))
A_GRAPH = 40
QUICK_GRAPHS = 3


# The operators of op_db seed the generator; what they leave of it is compared here.
common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)

# ---- What is called --------------------------------------------------------------------------------------------------


def sliced(x: torch.Tensor) -> torch.Tensor:
    return x[1:-1]


def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(0, -1)


def selected(x: torch.Tensor) -> torch.Tensor:
    return x.select(-1, 1)


def base_of(view: Callable[..., torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Of which `view` shows the elements of x."""
    if view is sliced:
        return torch.cat([x[:1], x, x[:1]])
    if view is transposed:
        return x.transpose(0, -1).contiguous()
    return torch.stack([x, x, x], -1)


def written(call: Call, view: Callable[..., torch.Tensor]) -> Call | None:
    """The call in place on a view of its argument."""
    (x, *args), kwargs = call.arguments
    if not isinstance(x, torch.Tensor) or (x.dim() == 0 and view is not selected) or (x.numel() == 0):
        return None

    def function(base: torch.Tensor, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
        return [call.function(view(base), *args, **kwargs), base.clone()]

    return dataclasses.replace(call, form=f"inplace {view.__name__}", function=function, arguments=((base_of(view, x), *args), kwargs))


def copied(call: Call) -> Call:
    """The call in place on a copy, whose sizes it may change."""

    def function(x: torch.Tensor, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
        copy = x.clone()
        return [call.function(copy, *args, **kwargs), copy]

    return dataclasses.replace(call, form="inplace copied", function=function)


# Operators whose samples are refused, or run through ATen.
EXPECTED = {
    "item": "gives a number that is data",
    "resize_": "needs memory that the tensor does not have",
    "resize_as_": "needs memory that the tensor does not have",
    "fft.ihfft": "PyTorch's fake tensors have other strides than its CPU kernel gives",
    "normal.in_place": "eager draws for tensors with gaps in another way",
    "as_strided": "in place it changes the sizes of an input",
    "as_strided.partial_views": "in place it changes the sizes of an input",
    "nn.functional.batch_norm": "eager does not count what it writes",
    "nn.functional.instance_norm": "eager does not count what it writes",
}
CHANGE_SIZES = ("squeeze", "squeeze.multiple", "t", "transpose", "unsqueeze", "swapaxes", "swapdims", "resize_", "resize_as_")


def chosen(op: Any, samples: int) -> Iterator[Call]:
    for dtype, form in KINDS:
        if dtype in op.supported_dtypes("cpu"):
            found = calls(op, dtype, "cpu", "plain" if form == "formats" else form, samples)
            if form == "formats":
                found = [dataclasses.replace(call, form=form, arguments=channels_last(call.arguments)) for call in found]
                found = [call for call in found if any(isinstance(x, torch.Tensor) and x.dim() in (4, 5) for x in tree_leaves(call.arguments))]
            yield from found
    if op.get_inplace() is None:
        return
    for dtype in {torch.float32, torch.int64} & op.supported_dtypes("cpu"):
        for call in calls(op, dtype, "cpu", "inplace", samples):
            yield copied(call) if call.operator in CHANGE_SIZES else call
            yield from filter(None, (written(call, view) for view in (sliced, transposed, selected)))


# ---- One program -----------------------------------------------------------------------------------------------------


class NotTraced(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Written:
    """A program as a file holds it."""

    builder: Any
    constants: list[torch.Tensor]
    replayed: dict[str, Any]

    def compiled(self, tier: str) -> Callable[..., list[Any]]:
        """tier: of "aten" the calls that would be compiled run through ATen."""
        options = _C.Options()
        options.set("tier", tier)
        if tier == "aten":
            self.replayed["builder"].graph_text()
            graph = _C.compile(self.replayed["builder"], options, self.constants)
        else:
            graph = _C.compile_as_written(self.builder, options, self.constants)
            if graph.fallback_reason:
                raise RuntimeError(graph.fallback_reason)
        return lambda *arguments: graph(list(arguments))


def tensors_of(function: Callable[..., Any]) -> Callable[..., list[torch.Tensor]]:
    return lambda *arguments: [y for y in tree_leaves(function(*arguments)) if isinstance(y, torch.Tensor)]


def read(function: Callable[..., Any], arguments: list[torch.Tensor], tracing: str) -> Written:
    torch.manual_seed(1)
    try:
        gm = make_fx(function, tracing_mode=tracing, pre_dispatch=True)(*arguments)
        graph = fx_reader.read_graph(gm)
    except Exception as error:
        raise NotTraced(f"{type(error).__name__}: {str(error).strip()[:300]}") from error
    if graph.input_conversions or graph.output_conversions:
        raise NotTraced("numbers among inputs or outputs")
    return Written(graph.builder, graph.constants, _C.replayed(graph.builder))


def call_changes_sizes(program: Program) -> bool:
    return any(call.operator in CHANGE_SIZES for call in program.calls)


def check(program: Program, tracing: str = "fake", tier: str = "kernels") -> Finding:
    """What is wrong with the compiled program; kind "" for nothing."""
    function = tensors_of(program.function())
    try:
        graph = read(function, program.arguments(), tracing)
    except NotTraced as error:
        return Finding("not traced", str(error))
    except Exception as error:
        return Finding("refused", f"{type(error).__name__}: {str(error).strip()[:500]}")
    if graph.replayed["guards"]:
        return Finding("guards", "; ".join(graph.replayed["guards"]))
    try:
        compiled = graph.compiled(tier)
    except Exception as error:
        return Finding("through ATen", str(error)[:500])
    try:
        ours, state = outcome(program, compiled, program.arguments()), torch.get_rng_state()
    except Exception as error:
        return Finding("crash", f"{type(error).__name__}: {str(error).strip()[:500]}")
    eager = outcome(program, function, program.arguments())
    if call_changes_sizes(program):  # which versions count, and graphs do not
        ours.facts["inputs written to"] = eager.facts["inputs written to"]
    if tier == "aten":
        for name in ("inputs written to", "outputs that alias inputs", "outputs that alias each other"):
            ours.facts[name] = eager.facts[name]
    if text := different(program, function, ours, eager):
        return Finding("wrong", text)
    if not torch.equal(state, torch.get_rng_state()):
        return Finding("wrong", "the generator's state")
    if graph.replayed["kept"]:
        return Finding("kept", "; ".join(f"{op}: {reason.splitlines()[0]}" for op, reason in graph.replayed["kept"].items()))
    return Finding("", "")


def swept(chosen: list[Call], tracing: str = "fake", tier: str = "kernels") -> Iterator[tuple[Call, Finding]]:
    """By call; those of a graph that fails are run alone."""
    for program in programs(chosen, A_GRAPH):
        finding = check(program, tracing, tier)
        for call in program.calls:
            yield call, check(Program((call,)), tracing, tier) if finding.kind and len(program.calls) > 1 else finding


# ---- Tests -----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.ERROR)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def quick_calls(position: int) -> list[Call]:
    """Of every tenth operator, one of its samples as it is, and written to one of the kinds of tensors."""
    found = []
    for number, (name, op) in enumerate(list(operators().items())[::10]):
        if number % QUICK_GRAPHS != position or name in EXPECTED or any(name in entry.operators for entry in EXPECTED_FAILURES):
            continue
        every = list(chosen(op, 1))
        for in_place in (False, True):
            alike = [call for call in every if call.form.startswith("inplace") == in_place]
            found += alike[number // QUICK_GRAPHS % len(alike) :][:1] if alike else []
    return found


@pytest.mark.parametrize(("position", "tracing"), [*((position, "fake") for position in range(QUICK_GRAPHS)), (0, "symbolic")])
def test_a_call_of_every_tenth_operator(position, tracing):
    found = [f"{call}: {finding.kind}: {finding.text}" for call, finding in swept(quick_calls(position), tracing) if is_failure(finding, tracing)]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def is_failure(finding: Finding, tracing: str) -> bool:
    return finding.kind in ("wrong", "crash", "refused", "through ATen") or (finding.kind == "guards" and tracing == "fake")


def compared(function: Callable[..., Any], *arguments: torch.Tensor, tracing: str = "fake", also: tuple[str, ...] = ()) -> list[str]:
    """Compiles the function as it is written, and compares it with eager; gives the names of what is compiled."""
    call = Call("a function", arguments[0].dtype, "plain", "0", function, (arguments, {}))
    finding = check(Program((call,)), tracing)
    assert finding.kind in ("", *also), f"{finding.kind}: {finding.text}"
    calls = read(tensors_of(function), list(arguments), tracing).replayed["calls"]
    return [line.split('"')[1] for line in calls.splitlines() if ' = "' in line or line.strip().startswith('"')]


def changed(x: torch.Tensor) -> Any:
    y = x.clone()
    y.transpose_(0, 1).unsqueeze_(0)
    y.mul_(2)
    z = y.squeeze_()[1]
    z.add_(1)
    return y, z, y.t_()


def returned(x: torch.Tensor, y: torch.Tensor) -> Any:
    row = x[1]
    row.mul_(2)
    copy = y + 1
    first = copy[0]
    first.zero_()
    return row, x.t(), x.add_(1), x, copy, first, y[:, 1]


def drawn(x: torch.Tensor) -> Any:
    copies = [x.clone() for _ in range(8)]
    copies[0].normal_(1, 2)
    copies[1].uniform_()
    copies[2].bernoulli_(0.3)
    copies[3].exponential_(2)
    copies[4].random_(10)
    copies[5].geometric_(0.4)
    copies[6].cauchy_()
    copies[7].log_normal_()
    return copies, torch.nn.functional.dropout(x, 0.4), torch.rand_like(x)


def into_given(x: torch.Tensor) -> Any:
    out, row = torch.empty_like(x), torch.zeros(3, 8)
    torch.add(x, 1, out=out)
    torch.sum(x, 1, keepdim=True, out=out[:, :1])
    torch.mm(x, x.t(), out=row[:, :3])
    return out, row


def statistics(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> Any:
    y = torch.nn.functional.batch_norm(x, mean, variance, training=True)
    return y, mean.clone(), torch.nn.functional.rrelu(y, training=True)


def lists(x: torch.Tensor) -> Any:
    copy = x.clone()
    for part in (*copy.chunk(2), *copy.split(2), *copy.unbind(1), *copy.tensor_split(3), *copy.unfold(1, 2, 2).unbind(1)):
        part.add_(1)
    copy.view(torch.int32)[0, 0] = 7
    copy.as_strided([2], [3]).mul_(2)
    copy.diagonal().sub_(1)
    copy.unsqueeze(0).expand(1, *copy.shape).add_(3)
    halves = torch.view_as_complex(copy.reshape(-1, 2))
    halves.imag.neg_()
    torch.view_as_real(halves)[0].zero_()
    others = [x + 1, x.sum(0)]
    torch._foreach_add_(others, 2)
    return copy, halves, others


@pytest.mark.parametrize("tracing", ["fake", "symbolic"])
def test_ops_in_place_that_change_sizes(tracing):
    assert compared(changed, torch.randn(3, 5), tracing=tracing)[:3] == ["aten::clone", "aten::transpose.int", "aten::unsqueeze"]


@pytest.mark.parametrize("tracing", ["fake", "symbolic"])
def test_results_share_memory_with_inputs_as_in_eager(tracing):
    compared(returned, torch.randn(3, 5), torch.randn(4, 6), tracing=tracing)


def test_random_numbers_are_eagers():
    compared(drawn, torch.randn(6, 4))


def test_results_go_where_the_caller_says():
    compared(into_given, torch.randn(3, 6), also=("kept",))


def test_running_statistics_are_written():
    names = compared(lambda x, m, v: statistics(x, m.clone(), v.clone()), torch.randn(4, 3), torch.zeros(3), torch.ones(3))
    assert "aten::_native_batch_norm_legit" in names


def test_writes_through_views():
    compared(lists, torch.randn(6, 6))


def test_lists_whose_length_sizes_leave_open():
    assert compared(lambda x: [*x.chunk(3), *x.split(2, 1)], torch.randn(7, 6), tracing="symbolic")


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 2.0}, {"dropout_p": 0.5}], ids=str)
def test_attention_takes_the_kernel_that_eager_takes(options):
    x = torch.randn(2, 5, 4, 8).transpose(1, 2)
    names = compared(lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x, **options), x)
    assert ("aten::_scaled_dot_product_flash_attention_for_cpu" in names) == ("dropout_p" not in options)


def test_what_has_no_form_that_returns_is_named():
    refused = {
        "aten::resize_": lambda x: x.clone().resize_(2),
        "aten::set_": lambda x: x.clone().set_(x),
        "two tensors of one memory": lambda x: torch._foreach_add_([x, x[1:]], 2),
        "bernoulli_.float: it writes random numbers to strides": lambda x: torch.nn.functional.dropout(x.expand(2, 3).clone().t(), 0.5),
        "normal_: it writes random numbers to strides": lambda x: x.expand(2, 3).contiguous()[:, ::2].normal_(),
    }
    for name, function in refused.items():
        with pytest.raises(Unsupported, match=name):
            read(tensors_of(function), [torch.randn(3)], "fake")
    with pytest.raises(Unsupported, match="changes the sizes of input"):
        read(tensors_of(lambda x: x.t_() + 1), [torch.randn(3, 4)], "fake")


# ---- A table of all --------------------------------------------------------------------------------------------------


def main(samples: int, names: list[str]) -> None:
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    total: collections.Counter[str] = collections.Counter()
    reasons: dict[str, list[str]] = collections.defaultdict(list)
    tier = "kernels" if "kernels" in names else "aten"
    names = [name for name in names if name != "kernels"]
    for name, op in operators().items():
        if names and name not in names:
            continue
        try:
            with torch.no_grad():
                made = list(chosen(op, samples))
        except Exception as error:
            print(name, "samples:", error, flush=True)
            continue
        for tracing in ("fake", "symbolic"):
            row: collections.Counter[str] = collections.Counter()
            texts: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
            with torch.no_grad():
                for call in made:
                    finding = check(Program((call,)), tracing, tier)
                    row[finding.kind or "compiled"] += 1
                    if finding.kind:
                        texts[finding.kind, finding.text.replace("\n", " ")[:240]].append(f"{call.dtype_name} {call.form} {call.sample}")
            total.update(row)
            if set(row) - {"compiled"}:
                print(f"{name} {tracing}: {dict(row)}", flush=True)
                for (kind, text), where in texts.items():
                    print(f"    {kind} ({len(where)}x, {where[0]}): {text}", flush=True)
    print(dict(total))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2, sys.argv[2:])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_expanded_masks_of_attention_are_copied_for_fused_kernels(dtype):
    class Masked(torch.nn.Module):
        def forward(self, q, k, v, mask):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask.expand(2, -1, 64, 64))

    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):  # which one PyTorch takes depends on the GPU
        with FakeTensorMode(), torch.no_grad():
            factors = [torch.empty(2, 4, 64, 32, device="cuda", dtype=dtype) for _ in range(3)]
            mask = torch.empty(2, 1, 64, 1, device="cuda", dtype=torch.bool)
            exported = torch.export.export(Masked(), (*factors, mask), strict=False)
        text = _C.replayed(fx_reader.read_graph(exported.graph_module).builder)["calls"]
    assert ('"aten::contiguous"(%expand)' in text) == (dtype is torch.bfloat16), text
