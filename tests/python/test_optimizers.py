"""Steps of torch.optim under torch.compile: numbers against eager, launches a step, and no recompiles while steps go on."""

import pytest
import torch

import cxxinductor
from cxxinductor import reports

# Matrices, vectors, odd and single numbers of elements, a scalar, a tensor without elements, a strided one.
SIZES = [(64, 48), (48,), (33, 7), (5,), (1,), (), (0, 4), (64, 48), (3, 8, 2), (129,)]

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, dict(lr=0.05)),
    "sgd nesterov decay": (torch.optim.SGD, dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "sgd dampening maximize": (torch.optim.SGD, dict(lr=0.05, momentum=0.9, dampening=0.1, maximize=True)),
    "adam": (torch.optim.Adam, dict(lr=0.01)),
    "adam decay amsgrad": (torch.optim.Adam, dict(lr=0.01, weight_decay=0.02, amsgrad=True)),
    "adamw": (torch.optim.AdamW, dict(lr=0.01)),
    "adamw capturable": (torch.optim.AdamW, dict(lr=0.01, capturable=True)),
}


def parameters(device, sizes=SIZES, dtype=torch.float32):
    generator = torch.Generator().manual_seed(7)
    made = [torch.randn(size, generator=generator).to(dtype) for size in sizes]
    made.append(torch.randn(6, 10, generator=generator).to(dtype).t())
    return [torch.nn.Parameter(p.to(device)) for p in made]


def give_gradients(params, step):
    generator = torch.Generator().manual_seed(100 + step)
    for p in params:
        p.grad = torch.randn(p.shape, generator=generator).to(p)


def compiled_step(optimizer, **options):
    @torch.compile(backend="cxxinductor", options=options or None)
    def step():
        optimizer.step()

    return step


def twins(device, cls, options, **kinds):
    ours, eager = parameters(device, **kinds), parameters(device, **kinds)
    if options.get("capturable") and device == "cpu":
        options = {**options, "capturable": False}
    return ours, cls(ours, foreach=True, **options), eager, cls(eager, foreach=True, **options)


def assert_alike(ours, eager, steps, tolerance=2e-6):
    for p, q in zip(ours, eager):
        torch.testing.assert_close(p, q, rtol=tolerance * steps, atol=tolerance * steps)


def states(optimizer):
    return [value for p in optimizer.param_groups[0]["params"] for _, value in sorted(optimizer.state[p].items())]


@pytest.mark.filterwarnings("error:cxxinductor")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps(name, device):
    ours, optimizer, eager, reference = twins(device, *OPTIMIZERS[name])
    step = compiled_step(optimizer)
    for i in range(20):
        give_gradients(ours, i)
        give_gradients(eager, i)
        step()
        reference.step()
        if i == 3:
            graphs = cxxinductor.counters()["graphs"]
    assert_alike(ours, eager, 20)
    for a, b in zip(states(optimizer), states(reference)):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a.cpu(), b.cpu(), rtol=1e-5, atol=1e-6)
    counters = cxxinductor.counters()
    assert counters["graphs"] == graphs, "a step was compiled again"
    assert counters["aten_fallback"] == counters["eager_fallback"] == 0
    assert counters["extern"] == 0, "a part of the step is no kernel"


def launches(found):
    return sum(row["launches"] for report in found for row in report.details["kernels"])


@pytest.mark.parametrize(
    "cls, options, most",
    [(torch.optim.SGD, dict(lr=0.1, momentum=0.9), 4), (torch.optim.AdamW, {}, 7)],
)
def test_many_parameters_are_few_launches(cls, options, most, device):
    sizes = [(8 + i % 7, 16) for i in range(50)] + [(3 + i % 5,) for i in range(20)]
    params = parameters(device, sizes=sizes)[:-1]
    optimizer = cls(params, foreach=True, **options)
    step = compiled_step(optimizer)
    give_gradients(params, 0)
    step()  # makes the state
    with reports.collect() as found:
        torch._dynamo.reset()
        step()
    assert len(found) == 1 and 0 < launches(found) <= most
    before = [p.data_ptr() for p in params]
    step()
    assert before == [p.data_ptr() for p in params]


def test_compile_time_grows_with_the_parameters(device):
    """What the C++ compiler needs beside the kernels' own compiler: seconds for hundreds of parameters, and no more a parameter."""
    seconds = {}
    for count in (20, 80):
        params = parameters(device, sizes=[(16, 8 + i % 9) for i in range(count)])[:-1]
        optimizer = torch.optim.AdamW(params, foreach=True)
        give_gradients(params, 0)
        torch._dynamo.reset()
        with reports.collect() as found:
            compiled_step(optimizer)()
        stages = dict(found[-1].details["times"])
        seconds[count] = sum(time for stage, time in stages.items() if stage != "compile kernels")
    assert seconds[80] < 3
    assert seconds[80] < 10 * seconds[20] + 0.5


def test_two_groups(device):
    def make():
        params = parameters(device)
        half = len(params) // 2
        groups = [{"params": params[:half], "lr": 0.1}, {"params": params[half:], "lr": 0.01, "weight_decay": 0.1}]
        return params, torch.optim.AdamW(groups, foreach=True)

    (ours, optimizer), (eager, reference) = make(), make()
    step = compiled_step(optimizer)
    for i in range(5):
        give_gradients(ours, i)
        give_gradients(eager, i)
        step()
        reference.step()
    assert_alike(ours, eager, 5)


@pytest.mark.parametrize("where", ["device", pytest.param("cpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("cls", [torch.optim.SGD, torch.optim.AdamW])
def test_learning_rate_in_a_tensor(cls, where, device):
    """A schedule that writes the tensor needs no recompile, wherever the tensor lives."""
    place = device if where == "device" else "cpu"
    ours, eager = parameters(device), parameters(device)
    capturable = {} if cls is torch.optim.SGD else {"capturable": True}
    optimizer = cls(ours, lr=torch.tensor(0.05, device=place), foreach=True, **capturable)
    reference = cls(eager, lr=0.05, foreach=True)
    step = compiled_step(optimizer)
    for i in range(6):
        give_gradients(ours, i)
        give_gradients(eager, i)
        rate = 0.05 / (1 + i)
        optimizer.param_groups[0]["lr"].fill_(rate)
        reference.param_groups[0]["lr"] = rate
        step()
        reference.step()
        if i == 3:
            graphs = cxxinductor.counters()["graphs"]
    assert_alike(ours, eager, 6)
    assert cxxinductor.counters()["graphs"] == graphs
    assert cxxinductor.counters()["aten_fallback"] == cxxinductor.counters()["eager_fallback"] == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_dtypes(dtype, device):
    ours, optimizer, eager, reference = twins(device, torch.optim.AdamW, dict(lr=0.01), dtype=dtype)
    step = compiled_step(optimizer)
    for i in range(3):
        give_gradients(ours, i)
        give_gradients(eager, i)
        step()
        reference.step()
    # Compiled steps count in a tensor of f32, and so do their corrections of the bias, whatever the parameters are.
    assert_alike(ours, eager, 3, 4e-3 if dtype == torch.bfloat16 else 1e-6)


@pytest.mark.parametrize("check", ["interp", "eager"])
def test_checked_step(check, device):
    ours, optimizer, eager, reference = twins(device, torch.optim.AdamW, dict(lr=0.01))
    step = compiled_step(optimizer, check=check)
    for i in range(3):
        give_gradients(ours, i)
        give_gradients(eager, i)
        step()
        reference.step()
    assert_alike(ours, eager, 3)


def test_unaligned_parameters(device):
    """Slices of a flat buffer, as some libraries keep parameters: addresses that wide loads cannot take."""

    def make():
        flat = torch.randn(4096, generator=torch.Generator().manual_seed(3)).to(device)
        params = [torch.nn.Parameter(flat[1 + 256 * i : 1 + 256 * i + 64].clone()) for i in range(8)]
        for i, p in enumerate(params):
            if i % 2:
                p.data = flat[1 + 256 * i : 1 + 256 * i + 64]
        return params

    ours, eager = make(), make()
    optimizer, reference = (torch.optim.AdamW(p, foreach=True) for p in (ours, eager))
    step = compiled_step(optimizer)
    for i in range(3):
        give_gradients(ours, i)
        give_gradients(eager, i)
        step()
        reference.step()
    assert_alike(ours, eager, 3)


def test_dumped_kernels_of_a_batch_run_alone(device, tmp_path):
    params = parameters(device, sizes=[(16, 8 + i) for i in range(9)])[:-1]
    optimizer = torch.optim.AdamW(params, foreach=True)
    give_gradients(params, 0)
    compiled_step(optimizer, dump="all", dump_dir=str(tmp_path))()
    texts = [path.read_text() for path in tmp_path.glob("*/kernels/*.plan")]
    assert texts and all("grouped_launch @" in text for text in texts)
    for text in texts:
        arguments = cxxinductor._C.plan_arguments(text, {})["tensors"]
        tensors = [torch.ones(a["sizes"], device=a["device"]) for a in arguments]
        load = cxxinductor._C.load_plan(text, None, cxxinductor.config.resolve({"dump": ""}))
        load(tensors)


def test_training_loop(device):
    def make():
        torch.manual_seed(1)
        model = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(4))).to(device)
        return model, torch.optim.AdamW(model.parameters(), foreach=True, lr=1e-3)

    (ours, optimizer), (eager, reference) = make(), make()
    step = compiled_step(optimizer)
    x = torch.randn(16, 32, device=device)
    for _ in range(8):
        for model in (ours, eager):
            model.zero_grad(set_to_none=True)
            model(x).pow(2).mean().backward()
        step()
        reference.step()
    assert_alike(list(ours.parameters()), list(eager.parameters()), 8, 1e-5)
