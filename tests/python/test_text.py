"""Text of graphs and plans is untrusted: it calls no op but those that read their arguments, and says nothing else of them than
their schemas. Whatever else it holds is an error, never a crash.

``python tests/python/test_text.py <seconds> [seed]`` runs the fuzzer longer.
"""

import random
import sys
import time

import pytest
import torch

import cxxinductor
from cxxinductor import _C


def compile_text(text, **options):
    resolved = _C.Options()
    for name, value in options.items():
        resolved.set(name, value)
    return _C.compile_text(text, resolved)


def test_arguments_that_are_missing():
    with pytest.raises(cxxinductor.Unsupported, match="needs an argument 'self'"):
        compile_text(graph('%0: f32[4, 4] = extern "aten::cos"() with () alias [-1]'))


def refused(text, *words, **options):
    with pytest.raises(cxxinductor.UserError) as error:
        compile_text(text, **options)
    for word in words:
        assert word in str(error.value)


def graph(*lines, inputs="%x: f32[4, 4]", result="%0"):
    return "graph @f(" + inputs + ") {\n" + "".join(f"  {line}\n" for line in lines) + f"  return {result}\n}}\n"


def test_text_runs():
    text = graph('%0: f32[4, 4] = extern "aten::mm"($0, $0) with (%x) alias [-1]', "%1 = relu(%0)", result="%1")
    x = torch.randn(4, 4)
    (y,) = compile_text(text)([x])
    torch.testing.assert_close(y, torch.relu(x @ x))


@pytest.mark.parametrize(
    "call",
    [
        '"aten::from_file"("{path}", true, 4)',
        '"aten::set_.source_Tensor"($0, $0)',
        '"aten::resize_"($0, [1024])',
        '"aten::resize"($0, [1024])',
        '"aten::_sparse_coo_tensor_unsafe"($0, $0, [4])',
        '"aten::relu_"($0)',
        '"aten::copy_"($0, $0)',
        '"aten::_foreach_add_.Scalar"([$0], 1)',
        '"nothing::such"($0)',
        '"_c10d_functional::all_reduce"($0, "sum", "0")',
        '"quantized::linear"($0)',
    ],
)
def test_ops_that_text_may_not_reach(call, tmp_path):
    path = tmp_path / "made"
    refused(graph(f"%0: f32[4, 4] = extern {call.format(path=path)} with (%x) alias [-1]"), call.split('"')[1])
    assert not path.exists()


@pytest.mark.parametrize(
    "call, words",
    [
        ('"aten::view"($0, [4, 4]) with (%x) alias [-1]', "aliases [0]"),
        ('"aten::sort"($0) with (%x) alias [0, -1]', "aliases [-1, -1]"),
        ('"aten::cos"($0) with (%x) alias [0]', "aliases [-1]"),
        ('"aten::cos"($0) with (%x) alias [-1] mutates [0]', "mutated operands []"),
        ('"aten::cos"($0, 1) with (%x) alias [-1]', "at most 1 arguments"),
        ('"aten::cos"($0, nothing = 1) with (%x) alias [-1]', "'nothing'"),
        ('"aten::cos"($0, self = $0) with (%x) alias [-1]', "'self' twice"),
        ('"aten::cos.out"($0, out = $0) with (%x) alias [-1]', "extern aten::cos.out"),
        ('"aten::cos"($0) with (%x) alias [-1] planned_out', "planned"),
        ('"aten::bernoulli"($0) with (%x) alias [-1]', "ordered"),
        ('"aten::linalg_nothing"($0) with (%x) alias [-1]', "registered"),
    ],
)
def test_what_differs_from_the_schema(call, words):
    result = "%0: f32[4, 4], %1: i64[4, 4]" if "sort" in call else "%0: f32[4, 4]"
    refused(graph(f"{result} = extern {call}"), words)


def test_a_planned_result_of_other_sizes():
    text = graph('%0: f32[8, 8] = extern "aten::mm"($0, $0) with (%x) alias [-1] planned_out', "%1 = relu(%0)", result="%1")
    run = compile_text(text)
    with pytest.raises(Exception):
        run([torch.randn(4, 4)])


def test_indices_are_checked_whatever_the_text_says():
    text = graph("%0: f32[3, 4] = gather<source=[-1, 1], index_dims=[0], no_check>(%x, %i)", inputs="%x: f32[4, 4], %i: i64[3]")
    run, x = compile_text(text), torch.randn(4, 4)
    assert torch.equal(run([x, torch.tensor([0, 3, 1])])[0], x[[0, 3, 1]])
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        run([x, torch.tensor([0, 4, 1])])


def test_results_of_other_sizes():
    run = compile_text(graph('%0: f32[400, 4] = extern "aten::cos"($0) with (%x) alias [-1]', "%1 = exp(%0)", result="%1"))
    with pytest.raises(Exception, match="aten::cos returned"):
        run([torch.randn(4, 4)])


def test_an_op_that_returns_its_argument():
    # Dropout outside of training hands its argument back: here a buffer that later kernels take over.
    lines = ["%1 = exp(%x)", '%0: f32[64, 64] = extern "aten::dropout"($0, 0.5, false) with (%1) alias [-1] ordered']
    for n in range(2, 8):
        lines.append(f'%{n}: f32[64, 64] = extern "aten::mm"($0, $0) with ({"%x" if n == 2 else f"%{n}a"}) alias [-1]')
        lines.append(f"%{n + 1}a = tanh(%{n})")
    lines.append("%9 = add(%0, %8a)")
    x = torch.randn(64, 64) / 8  # products of products stay where rounding is not magnified
    (y,) = compile_text(graph(*lines, inputs="%x: f32[64, 64]", result="%9"))([x])
    z = x
    for _ in range(6):
        z = torch.tanh(z @ z)
    torch.testing.assert_close(y, x.exp() + z)


def test_ops_that_the_caller_allows():
    with torch.library._scoped_library("cxxi_text", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        library.define("double_(Tensor(a!) x) -> Tensor(a!)")
        library.impl("double_", lambda x: x.mul_(2), "CompositeExplicitAutograd")
        text = graph("%1 = exp(%x)", '%0: f32[4, 4] = extern "cxxi_text::twice"($0) with (%1) alias [-1] ordered')
        refused(text, "cxxi_text::twice", "allow_ops")
        x = torch.randn(4, 4)
        (y,) = compile_text(text, allow_ops="other::op, cxxi_text::twice")([x])
        torch.testing.assert_close(y, x.exp() * 2)
        refused(text.replace(" ordered", ""), "ordered", allow_ops="cxxi_text")
        written = graph('%0: f32[4, 4] = extern "cxxi_text::double_"($0) with (%x) alias [0] ordered')
        refused(written, "mutated operands [0]", allow_ops="cxxi_text::double_")


def test_plans_are_checked_too(tmp_path):
    text = graph('%0: f32[4, 4] = extern "aten::cos"($0) with (%x) alias [-1]')
    compile_text(text, dump="plan", dump_dir=str(tmp_path))
    (plan,) = tmp_path.rglob("*-fit-memory.txt")
    good = plan.read_text()
    x = torch.randn(4, 4)
    (y,) = _C.load_plan(good, None, _C.Options())([x])
    torch.testing.assert_close(y, x.cos())
    for bad in (good.replace("aten::cos", "aten::relu_"), good.replace("with (@x)", "with (@x) alias [0]")):
        assert bad != good
        with pytest.raises(cxxinductor.UserError, match="extern aten::"):
            _C.load_plan(bad, None, _C.Options())


# ---- Fuzzing ---------------------------------------------------------------------------------------------------------

SEEDS = [
    graph(
        "%1 = exp(%x)",
        '%0: f32[4, 4] = extern "aten::mm"($0, $1) with (%1, %x) alias [-1] planned_out',
        '%2: f32[4, 4], %3: i64[4, 4] = extern "aten::sort.stable"($0, stable = true, dim = -1) with (%0) alias [-1, -1]',
        "%4 = relu(%2)",
        result="%4, %3",
    ),
    graph(
        "%g = gather<source=[-1, 1], index_dims=[0]>(%x, %i)",
        "%s = sum<dims=[1]>(%g)",
        '%v: f32[16] = extern "aten::view"($0, [16]) with (%x) alias [0]',
        "%t = mul(%s, 2)",
        inputs="%x: f32[4, 4], %i: i64[3]",
        result="%t, %v",
    ),
    graph(
        "%p = permute<dims=[1, 0]>(%x)",
        "%l = slice<dim=0, start=1, step=2>(%p)",
        '%c: f32[2, s0] = extern "aten::cumsum"($0, 1) with (%l) alias [-1]',
        "%a = add(%c, %l)",
        inputs="%x: f32[s0, 4]",
        result="%a",
    ).replace(") {", ") where 1 <= s0 {"),
]
WORDS = [
    "aten::cos", "aten::view", "aten::as_strided", "aten::sort", "aten::set_", "aten::resize_", "aten::index.Tensor", "aten::gather",
    "alias [0]", "alias [-1]", "mutates [0]", "planned", "ordered", "f64", "i64", "bf16", "bool", "[0]", "[4, 4]", "[1]", "-1", "0",
    "9223372036854775807", "s0", "$0", "$1", "none", "%x", "true", "1000000",
]


def mutated(rng):
    text = rng.choice(SEEDS)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text))
        kind = rng.randrange(4)
        if kind == 0:
            tokens = [k for k in range(len(text)) if text[k].isdigit()]
            at = rng.choice(tokens)
            text = text[:at] + rng.choice("0123456789") + text[at + 1 :]
        elif kind == 1:
            text = text[:at] + rng.choice(WORDS) + text[at + rng.choice((0, 1, len("aten::mm"))) :]
        elif kind == 2:
            old, new = rng.choice(WORDS), rng.choice(WORDS)
            text = text.replace(old, new, 1)
        else:
            lines = text.split("\n")
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[a] = lines[b] if rng.random() < 0.5 else lines[a].replace("f32", rng.choice(("f64", "i32", "u8")))
            text = "\n".join(lines)
    return text


def fuzz(seed, rounds, deadline):
    rng, ran = random.Random(seed), 0
    for _ in range(rounds):
        if time.monotonic() > deadline:
            break
        text = mutated(rng)
        print(text, file=sys.stderr, flush=True)  # what a crash leaves behind
        try:
            run = compile_text(text)
        except (cxxinductor.UserError, cxxinductor.Unsupported):
            continue
        except cxxinductor.InternalError as error:
            assert "failed to compile" not in str(error), text
            raise AssertionError(f"seed {seed}: {error}\n{text}") from error
        for inputs in ([torch.randn(4, 4)], [torch.randn(4, 4), torch.tensor([0, 3, 1])], [torch.randn(0, 4)]):
            try:
                run(list(inputs))
                ran += 1
            except Exception:  # noqa: BLE001 any error will do, a crash would not
                pass
    return ran


def test_mutated_texts_raise_or_run():
    assert fuzz(7, 150, time.monotonic() + 20) > 0


if __name__ == "__main__":
    start = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
    print(f"seed {start}")
    print(fuzz(start, 10**9, time.monotonic() + float(sys.argv[1])), "runs")
