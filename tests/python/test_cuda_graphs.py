"""Option cuda_graphs: recorded calls give what calls without recordings give, in memory of the caller's own."""

import gc
import threading

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import cxxinductor

pytestmark = [pytest.mark.gpu, pytest.mark.step_by_step]
GRAPHS = {"cuda_graphs": "on"}


def both(fn, **options):
    """The function compiled without recordings, and with them."""
    plain = torch.compile(fn, backend="cxxinductor", options=options)
    return plain, torch.compile(fn, backend="cxxinductor", options={**GRAPHS, **options})


def replays():
    return cxxinductor.counters()["graph_replays"]


def captured(run, x):
    """A CUDA graph of the user's around a call that has run before, and the call's result."""
    for _ in range(6):
        run(x)
    torch.cuda.synchronize()
    capture = torch.cuda.CUDAGraph()
    with torch.cuda.graph(capture):
        out = run(x)
    return capture, out


class Block(torch.nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(width), torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.mlp = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.dropout(self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)))
        return x + self.dropout(self.mlp(x))


class Net(torch.nn.Module):
    def __init__(self, width=128, dropout=0.0):
        super().__init__()
        self.blocks = torch.nn.Sequential(Block(width, dropout), Block(width, dropout))

    def forward(self, x):
        return self.blocks(x)


@torch.no_grad()
def test_results_are_those_without_graphs_and_stay_what_they_were():
    model = Net().cuda().bfloat16().eval()
    plain, graphs = both(model)
    inputs = [torch.randn(4, 32, 128, device="cuda", dtype=torch.bfloat16) for _ in range(12)]
    wanted = [plain(x) for x in inputs]
    found = [graphs(x) for x in inputs]  # all of them are held
    for w, f in zip(wanted, found):
        torch.testing.assert_close(f, w, rtol=0, atol=0)
    assert replays() >= 9


@torch.no_grad()
def test_library_calls_without_any_kernel_are_recorded():
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.Linear(96, 64)).cuda().eval()
    plain, graphs = both(model)
    inputs = [torch.randn(8, 64, device="cuda") for _ in range(8)]
    wanted = [plain(x) for x in inputs]
    cxxinductor.reset_counters()
    for w, f in zip(wanted, [graphs(x) for x in inputs]):
        torch.testing.assert_close(f, w, rtol=0, atol=0)
    assert cxxinductor.counters()["kernels"] == 0 and replays() >= 5


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_training_steps_are_those_without_graphs(dropout):
    def losses(options):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = Net(dropout=dropout).cuda().train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        run = torch.compile(model, backend="cxxinductor", options=options)
        all_losses = []
        for step in range(10):
            torch.manual_seed(step)
            x = torch.randn(4, 32, 128, device="cuda")
            loss = F.mse_loss(run(x), x.roll(1, 1))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            all_losses.append(loss.item())
        return all_losses

    wanted = losses({})
    cxxinductor.reset_counters()
    assert losses(GRAPHS) == wanted
    assert replays() > 0


@pytest.mark.parametrize("setting", ["on", "at_once"])
def test_convolutions_in_training_are_recorded(setting):
    def steps(options):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3, padding=1),
                                    torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10)).cuda().train()
        run = torch.compile(model, backend="cxxinductor", options=options)
        found = []
        for step in range(10):
            x = torch.randn(8, 3, 32, 32, device="cuda")
            loss = F.cross_entropy(run(x), torch.arange(8, device="cuda"))
            loss.backward()
            found.append((loss.item(), [p.grad.clone() for p in model.parameters()]))
            model.zero_grad()
        return found

    with torch.backends.cudnn.flags(enabled=True, deterministic=True):
        wanted = steps({})
        cxxinductor.reset_counters()
        found = steps({"cuda_graphs": setting})
    for (loss, gradients), (wanted_loss, wanted_gradients) in zip(found, wanted):
        assert loss == pytest.approx(wanted_loss, rel=1e-5)
        for g, w in zip(gradients, wanted_gradients):
            torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-5)
    assert replays() > 0


@torch.no_grad()
def test_a_cache_is_updated_in_place():
    def step(cache, x, position):
        cache[:, position] = x
        return (cache * 2).sum(0) @ x.t()

    plain, graphs = both(step)
    wanted_cache = torch.zeros(8, 64, 32, device="cuda")
    cache = wanted_cache.clone()
    for i in range(12):
        x, position = torch.randn(8, 32, device="cuda"), torch.tensor(i, device="cuda")
        wanted, found = plain(wanted_cache, x, position), graphs(cache, x, position)
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    torch.testing.assert_close(cache, wanted_cache, rtol=0, atol=0)
    assert replays() > 0


@torch.no_grad()
def test_graphs_of_many_kernels_update_themselves_where_operands_keep_moving():
    def chain(x, y):
        for step in range(30):
            x = x + x.sum(step % 2, keepdim=True) / 64
        return x + y

    plain, graphs = both(chain)
    inputs = [(torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")) for _ in range(60)]
    found = [graphs(x, y) for x, y in inputs[:12]]
    cxxinductor.wait_for_compiles()  # of the kernel that updates nodes
    found += [graphs(x, y) for x, y in inputs[12:20]]
    cxxinductor.reset_counters()
    found += [graphs(x, y) for x, y in inputs[20:]]  # held, so that every result is new memory
    counters = cxxinductor.counters()
    for (x, y), f in zip(inputs, found):
        torch.testing.assert_close(f, plain(x, y), rtol=0, atol=0)
    assert counters["graph_replays"] == 40
    assert counters["graph_patched_nodes"] <= 40


@torch.no_grad()
def test_sizes_that_vary_have_recordings_and_memory_does_not_grow():
    model = Net().cuda().eval()
    plain = torch.compile(model, backend="cxxinductor", dynamic=True)
    graphs = torch.compile(model, backend="cxxinductor", dynamic=True, options=GRAPHS)
    inputs = [torch.randn(2, length, 128, device="cuda") for length in range(8, 48)]
    wanted = [plain(x) for x in inputs]
    for call in range(200):
        graphs(inputs[call % 40])
    torch.cuda.synchronize()
    reserved, recordings = torch.cuda.memory_reserved(), cxxinductor.counters()["graph_recordings"]
    for call in range(9800):
        found = graphs(inputs[call % 40])
        if call < 40:
            torch.testing.assert_close(found, wanted[call % 40], rtol=1e-5, atol=1e-5)
    torch.cuda.synchronize()
    assert torch.cuda.memory_reserved() <= reserved
    assert cxxinductor.counters()["graph_recordings"] - recordings <= recordings
    assert replays() > 400


@torch.no_grad()
def test_threads_with_and_without_streams_of_their_own():
    model = Net().cuda().eval()
    plain, graphs = both(model)
    inputs = [torch.randn(4, 32, 128, device="cuda") for _ in range(6)]
    wanted = [plain(x) for x in inputs]
    graphs(inputs[0])
    errors = []

    def work(number, own_stream):
        stream = torch.cuda.Stream() if own_stream else torch.cuda.current_stream()
        try:
            with torch.no_grad(), torch.cuda.stream(stream):
                for _ in range(40):
                    found = graphs(inputs[number])
                    torch.testing.assert_close(found, wanted[number], rtol=1e-5, atol=1e-5)
        except BaseException as error:
            errors.append(error)

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(i, i % 2 == 0)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    assert replays() > 0


@torch.no_grad()
def test_a_graph_of_the_user_captures_kernels():
    model = Net().cuda().eval()
    _, graphs = both(model)
    static = torch.randn(4, 32, 128, device="cuda")
    capture, out = captured(graphs, static)
    other = torch.randn_like(static)
    static.copy_(other)
    capture.replay()
    torch.testing.assert_close(out, graphs(other), rtol=1e-5, atol=1e-5)


def peak(fn):
    """Bytes that a call takes at most, beside what was there before."""
    for _ in range(6):
        fn()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    fn()
    return torch.cuda.max_memory_allocated() - before


@torch.no_grad()
def test_peak_memory_is_that_without_graphs():
    model = Net(512).cuda().bfloat16().eval()
    plain, graphs = both(model)
    x = torch.randn(16, 512, 512, device="cuda", dtype=torch.bfloat16)
    assert peak(lambda: graphs(x)) <= 1.05 * peak(lambda: plain(x))


def test_what_nobody_holds_is_given_back_before_more_memory_is_taken():
    """The backward pass gives the logits back, which are an output that the caller drops, before it takes the gradient of x."""
    x = torch.randn(4096, 1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    w = torch.randn(1024, 32768, device="cuda", dtype=torch.bfloat16)

    def fn(x, w):
        logits = x @ w
        return logits.float().logsumexp(-1).mean(), logits

    def step(run):
        loss = run(x, w)[0]
        loss.backward()
        x.grad = None

    plain, graphs = both(fn)
    most = peak(lambda: step(plain)) + (4 << 20)
    assert peak(lambda: step(graphs)) <= most
    assert replays() > 0


@torch.no_grad()
def test_blocks_that_pass_two_large_values_on_are_one_recording():
    model = torch.nn.Sequential(*(Block(768, 0.0) for _ in range(6))).cuda().bfloat16().eval()
    plain, graphs = both(model)
    x = torch.randn(32, 197, 768, device="cuda", dtype=torch.bfloat16)
    assert peak(lambda: graphs(x)) <= 1.05 * peak(lambda: plain(x)) + (4 << 20)
    before = replays()
    graphs(x)
    assert replays() == before + 1


def test_explain_says_what_is_not_recorded():
    text = str(cxxinductor.explain(torch.compile(lambda x: torch.bernoulli(x.sigmoid()) + 1, backend="cxxinductor", options=GRAPHS),
                                   torch.randn(64, device="cuda")))
    _, found = text.split("CUDA graphs (on):")
    assert "not recorded: " in found and "bernoulli" in found


def test_explain_says_that_sizes_which_are_data_are_not_recorded():
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(lambda x: x.nonzero().float() * 2 + 1, backend="cxxinductor", options=GRAPHS)
        text = str(cxxinductor.explain(compiled, torch.randn(64, device="cuda")))
    assert "not recorded: sizes follow from data of the call" in text


@torch.no_grad()
def test_kernels_alone_keep_their_recording_under_other_settings():
    graphs = both(lambda x: (x + x.sum(0, keepdim=True)).softmax(1).sum(0, keepdim=True) * x)[1]
    x = torch.randn(512, 512, device="cuda")
    for _ in range(6):
        graphs(x)
    found = cxxinductor.counters()
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=not torch.backends.cudnn.allow_tf32):
        graphs(x)
    assert cxxinductor.counters()["graph_recordings"] == found["graph_recordings"] and replays() == found["graph_replays"] + 1


@torch.no_grad()
def test_calls_under_other_settings_have_recordings_of_their_own():
    """TF32 of convolutions is nothing that Dynamo guards on."""
    model = torch.nn.Sequential(torch.nn.Conv2d(64, 64, 3), torch.nn.ReLU(), torch.nn.Conv2d(64, 64, 3)).cuda().eval()
    plain, graphs = both(model)
    x = torch.randn(8, 64, 16, 16, device="cuda")
    found = {}
    for allow_tf32 in (True, False, True):
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=allow_tf32):
            wanted, before = plain(x), replays()
            for _ in range(6):
                found[allow_tf32] = graphs(x)
                torch.testing.assert_close(found[allow_tf32], wanted, rtol=1e-5, atol=1e-5)
            assert replays() > before
    assert not torch.equal(found[True], found[False])


@torch.no_grad()
def test_a_graph_of_the_user_keeps_constants_of_calls_through_aten():
    compiled = torch.compile(lambda x: x + torch.tensor([1.0, 2.0, 4.0], device="cuda"), backend="cxxinductor", options={"tier": "aten"})
    x = torch.ones(3, device="cuda")
    capture, out = captured(compiled, x)
    del compiled
    torch._dynamo.reset()
    gc.collect()
    held = [torch.full((3,), 7.0, device="cuda") for _ in range(64)]
    capture.replay()
    torch.testing.assert_close(out, torch.tensor([2.0, 3.0, 5.0], device="cuda"))
    assert len(held) == 64


@torch.no_grad()
def test_errors_of_recordings_leave_nothing_behind():
    """A call that waits for the GPU cannot be recorded; in the first call a mode of PyTorch's, in Python, stands before each operator."""
    run = torch.compile(lambda x: torch.linalg.inv(x) * 2, backend="cxxinductor", options={"cuda_graphs": "at_once"})
    x = torch.eye(4, device="cuda") * 2
    for _ in range(4):
        torch.testing.assert_close(run(x), torch.eye(4, device="cuda"))
    with pytest.raises(torch.linalg.LinAlgError):
        run(torch.zeros(4, 4, device="cuda"))


@torch.no_grad()
def test_settings_that_change_are_those_of_each_call():
    conv = torch.nn.Conv2d(64, 64, 3, padding=1).cuda().eval()
    _, graphs = both(lambda x: conv(x).relu())
    x = torch.randn(8, 64, 32, 32, device="cuda")
    truth = F.conv2d(x.double(), conv.weight.double(), conv.bias.double(), padding=1).relu()
    errors = {}
    for allowed in (True, False):
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=allowed):
            for _ in range(6):
                found = graphs(x)
        errors[allowed] = (found.double() - truth).abs().max().item()
    assert errors[False] < errors[True] / 10


@torch.no_grad()
def test_fourier_transforms_run_by_themselves():
    """Their plans have tables that PyTorch's cache of plans frees."""
    fn = lambda x: torch.fft.rfft(x * 2 + 1).real * 3  # noqa: E731
    plain, graphs = both(fn)
    for size in (64, 100, 64, 64, 64, 64):
        x = torch.randn(8, size, device="cuda")
        torch.testing.assert_close(graphs(x), plain(x))
        torch.backends.cuda.cufft_plan_cache.clear()


@torch.no_grad()
def test_a_dispatch_mode_sees_all_calls():
    class Counting(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))

    x, w = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")
    plain, graphs = both(lambda x: (x @ w).relu() @ w)
    for _ in range(4):
        graphs(x)
    before = replays()
    assert before > 0
    with Counting() as mode:
        found = graphs(x)
    torch.testing.assert_close(found, plain(x), rtol=0, atol=0)
    assert mode.calls >= 2 and replays() == before
