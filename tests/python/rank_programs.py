"""Programs of several ranks: each runs in every rank of a group, in eager mode and compiled, and returns both results.

``run_rank`` is what a process of a group runs; see test_distributed.py. New tensors are on the rank's own device: the CPU, or its GPU.
"""

import datetime
import functools
import os
import pickle
import time
import traceback
import warnings

import torch
import torch.distributed as dist
from torch import nn

import cxxinductor
from cxxinductor import reports

GROUP_TIMEOUT = datetime.timedelta(seconds=60)


def join_group(store, rank, device="cpu", ranks=2):
    torch.set_num_threads(1)
    place = {}
    if device == "cuda":
        torch.cuda.set_device(rank)
        place["device_id"] = torch.device("cuda", rank)
        torch.set_default_device(place["device_id"])
    backend = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=GROUP_TIMEOUT, **place)


def own_device():
    return torch.get_default_device()


def mesh():
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(own_device().type, (2,))


def results_file(store, rank):
    return f"{store}.results_of_{rank}"


def run_rank(store, rank, programs, environment=(), device="cpu"):
    """Joins a group and runs programs in turn: {name: what it returned, the counters, warnings of ours} or the error's text.

    After each program the file of results_file has what there is so far: NCCL's watchdog ends a process that waits too long.
    """
    os.environ.update(environment)
    join_group(store, rank, device)
    results = {}
    for program in programs:
        torch._dynamo.reset()
        cxxinductor.reset_counters()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.detach().cpu(), program(rank))
            except Exception:
                results[program.__name__] = traceback.format_exc()
        if program.__name__ not in results:
            ours = [str(w.message) for w in caught if "cxxinductor" in str(w.message)]
            results[program.__name__] = result, cxxinductor.counters(), ours
        with open(results_file(store, rank), "wb") as file:
            pickle.dump(results, file)
        if isinstance(results[program.__name__], str):
            return results  # the other ranks are elsewhere now
    dist.destroy_process_group()
    return results


def compiled(fn, **settings):
    return torch.compile(fn, backend="cxxinductor", **settings)


def both(fn, *inputs):
    """fn's results in eager mode and compiled."""
    return fn(*inputs), compiled(fn, fullgraph=True)(*inputs)


# ---- functional collectives ------------------------------------------------------------------------------------------


def collectives(rank):
    import torch.distributed._functional_collectives as functional

    group = dist.group.WORLD

    def fn(x):
        summed = functional.all_reduce(x * 2, "sum", group)
        gathered = functional.all_gather_tensor(x.exp(), 0, group)
        scattered = functional.reduce_scatter_tensor(x.sin(), "sum", 0, group)
        exchanged = functional.all_to_all_single(x.cos(), None, None, group)
        largest = functional.wait_tensor(functional.all_reduce(x + 1, "max", group))
        sent = functional.broadcast(x - 1, 0, group)
        pair = functional.all_reduce_coalesced([x, x * 3], "sum", group)
        return summed + exchanged + largest + sent + pair[0] * pair[1], gathered * 2, scattered * scattered

    torch.manual_seed(rank)
    return both(fn, torch.randn(8, 16))


def collectives_in_place(rank):
    """torch.distributed's own calls, which Dynamo makes functional."""

    def fn(x):
        summed = x * 2
        dist.all_reduce(summed)
        gathered = torch.empty(16, 16)
        dist.all_gather_into_tensor(gathered, x + 1)
        scattered = torch.empty(4, 16)
        dist.reduce_scatter_tensor(scattered, x + 3)
        return summed.relu(), gathered * 2, scattered + 1

    torch.manual_seed(rank)
    return both(fn, torch.randn(8, 16))


def an_input_written_after_its_collective(rank):
    import torch.distributed._functional_collectives as functional

    def fn(x, y):
        gathered = functional.all_gather_tensor(x, 0, dist.group.WORLD)
        total = gathered.mean()
        x.mul_(2)
        y.add_(total)
        return gathered + 1

    torch.manual_seed(rank)
    x, y = torch.randn(64, 64), torch.randn(4)
    mine, others = [x.clone(), y.clone()], [x.clone(), y.clone()]
    return (fn(*mine), mine), (compiled(fn, fullgraph=True)(*others), others)


def gradients_of_collectives(rank):
    import torch.distributed._functional_collectives as functional

    group = dist.group.WORLD

    def fn(x):
        gathered = functional.all_gather_tensor_autograd((x * 0.5).exp(), 0, group)
        scattered = functional.reduce_scatter_tensor_autograd(gathered.sin(), "sum", 0, group)
        exchanged = functional.all_to_all_single_autograd(scattered.cos(), None, None, group)
        return (exchanged * exchanged).sum()

    def run(fn):
        torch.manual_seed(rank)
        x = torch.randn(8, 16, requires_grad=True)
        loss = fn(x)
        loss.backward()
        return loss.detach(), x.grad

    return run(fn), run(compiled(fn, fullgraph=True))


# ---- joined collectives ----------------------------------------------------------------------------------------------


def started(work):
    """What work() returns, and how often each functional collective was started on this rank meanwhile."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        result = work()
    names = [event.name.removeprefix("_c10d_functional::") for event in seen.events() if event.name.startswith("_c10d_functional::")]
    return result, {name: names.count(name) for name in set(names) if name != "wait_tensor"}


def gradients_summed_one_by_one(rank):
    """The gradients of a model, each summed over the ranks. Beside eager's: results without joined calls, and what was started."""
    import torch.distributed._functional_collectives as functional

    model = stack()
    names, parameters = zip(*model.named_parameters())

    def fn(x, *values):
        from torch.func import functional_call, grad

        loss = lambda values: functional_call(model, dict(zip(names, values)), (x,)).pow(2).mean()  # noqa: E731
        return [functional.all_reduce(g, "sum", dist.group.WORLD) / 2 for g in grad(loss)(list(values))]

    torch.manual_seed(rank)
    x, values = torch.randn(8, 16), [p.detach() for p in parameters]
    expected = fn(x, *values)
    joined, apart = (compiled(fn, fullgraph=True, dynamic=False, options=options) for options in ({}, {"collective_bucket_bytes": 0}))
    with reports.collect() as seen:
        joined(x, *values), apart(x, *values)
    (note,) = seen[0].details["collectives"]
    assert (note in str(seen[0]) or seen[0].details["fallback_reason"]) and seen[1].details["collectives"] == [], seen
    assert note.startswith(f"{len(values)} x all_reduce joined into one call"), note
    found, calls = started(lambda: joined(x, *values))
    alone, calls_alone = started(lambda: apart(x, *values))
    same = all(torch.equal(a, b) for a, b in zip(found, alone))
    count = len(values)
    wanted = True, {"all_reduce_coalesced": 1}, {"all_reduce": count}
    return (expected, wanted), (found, (same, calls, calls_alone))


def sizes_that_vary_on_one_rank(rank):
    """As where batches have equal numbers of tokens in rows of other lengths: one rank's graph gets symbolic sizes."""
    import torch.distributed._functional_collectives as functional

    def fn(x):
        twice, next_ = ((x * 2).reshape(-1), (x + 1).reshape(-1))
        return functional.all_reduce(twice, "sum", dist.group.WORLD) * functional.all_reduce(next_, "sum", dist.group.WORLD)

    run = compiled(fn, fullgraph=True)
    inputs = [torch.randn(sizes) for sizes in ((2, 6), (3, 4) if rank else (2, 6))]
    return [fn(x) for x in inputs], [run(x) for x in inputs]


class ShardedLinear(nn.Module):
    """A linear whose parameters are shards: gathered where they are read, their gradients reduced and scattered, as FSDP2 does."""

    def __init__(self, linear, ranks):
        super().__init__()
        from torch.distributed.tensor import Shard, distribute_tensor

        self.weight, self.bias = (
            nn.Parameter(distribute_tensor(whole.detach(), ranks, [Shard(0)])) for whole in (linear.weight, linear.bias)
        )

    def forward(self, x):
        from torch.distributed.tensor import Partial, Replicate

        gathered = (shard.redistribute(placements=[Replicate()]) for shard in (self.weight, self.bias))
        weight, bias = (whole.to_local(grad_placements=[Partial("avg")]) for whole in gathered)
        return nn.functional.linear(x, weight, bias)


def shard_parameters(model, ranks):
    for block in model.blocks:
        block.up, block.down = ShardedLinear(block.up, ranks), ShardedLinear(block.down, ranks)
    return model


def sharded_parameters(rank):
    """Collectives of FSDP2 in the graph: parameters are gathered in the forward pass, gradients scattered in the backward pass."""

    def run(wrap):
        model = shard_parameters(stack(), mesh())
        forward = wrap(model)
        result = train(model, forward, seed=rank)
        x = torch.randn(8, 16)
        _, calls = started(lambda: forward(x).pow(2).mean().backward())
        return result, {name: count for name, count in calls.items() if "scatter" in name or "gather" in name}

    expected, calls = run(lambda model: model)
    found, joined_calls = run(functools.partial(compiled, fullgraph=True, dynamic=False))
    assert calls["all_gather_into_tensor"] == 8 and calls["reduce_scatter_tensor"] == 8, calls
    wanted = {"all_gather_into_tensor_coalesced": 1, "reduce_scatter_tensor_coalesced": 1}
    return (expected, wanted), (found, joined_calls)


# ---- training --------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + self.down(nn.functional.gelu(self.up(x))))


class Stack(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def stack(depth=2, width=16, inner=32):
    torch.manual_seed(0)
    return Stack([Block(width, inner) for _ in range(depth)])


def whole(tensor):
    return (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor).detach().clone()


def train(model, forward, seed, steps=2, width=16):
    """Losses, the gradients of the last step and the parameters after it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    losses = []
    for step in range(steps):
        torch.manual_seed(100 * seed + step)
        optimizer.zero_grad()
        loss = whole_loss(forward(torch.randn(8, width)))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    parameters = list(model.parameters())
    return losses, [whole(p.grad) for p in parameters], [whole(p) for p in parameters]


def whole_loss(result):
    return (result.full_tensor() if hasattr(result, "full_tensor") else result).pow(2).mean()


def data_parallel(rank, optimize, width, inner, **settings):
    from torch.nn.parallel import DistributedDataParallel

    def run(wrap):
        model = DistributedDataParallel(stack(2, width, inner), **settings)
        return train(model, wrap(model), seed=rank, width=width)

    with torch._dynamo.config.patch(optimize_ddp=optimize):
        return run(lambda model: model), run(compiled)


def ddp_in_buckets(rank):
    """Each linear fills a bucket of a megabyte, and DDPOptimizer divides the graph between buckets."""
    return data_parallel(rank, "ddp_optimizer", 64, 4096, bucket_cap_mb=1)


def ddp_whole(rank):
    return data_parallel(rank, "no_optimization", 16, 32)


def ddp_with_collectives_in_the_graph(rank):
    return data_parallel(rank, "python_reducer", 16, 32)


def fsdp(rank):
    from torch.distributed.fsdp import fully_shard

    def run(compiles):
        model, ranks = stack(), mesh()
        for block in model.blocks:
            if compiles:
                block.compile(backend="cxxinductor")
            fully_shard(block, mesh=ranks)
        fully_shard(model, mesh=ranks)
        return train(model, model, seed=rank)

    return run(False), run(True)


def fsdp_around_the_compiled_call(rank):
    from torch.distributed.fsdp import fully_shard

    def run(wrap):
        model = fully_shard(stack(), mesh=mesh())
        return train(model, wrap(model), seed=rank)

    return run(lambda model: model), run(compiled)


def tensor_parallel(rank):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    return parallelized({"up": ColwiseParallel(), "down": RowwiseParallel()}, seed=1)


def tensor_parallel_sequences(rank):
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel

    plan = {
        "": PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Shard(0), use_local_output=False),
        "up": ColwiseParallel(input_layouts=Shard(0)),
        "down": RowwiseParallel(output_layouts=Shard(0), use_local_output=False),
        "norm": SequenceParallel(sequence_dim=0),
    }
    return parallelized(plan, seed=1 + rank)


def parallelized(plan, seed):
    from torch.distributed.tensor.parallel import parallelize_module

    def run(wrap):
        block = Block(16, 32)
        torch.manual_seed(0)
        for parameter in block.parameters():
            nn.init.normal_(parameter, std=0.2)
        parallelize_module(block, mesh(), plan)
        return train(block, wrap(block), seed)

    return run(lambda block: block), run(compiled)


def pipeline(rank):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    def run(wrap):
        block = stack().blocks[rank]
        stage = PipelineStage(wrap(block), rank, 2, own_device())
        schedule = Schedule1F1B(stage, 4, loss_fn=nn.functional.mse_loss)
        torch.manual_seed(3)
        x, target, losses = torch.randn(16, 16), torch.randn(16, 16), []
        for _ in range(2):
            block.zero_grad()
            schedule.step(x) if rank == 0 else schedule.step(target=target, losses=losses)
        return [loss.detach() for loss in losses], [p.grad for p in block.parameters()]

    return run(lambda block: block), run(compiled)


# ---- faults ----------------------------------------------------------------------------------------------------------


def summed_and_scaled(x):
    import torch.distributed._functional_collectives as functional

    return functional.all_reduce(x.exp(), "sum", dist.group.WORLD) * 2


def meet_a_rank_that_dies(store, rank):
    """Rank 1 ends between two calls. Rank 0: the errors of the compiled call and of eager's, and whether it can go on."""
    join_group(store, rank)
    run, x = compiled(summed_and_scaled, fullgraph=True), torch.ones(4)
    run(x)
    if rank == 1:
        os._exit(9)
    errors = []
    for call in (run, summed_and_scaled):
        try:
            call(x)
            errors.append(None)
        except Exception as error:
            errors.append(type(error))
    alone = compiled(lambda x: x.exp() * 2)(x)
    return errors, torch.equal(alone, x.exp() * 2)


# ---- time ------------------------------------------------------------------------------------------------------------


def milliseconds_per_step(step, steps=10):
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    dist.barrier()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps * 1e3


def intervals_of(kernels):
    """Intervals of time in order, united where they overlap. kernels: (begin, end)."""
    united = []
    for begin, end in sorted(kernels):
        if united and begin <= united[-1][1]:
            united[-1][1] = max(united[-1][1], end)
        else:
            united.append([begin, end])
    return united


def overlap_of(step):
    """Milliseconds of a step in which NCCL's kernels run, and in which others run at the same time."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        step()
        torch.cuda.synchronize()
    kernels = [e for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    ranges = {True: [], False: []}
    for event in kernels:
        ranges["nccl" in event.name.lower()].append((event.time_range.start, event.time_range.end))
    collectives, others = intervals_of(ranges[True]), intervals_of(ranges[False])
    both = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in collectives for b in others)
    return sum(end - begin for begin, end in collectives) / 1e3, both / 1e3


def data_parallel_model(width, inner, depth, wrap):
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(stack(depth, width, inner))
    return model, wrap(model)


def fully_sharded_model(width, inner, depth, wrap):
    from torch.distributed.fsdp import fully_shard

    model, ranks = stack(depth, width, inner), mesh()
    for block in model.blocks:
        block.forward = wrap(block.forward)
        fully_shard(block, mesh=ranks)
    return fully_shard(model, mesh=ranks), model


def sharded_model(width, inner, depth, wrap):
    model = shard_parameters(stack(depth, width, inner), mesh())
    return model, wrap(model)


def times_of_steps(rank):
    """{program: {"eager" or "compiled": (ms per step, ms of NCCL's kernels in a step, ms of them with others at the same time)}}."""
    width, inner, depth, rows = 2048, 8192, 6, 8192
    times = {}
    for make in (data_parallel_model, fully_sharded_model, sharded_model):
        times[make.__name__] = {}
        for name, wrap in (("eager", lambda f: f), ("compiled", compiled)):
            torch._dynamo.reset()
            model, forward = make(width, inner, depth, wrap)
            x = torch.randn(rows, width)

            def step():
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = whole_loss(forward(x))
                loss.backward()
                model.zero_grad()

            times[make.__name__][name] = (milliseconds_per_step(step), *overlap_of(step))
            del model, forward, step
            torch.cuda.empty_cache()
    return (times, None), (times, None)
