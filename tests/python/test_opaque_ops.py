"""Custom ops are opaque: they may keep their arguments, return what they keep, and raise."""

import re
import warnings

import pytest
import torch
from torch._functorch import config as functorch_config

import cxxinductor


# Where the variable CI is set, torch makes an error of its warning that an op returns its argument, or one tensor twice.
@pytest.fixture(autouse=True)
def allow_aliases():
    with functorch_config.patch(error_on_custom_op_aliasing=False):
        yield


@pytest.fixture
def library():
    found = torch.library.Library("cxxi_opaque", "FRAGMENT")
    yield found
    found._destroy()


@pytest.fixture
def define(library):
    """define(schema, implementation, meta): a custom op, found as torch.ops.cxxi_opaque.<name>."""

    def add(schema, implementation, meta=torch.empty_like):
        name = schema[: schema.index("(")]
        library.define(schema)
        library.impl(name, implementation, "CompositeExplicitAutograd")
        library.impl(name, meta, "Meta")
        return getattr(torch.ops.cxxi_opaque, name)

    return add


def compiled(function, **options):
    return torch.compile(function, backend="cxxinductor", fullgraph=True, options=options)


# Keeps every kind of buffer busy after the op: arenas that were lent would be overwritten.
def churn(x):
    for k in range(3):
        x = torch.softmax(torch.sin(x) @ x.t() + k, -1) @ x
    return x


def test_an_argument_that_is_kept_stays_as_it_was(define, device):
    kept = []
    keep = define("keep(Tensor x) -> Tensor", lambda x: (kept.append(x), x.sum(0))[1], lambda x: x.new_empty(x.shape[1:]))

    def fn(x):
        return keep(x * 2 + 1) + churn(x)

    x = torch.randn(32, 32, device=device)
    expected = fn(x)
    torch.testing.assert_close(compiled(fn)(x), expected)
    assert torch.equal(kept[1], kept[0]) and torch.equal(kept[1], x * 2 + 1)


def test_views_of_an_argument_that_are_kept(define, device):
    kept = []
    keep = define("keep_rows(Tensor x) -> Tensor", lambda x: (kept.append(x[1:]), x.sum(0))[1], lambda x: x.new_empty(x.shape[1:]))

    def fn(x):
        y = (x * 2 + 1).view(16, 64)
        return keep(y[:, 1:]).sum() + churn(x)

    x = torch.randn(32, 32, device=device)
    fn(x)
    compiled(fn)(x)
    assert torch.equal(kept[0], kept[1])


def test_nothing_is_written_in_place_of_an_argument_that_is_kept(define, device):
    kept = []
    keep = define("keep_all(Tensor x) -> Tensor", lambda x: (kept.append(x), x.sum(0))[1], lambda x: x.new_empty(x.shape[1:]))

    def fn(x, i, v):
        y = x.exp()  # of its own size and large: nothing else would take its place
        total = keep(y)
        z = y.index_put((i,), v)  # could write into y, which nobody reads again
        return total, torch.sigmoid(z)

    x, i, v = torch.randn(64, 64, device=device), torch.tensor([1, 5], device=device), torch.zeros(2, 64, device=device)
    expected = fn(x, i, v)
    torch.testing.assert_close(compiled(fn)(x, i, v), expected)
    torch.testing.assert_close(kept[1], x.exp())


def test_what_reads_an_argument_last_does_not_overwrite_it(define, device):
    kept = []
    keep = define("keep_it(Tensor x) -> Tensor", lambda x: (kept.append(x), x.sum())[1], lambda x: x.new_empty(()))

    def fn(x):
        y = x.softmax(-1)
        total = keep(y)
        return (y * total).relu().sum(-1), (y * 3 + total).cos()

    x = torch.randn(64, 64, device=device)
    fn(x)
    compiled(fn)(x)
    torch.testing.assert_close(kept[1], kept[0])


def test_a_cached_result_stays_as_it_was(define, device):
    cache = torch.arange(64.0, device=device).reshape(8, 8)
    cached = define("cached(Tensor x) -> Tensor", lambda x: cache, lambda x: torch.empty(8, 8, device=x.device))

    def fn(x, i, v):
        y = cached(x)
        return torch.sigmoid(y * 2), cached(x).index_put((i,), v), y + 1

    x, i, v = torch.randn(3, device=device), torch.tensor([1, 5], device=device), torch.zeros(2, 8, device=device)
    before, expected = cache.clone(), fn(x, i, v)
    run = compiled(fn)
    for _ in range(2):
        torch.testing.assert_close(run(x, i, v), expected)
        assert torch.equal(cache, before)


def test_a_result_that_is_returned_twice(define, device):
    def twice(x):
        y = x + 1
        return y, y

    pair = define("pair(Tensor x) -> (Tensor, Tensor)", twice, lambda x: (torch.empty_like(x), torch.empty_like(x)))

    def fn(x, i, v):
        a, b = pair(x)
        return a.index_put((i,), v), b * 2

    x, i, v = torch.randn(8, 8, device=device), torch.tensor([1, 5], device=device), torch.zeros(2, 8, device=device)
    torch.testing.assert_close(compiled(fn)(x, i, v), fn(x, i, v))


def test_a_result_that_is_the_argument(define, device):
    same = define("same(Tensor x) -> Tensor", lambda x: x)

    def fn(x):
        y = same(x.cos())
        return churn(x) + y, same(y * 2)

    x = torch.randn(16, 16, device=device)
    torch.testing.assert_close(compiled(fn)(x), fn(x))


def test_opaque_calls_keep_their_order(define, device):
    seen = []
    note = define("note(Tensor x, int n) -> Tensor", lambda x, n: (seen.append(n), x + n)[1], lambda x, n: torch.empty_like(x))

    def fn(small, large):
        a = note(large @ large, 0)
        b = note(small, 1)
        c = note(large, 2)
        return b + note(small, 3), c.sum() + a.sum()

    inputs = torch.randn(4, device=device), torch.randn(256, 256, device=device)
    compiled(fn)(*inputs)
    assert seen == [0, 1, 2, 3]


def test_collectives(device):
    import torch.distributed as dist
    import torch.distributed._functional_collectives as collectives

    if device != "cpu":
        pytest.skip("gloo")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:

        def fn(x):
            y = collectives.all_reduce(x * 2, "sum", dist.group.WORLD)
            z = collectives.all_gather_tensor(x.exp(), 0, dist.group.WORLD)
            return churn(x) + y, z + 1

        x = torch.randn(16, 16)
        torch.testing.assert_close(compiled(fn)(x), fn(x))
    finally:
        dist.destroy_process_group()


# ---- Ops that raise --------------------------------------------------------------------------------------------------


class Refused(Exception):
    pass


@pytest.fixture
def refuse(define):
    def implementation(x):
        if x.sum() < 0:
            raise Refused("the sum is negative")
        return x + 1

    return define("refuse(Tensor x) -> Tensor", implementation)


def raises_as_eager(fn, *inputs, written, error=None, **options):
    """Runs both; the inputs are left alike, and the error or a note on it names those that had been written (None: whatever)."""
    mine, theirs = [x.clone() for x in inputs], [x.clone() for x in inputs]
    with pytest.raises(Exception) as expected:
        fn(*theirs)
    with pytest.raises(Exception) as found:
        compiled(fn, **options)(*mine)
    assert found.type is expected.type or error is not None and isinstance(found.value, error), found.value
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a, b)
    text = "\n".join([str(found.value), *getattr(found.value, "__notes__", [])])
    if written is not None:
        assert re.findall(r"args\[\d\]", text.partition("been written")[2]) == list(written), text


def write_after(refuse, st, x):
    y = refuse(x)
    st.mul_(2)
    return y


def write_before(refuse, st, x):
    st.add_(1)
    return refuse(x)


@pytest.mark.parametrize("program, written", [(write_after, ()), (write_before, ("args[0]",))])
def test_writes_around_the_op_that_raises(program, written, refuse, device):
    raises_as_eager(lambda st, x: program(refuse, st, x), torch.ones(8, device=device), -torch.ones(8, device=device), written=written)


def test_writes_of_two_inputs_around_the_op_that_raises(refuse, device):
    def fn(st, other, x):
        st.add_(1)
        y = refuse(x)
        other.mul_(2)
        return y + st

    inputs = torch.zeros(8, device=device), torch.ones(8, device=device), -torch.ones(8, device=device)
    raises_as_eager(fn, *inputs, written=("args[0]",))


def split(refuse, st, x):
    st.add_(1)
    y = refuse(x)
    st.mul_(2)
    return y


def in_parts(refuse, st, x):
    st[2:] += 1
    st.view(2, 4)[:, 1:].mul_(3)
    y = refuse(x)
    st += y
    return y


def in_three(refuse, st, x):
    st.add_(1)
    y = refuse(-x)
    st.mul_(5)
    z = refuse(x)
    torch.sub(st, y, out=st)
    return z


def overwritten(refuse, st, x):
    st.add_(1)
    y = refuse(x)
    st.fill_(7)
    return y


def through_indices(refuse, st, x):
    i = torch.arange(0, 8, 2, device=st.device)
    st.index_add_(0, i, x[:4])
    y = refuse(x)
    st.index_add_(0, i, y[:4])
    return y


@pytest.mark.parametrize("options", [{}, {"tier": "aten"}], ids=["compiled", "aten"])
@pytest.mark.parametrize("program", [split, in_parts, in_three, overwritten, through_indices])
def test_versions_of_an_input_that_is_written_again(program, options, refuse, device):
    def fn(st, x):
        return program(refuse, st, x)

    st, x = torch.arange(8.0, device=device), torch.ones(8, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tier=aten
        if program is not in_three:  # which raises for one of its calls
            theirs, mine = st.clone(), st.clone()
            torch.testing.assert_close(compiled(fn, **options)(mine, x), fn(theirs, x))
            torch.testing.assert_close(mine, theirs)
        raises_as_eager(fn, st, -x, written=None if options else ("args[0]",), **options)


def test_versions_of_a_buffer_in_training(refuse, device):
    class Counted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 8)
            self.register_buffer("seen", torch.zeros(8))

        def forward(self, x):
            self.seen.add_(x)
            y = self.linear(x) * refuse(x)
            self.seen.mul_(2)
            return y + self.seen  # whose gradient needs no version of it

    model, x = Counted().to(device), torch.ones(8, device=device)
    run = compiled(model)
    run(x).sum().backward()
    assert torch.equal(model.seen, 2 * x)
    gradient = model.linear.weight.grad.clone()
    model.seen.zero_()
    model.linear.weight.grad = None
    model(x).sum().backward()
    torch.testing.assert_close(model.linear.weight.grad, gradient)
    model.seen.zero_()
    with pytest.raises(Refused):
        run(-x)
    assert torch.equal(model.seen, -x)


def test_a_version_is_not_written_while_an_older_one_is_needed(refuse, device):
    def fn(st, x):
        old = st * 1
        st.add_(1)
        y = refuse(x)
        st.mul_(2)
        return y + old, st.sum()

    st, x = torch.arange(8.0, device=device), torch.ones(8, device=device)
    theirs, mine = st.clone(), st.clone()
    torch.testing.assert_close(compiled(fn)(mine, x), fn(theirs, x))
    torch.testing.assert_close(mine, theirs)


@pytest.fixture
def add_one(define):
    """Adds 1 in place, and raises if the sum is low then."""

    def implementation(x):
        x.add_(1)
        if x.sum() < -100:
            raise Refused("the sum is low")

    return define("add_one(Tensor(a!) x) -> ()", implementation, lambda x: None)


def once(add_one, st):
    add_one(st)
    return st * 2


def of_rows(add_one, st):
    before = st.sum()
    add_one(st[2:])
    return before + st.sum()


def twice(add_one, st):
    add_one(st)
    y = st.exp()
    add_one(st)
    return y + st


def after_a_write(add_one, st):
    st.mul_(2)
    add_one(st)
    return st + 1


def between_writes(add_one, st):
    add_one(st)
    st.mul_(-2)
    add_one(st)
    return st + 1


def after_indices(add_one, st):
    i = torch.tensor([0, 2], device=st.device)
    st.index_add_(0, i, torch.ones(2, device=st.device))
    add_one(st)
    return st.cos()


@pytest.mark.parametrize("program", [once, of_rows, twice, after_a_write, between_writes, after_indices])
def test_what_an_op_wrote_before_it_raised(program, add_one, device):
    def fn(st):
        return program(add_one, st)

    st = torch.arange(8.0, device=device)
    theirs, mine = st.clone(), st.clone()
    torch.testing.assert_close(compiled(fn)(mine), fn(theirs))
    torch.testing.assert_close(mine, theirs)
    raises_as_eager(fn, -50 - 10 * st, written=("args[0]",))
    if program is between_writes:
        raises_as_eager(fn, 10 * st, written=("args[0]",))  # in the second call


def test_an_op_writes_into_the_input_itself(define, device):
    written = []
    fill = define("fill(Tensor(a!) x) -> ()", lambda x: (written.append(x.data_ptr()), x.fill_(3))[0], lambda x: None)
    st = torch.zeros(8, device=device)

    def fn(st):
        fill(st)
        return st + 1

    torch.testing.assert_close(compiled(fn)(st), torch.full_like(st, 4))
    assert written == [st.data_ptr()] and torch.equal(st, torch.full_like(st, 3))


def old_value_later(add_one, st, x):
    old = st.clone()
    add_one(st)
    return st * 2, old.sin()


def copy_of_an_input(add_one, st, x):
    t = x.clone()
    add_one(t)
    return t + x


def copy_of_a_result(add_one, st, x):
    y = x * 2
    t = y.clone()
    add_one(t)
    return t + y


def equal_copies(add_one, st, x):
    s, t = x.clone(), x.clone()
    add_one(s)
    return s, t * 2, s + t + x.clone()


def constants(add_one, st, x):
    s, t, i = torch.zeros_like(x), torch.zeros_like(x), torch.arange(4, device=x.device)
    add_one(s)
    add_one(i)
    return s + 1, t + 1, x[i], i < 4


@pytest.mark.parametrize("program", [old_value_later, copy_of_an_input, copy_of_a_result, equal_copies, constants])
def test_an_op_writes_a_copy_where_others_read_the_original(program, add_one, device):
    def fn(st, x):
        return program(add_one, st, x)

    st, x = torch.arange(8.0, device=device), torch.arange(8.0, device=device)
    (theirs, its), (mine, ours) = [(st.clone(), x.clone()) for _ in range(2)]
    torch.testing.assert_close(compiled(fn)(mine, ours), fn(theirs, its))
    torch.testing.assert_close((mine, ours), (theirs, its))


def test_old_values_that_are_read_after_the_op(refuse, device):
    def fn(st, x):
        old = st.clone()
        st.add_(1)
        return refuse(x) + old

    st, x = torch.zeros(8, device=device), torch.ones(8, device=device)
    expected = fn(st.clone(), x)
    torch.testing.assert_close(compiled(fn)(st, x), expected)
    assert torch.equal(st, torch.ones_like(st))


def test_writes_around_an_index_that_is_checked(device):
    if device == "cuda":
        pytest.skip("checks are read after the launch: test_cuda.py")

    def before(st, x, i):
        st.add_(1)
        return x[i]

    def after(st, x, i):
        y = x[i] * 2
        st.mul_(3).add_(y)
        return y

    inputs = torch.ones(8), torch.randn(8), torch.tensor([1, 2, 3, 4, 5, 6, 7, 8])
    raises_as_eager(before, *inputs, written=("args[0]",), error=IndexError)
    raises_as_eager(after, *inputs, written=(), error=IndexError)


def test_writes_in_place_through_indices_keep_their_order(refuse, device):
    def fn(st, other, i, x):
        st.index_add_(0, i, x)
        y = refuse(x)
        other.index_add_(0, i, x)
        return y

    i, x = torch.tensor([1, 5], device=device), -torch.ones(2, device=device)
    raises_as_eager(fn, torch.zeros(8, device=device), torch.zeros(8, device=device), i, x, written=("args[0]",))


def test_fusion_goes_on_where_nothing_raises(device):
    def fn(st, x):
        y = torch.sin(x @ x)
        st.mul_(0.9).add_(y)
        return y * 2

    compiled(fn)(torch.zeros(8, 8, device=device), torch.randn(8, 8, device=device))
    assert cxxinductor.counters()["kernels"] == 1
