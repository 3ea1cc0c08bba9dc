"""Programs of several ranks: each runs in every rank of a group, in eager mode and compiled, and returns both results.

``run_rank`` is what a process of a group runs; see test_distributed.py.
"""

import datetime
import os
import traceback
import warnings

import torch
import torch.distributed as dist
from torch import nn

import cxxinductor

GROUP_TIMEOUT = datetime.timedelta(seconds=60)


def join_group(store, rank, ranks=2):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=GROUP_TIMEOUT)


def run_rank(store, rank, programs, environment=()):
    """Joins a group and runs programs in turn: {name: what it returned, the counters, warnings of ours} or the error's text."""
    os.environ.update(environment)
    join_group(store, rank)
    results = {}
    for program in programs:
        torch._dynamo.reset()
        cxxinductor.reset_counters()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = program(rank)
            except Exception:
                return results | {program.__name__: traceback.format_exc()}  # the other ranks are elsewhere now
        ours = [str(w.message) for w in caught if "cxxinductor" in str(w.message)]
        results[program.__name__] = result, cxxinductor.counters(), ours
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
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def run(compiles):
        model, mesh = stack(), init_device_mesh("cpu", (2,))
        for block in model.blocks:
            if compiles:
                block.compile(backend="cxxinductor")
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return train(model, model, seed=rank)

    return run(False), run(True)


def fsdp_around_the_compiled_call(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def run(wrap):
        model = fully_shard(stack(), mesh=init_device_mesh("cpu", (2,)))
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
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    def run(wrap):
        block = Block(16, 32)
        torch.manual_seed(0)
        for parameter in block.parameters():
            nn.init.normal_(parameter, std=0.2)
        parallelize_module(block, init_device_mesh("cpu", (2,)), plan)
        return train(block, wrap(block), seed)

    return run(lambda block: block), run(compiled)


def pipeline(rank):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    def run(wrap):
        block = stack().blocks[rank]
        stage = PipelineStage(wrap(block), rank, 2, torch.device("cpu"))
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
