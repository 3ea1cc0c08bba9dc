"""Several GPUs of one host: steps of DDP and FSDP2, and the first step with empty caches, on one rank and on all of them.

Usage: distributed.py [--out DIR] [--device cuda|cpu] [--ranks N] [--parts ddp,fsdp,cold] [--backends NAME,...] [--blocks N] [--keep]

ddp, fsdp: training steps of a GPT-2-medium shape with fused AdamW, bf16 (ddp: autocast; fsdp: bf16 gathers, f32 reductions), 8 sequences of 1024
tokens per GPU. The backends take turns in one group of processes; a step starts behind a barrier and takes as long as on the slowest rank. --blocks:
so many blocks of the model are sharded, and gathered, together. Backend "eager": the model without torch.compile.
cold: DistilGPT2 under DDP in new processes with empty cache folders, which the ranks share: seconds from before torch.compile to the end of the first
step. The model is built and has done a step in eager mode before. --device cpu: tiny shapes over gloo, to try the script; writes
distributed_cpu.json, which no table shows. --keep: parts that are not measured stay as an earlier run on such GPUs has written them.
"""

import contextlib
import dataclasses
import json
import math
import os
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import transformers as tf
from timing import argument_parser, load, parse_for_cuda, save
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

import cxxinductor

PARTS = ("ddp", "fsdp", "cold")
BACKENDS = {
    "eager": None,
    "inductor": {"backend": "inductor"},
    "cxxinductor": {"backend": "cxxinductor"},
    "cxxinductor graphs": {"backend": "cxxinductor", "options": {"cuda_graphs": "on"}},
}
GROUP_TIMEOUT = timedelta(seconds=150)  # ranks wait for each other's compiles
GROUP_LIMIT = 300  # seconds, after which a group of processes is ended


@dataclasses.dataclass(frozen=True)
class Sizes:
    trained: dict  # of GPT2Config, for ddp and fsdp
    first_step: dict  # the same for cold
    tokens: tuple[int, int]  # sequences per rank, length
    first_step_tokens: tuple[int, int]
    repeats: int
    backends: str
    blocks: int = 1  # that FSDP2 shards together


TINY = {"n_layer": 1, "n_embd": 64, "n_head": 4, "vocab_size": 256, "bos_token_id": 0, "eos_token_id": 0}
SIZES = {
    "cuda": Sizes({"n_layer": 24, "n_embd": 1024, "n_head": 16}, {"n_layer": 6}, (8, 1024), (16, 512), 24, "inductor,cxxinductor,cxxinductor graphs"),
    "cpu": Sizes(TINY, TINY, (2, 32), (2, 32), 3, "inductor,cxxinductor"),
}


def wait_for(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def data_parallel(model, device):
    return DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)


def fully_sharded(model, device, blocks):
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if device.type == "cuda" else MixedPrecisionPolicy()
    mesh = dist.init_device_mesh(device.type, (dist.get_world_size(),))
    for first in range(0, len(model.transformer.h), blocks):
        fully_shard(list(model.transformer.h[first : first + blocks]), mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def build(part, config, device, blocks):
    torch.manual_seed(0)
    with device:
        model = tf.GPT2LMHeadModel(tf.GPT2Config(**config)).train()
    return fully_sharded(model, device, blocks) if part == "fsdp" else data_parallel(model, device)


def compiled(model, backend):
    return torch.compile(model, dynamic=False, **BACKENDS[backend]) if BACKENDS[backend] else model


def stepper(part, model, shape, rank, device):
    """step(run): forward of run, which is the model or its compiled form, backward and optimizer."""
    generator = torch.Generator(device).manual_seed(rank)
    vocabulary = (model.module if isinstance(model, DistributedDataParallel) else model).config.vocab_size
    tokens = torch.randint(0, vocabulary, shape, device=device, generator=generator)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    precision = torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" and part != "fsdp" else contextlib.nullcontext()

    def step(run):
        with precision:
            loss = run(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def ready_step(part, backend, sizes, rank, device):
    """A step whose kernels are all compiled, and recorded where the backend does that."""
    model = build(part, sizes.trained, device, sizes.blocks)
    run = compiled(model, backend)
    step = stepper(part, model, sizes.tokens, rank, device)
    for _ in range(6):
        step(run)
    cxxinductor.wait_for_compiles()
    for _ in range(4):
        step(run)
    wait_for(device)
    return lambda: step(run)


def errors_of_ranks(store, name, rank, text):
    """Every rank's error text; they agree, through the store, whether all go on."""
    store.set(f"{name} {rank}", text or "none")
    texts = [store.get(f"{name} {other}").decode() for other in range(dist.get_world_size())]
    return [text for text in texts if text != "none"]


def measure_steps(part, backends, sizes, rank, device, store):
    found = {"step_seconds": {}, "ready_seconds": {}, "loss": {}, "counters": {}, "failed": {}}
    steps = {}
    for name in backends:
        step, text = None, None
        cxxinductor.reset_counters()
        start = time.perf_counter()
        try:
            step = ready_step(part, name, sizes, rank, device)
        except Exception as error:  # one broken backend must not hide the others' figures
            text = f"{type(error).__name__}: {error}"
        found["ready_seconds"][name] = time.perf_counter() - start
        if errors := errors_of_ranks(store, name, rank, text):
            found["failed"][name] = errors[0][:2000]
        else:
            steps[name] = step
            found["counters"][name] = cxxinductor.counters()
        if rank == 0:
            state = "FAILED" if errors else "ready"
            print(f"  {part}, ranks: {dist.get_world_size()}, {name}: {state} after {found['ready_seconds'][name]:.1f} s", flush=True)
    times = {name: [] for name in steps}
    for _ in range(sizes.repeats):
        for name, step in steps.items():
            dist.barrier()
            wait_for(device)
            start = time.perf_counter()
            loss = step()
            wait_for(device)
            times[name].append(time.perf_counter() - start)
            found["loss"][name] = loss.item()
    found["step_seconds"] = times
    return found


def measure_first_step(part, backends, sizes, rank, device, store):
    (name,) = backends
    model = build(part, sizes.first_step, device, sizes.blocks)
    step = stepper(part, model, sizes.first_step_tokens, rank, device)
    step(model)
    dist.barrier()
    wait_for(device)
    start = time.perf_counter()
    step(compiled(model, name))
    wait_for(device)
    return {"first_step": time.perf_counter() - start}


def work(rank, part, ranks, device_type, backends, sizes, folder):
    """What each process of a group does; its figures go to a file of the folder."""
    device = torch.device(device_type, rank if device_type == "cuda" else None)
    place = {}
    if device_type == "cuda":
        torch.cuda.set_device(device)
        place["device_id"] = device
    else:
        torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = 64  # the backends' graphs of a function are counted together
    store = dist.FileStore(f"{folder}/store", ranks)
    store.set_timeout(GROUP_TIMEOUT)
    communication = "nccl" if device_type == "cuda" else "gloo"
    dist.init_process_group(communication, store=store, rank=rank, world_size=ranks, timeout=GROUP_TIMEOUT, **place)
    measure = measure_first_step if part == "cold" else measure_steps
    found = measure(part, backends, sizes, rank, device, dist.PrefixStore("errors", store))
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def run_group(part, ranks, device, backends, sizes, caches):
    """The figures of each rank. The processes begin with the caches on disk that the folder has."""
    os.environ.update({"CXXINDUCTOR_CACHE_DIR": f"{caches}/cxxinductor", "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
                       "TRITON_CACHE_DIR": f"{caches}/triton"})
    with tempfile.TemporaryDirectory() as folder:
        end = time.monotonic() + GROUP_LIMIT
        group = torch.multiprocessing.spawn(work, (part, ranks, device, backends, sizes, folder), ranks, join=False)
        try:
            while not group.join(timeout=5):
                if time.monotonic() > end:
                    raise TimeoutError(f"{part}, ranks: {ranks}: not done after {GROUP_LIMIT} s")
        finally:
            for process in group.processes:
                if process.is_alive():
                    process.kill()
        return [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(ranks)]


def steps_row(part, ranks, device, backends, sizes, caches):
    found = run_group(part, ranks, device, backends, sizes, caches)
    tokens = ranks * math.prod(sizes.tokens)
    times = {name: [max(of_ranks) for of_ranks in zip(*(f["step_seconds"][name] for f in found))] for name in found[0]["step_seconds"]}
    seconds = {name: statistics.median(steps) for name, steps in times.items()}
    return {
        "part": part, "ranks": ranks, "blocks": sizes.blocks,
        "milliseconds": {name: 1e3 * s for name, s in seconds.items()},
        "tokens_per_second": {name: tokens / s for name, s in seconds.items()},
        **{key: found[0][key] for key in ("ready_seconds", "loss", "counters", "failed")},
    }  # fmt: skip


def cold_row(part, ranks, device, backends, sizes):
    row = {"part": part, "ranks": ranks, "first_step_seconds": {}, "failed": {}}
    for name in backends:
        with tempfile.TemporaryDirectory() as caches:
            try:
                found = run_group(part, ranks, device, [name], sizes, caches)
                row["first_step_seconds"][name] = max(f["first_step"] for f in found)
            except Exception as error:
                row["failed"][name] = str(error).strip()[-2000:]
    return row


def show(row):
    head = f"{row['part']}, ranks: {row['ranks']}: "
    if "error_message" in row:
        print(f"{head}FAILED {row['error_message']}", flush=True)
        return
    if row["part"] == "cold":
        print(head + ", ".join(f"{name} {s:.2f} s" for name, s in row["first_step_seconds"].items()) + " to the first step", flush=True)
    else:
        cells = (f"{name} {row['tokens_per_second'][name]:.0f} tokens/s ({ms:.2f} ms)" for name, ms in row["milliseconds"].items())
        print(f"{head}{', '.join(cells)}; loss {row['loss']}", flush=True)
    for name, text in row["failed"].items():
        print(f"{head}{name} FAILED {text[:600]}", flush=True)


def relative(rows):
    """{part: {backend: figure on N ranks in relation to one}}: scaling (tokens/s on N over N x 1), of cold the time over one rank's."""
    found = {}
    for part in dict.fromkeys(row["part"] for row in rows):
        measured = {row["ranks"]: row for row in rows if row["part"] == part and "error_message" not in row}
        one = measured.pop(1, None)
        for row in measured.values() if one else ():
            if part == "cold":
                a, b, scale = row["first_step_seconds"], one["first_step_seconds"], 1
            else:
                a, b, scale = row["tokens_per_second"], one["tokens_per_second"], row["ranks"]
            found[part] = {name: a[name] / (scale * b[name]) for name in a if name in b}
    return found


def measured_rows(parts, counts, device, backends, sizes, caches):
    for part in parts:
        for ranks in counts:
            try:
                if part == "cold":
                    compiling = [name for name in backends if name not in ("eager", "cxxinductor graphs")]  # the first call is not recorded
                    row = cold_row(part, ranks, device, compiling, sizes)
                else:
                    row = steps_row(part, ranks, device, backends, sizes, caches)
            except Exception as error:  # one broken row must not hide the others' figures
                row = {"part": part, "ranks": ranks, "error_message": str(error)[-2000:]}
            show(row)
            yield row


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--device", choices=tuple(SIZES), default="cuda")
    parser.add_argument("--ranks", type=int, help="processes of the larger group, one per GPU; default: the number of GPUs, on the CPU 2")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated; default: all")
    parser.add_argument("--backends", help=f"comma-separated, of: {', '.join(BACKENDS)}; default: all that compile, on the CPU without graphs")
    parser.add_argument("--blocks", type=int, default=1, help="fsdp: blocks of the model that are sharded together")
    parser.add_argument("--keep", action="store_true", help="beside what is measured, keep what the JSON has of as many ranks")
    args = parse_for_cuda(parser)
    cuda = args.device == "cuda"
    ranks = args.ranks or (torch.cuda.device_count() if cuda else 2)
    if cuda and ranks > torch.cuda.device_count():
        parser.error(f"--ranks: expected at most one per GPU ({torch.cuda.device_count()}), found {ranks}")
    sizes = dataclasses.replace(SIZES[args.device], blocks=args.blocks)
    backends, parts = (args.backends or sizes.backends).split(","), args.parts.split(",")
    for option, found, known in (("--backends", backends, BACKENDS), ("--parts", parts, PARTS)):
        if unknown := set(found) - set(known):
            parser.error(f"{option}: expected some of {', '.join(known)}, found {', '.join(sorted(unknown))}")
    name = "distributed" if cuda else "distributed_cpu"
    machine = None if cuda else {"cpus": os.cpu_count(), "torch": torch.__version__}
    kept = load(name, args.out) if args.keep and cuda else {}
    rows = [row for row in kept.get("rows", []) if kept["ranks"] == ranks and row["part"] not in parts]
    with tempfile.TemporaryDirectory() as caches:  # of ddp and fsdp: what one rank compiled is there for more ranks
        for row in measured_rows(parts, sorted({1, ranks}), args.device, backends, sizes, caches):
            rows.append(row)
            compared = relative(rows)
            save(name, {"ranks": ranks, "rows": rows, "relative_to_one_rank": compared}, args.out, machine)
    for part, values in compared.items():
        what = "time over one rank's" if part == "cold" else f"scaling to {ranks} ranks"
        print(f"{part}, {what}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()), flush=True)


if __name__ == "__main__":
    main()
