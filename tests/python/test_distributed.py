"""torch.distributed on two ranks: collectives in graphs, DDP, FSDP2, tensor parallelism, pipelines, and faults.

The programs are in rank_programs.py; one group of two processes runs them all. On the CPU over gloo; with --device cuda over NCCL, on
two GPUs.
"""

import functools
import os
import pickle

import pytest
import torch

import rank_programs
from test_faults import processes, script  # noqa: F401: a fixture

COLLECTIVES = (
    rank_programs.collectives,
    rank_programs.collectives_in_place,
    rank_programs.an_input_written_after_its_collective,
    rank_programs.gradients_of_collectives,
    rank_programs.sizes_that_vary_on_one_rank,
    rank_programs.gradients_summed_one_by_one,
    rank_programs.sharded_parameters,
)
TRAINING = (
    rank_programs.ddp_in_buckets,
    rank_programs.ddp_whole,
    rank_programs.ddp_with_collectives_in_the_graph,
    rank_programs.fsdp,
    rank_programs.fsdp_around_the_compiled_call,
    rank_programs.tensor_parallel,
    rank_programs.tensor_parallel_sequences,
    rank_programs.pipeline,
)
NAMES = [program.__name__ for program in COLLECTIVES + TRAINING]
# Graphs that a rank compiles, where it is stated how torch divides the program.
GRAPHS = {"ddp_in_buckets": 8, "ddp_whole": 2, "tensor_parallel": 2}


@pytest.fixture(autouse=True, scope="module")
def two_ranks(request):
    device = request.config.getoption("--device")
    if device == "cpu" and not torch.distributed.is_gloo_available():
        pytest.skip("needs gloo")
    if device == "cuda" and (torch.cuda.device_count() < 2 or not torch.distributed.is_nccl_available()):
        pytest.skip("needs two GPUs and NCCL")


@pytest.fixture
def on_the_cpu(device):
    if device != "cpu":
        pytest.skip("does not depend on the device")


@pytest.fixture(scope="module")
def run_ranks(processes, tmp_path_factory):  # noqa: F811
    def run(work, *arguments, timeout=120):
        """What work(store, rank, *arguments of the rank) returns in each of two processes; or what it had written when one ended."""
        store = str(tmp_path_factory.mktemp("ranks") / "store")
        calls = [(work, store, rank, *rank_arguments) for rank, rank_arguments in enumerate(arguments)]
        try:
            return processes(*calls, timeout=timeout)
        except Exception as error:
            return [results_so_far(store, rank, error) for rank in range(len(arguments))]

    return run


class Ended(dict):
    """Results of a rank whose process ended, by program; of programs that did not run, why."""

    def __init__(self, results, reason):
        super().__init__(results)
        self.reason = reason

    def get(self, name, default=None):
        return super().get(name, self.reason)


def results_so_far(store, rank, error):
    file, results = rank_programs.results_file(store, rank), {}
    if os.path.exists(file):
        with open(file, "rb") as found:
            results = pickle.load(found)
    return Ended(results, f"rank {rank} ended or timed out after {list(results)}: {error!r}")


@pytest.fixture(scope="module")
def results(run_ranks, request):
    """[{name: result} of each rank], made once."""
    arguments = COLLECTIVES + TRAINING, (), request.config.getoption("--device")
    return run_ranks(rank_programs.run_rank, arguments, arguments, timeout=400)


def check(ranks, name):
    for rank in ranks:
        result = rank.get(name, "an earlier program failed")
        assert not isinstance(result, str), result
        (expected, found), counters, messages = result
        torch.testing.assert_close(found, expected)
        yield counters, messages


@pytest.mark.parametrize("name", NAMES)
def test_ranks_agree_with_eager(results, name):
    for counters, messages in check(results, name):
        assert counters["graphs"] > 0 and counters["aten_fallback"] == 0 and counters["eager_fallback"] == 0, messages
        assert counters["graphs"] == GRAPHS.get(name, counters["graphs"])


def test_a_rank_that_cannot_compile(on_the_cpu, run_ranks, tmp_path):
    """It runs op by op through ATen, the other goes on, and the results are right."""
    programs = rank_programs.collectives, rank_programs.gradients_summed_one_by_one, rank_programs.ddp_whole
    broken = script(tmp_path, "echo 'this source is bad' >&2; exit 1\n")
    ranks = run_ranks(rank_programs.run_rank, (programs,), (programs, broken))
    for program in programs:
        (counters, _), (broken_counters, messages) = check(ranks, program.__name__)
        assert counters["graphs"] > 0 and counters["aten_fallback"] == 0
        assert broken_counters["graphs"] == 0 and broken_counters["aten_fallback"] > 0
        assert all("runs op by op through ATen" in message for message in messages) and messages


def test_a_rank_that_dies(on_the_cpu, processes, tmp_path):  # noqa: F811
    """The others' calls end with torch's own error, and their process can go on."""
    store = str(tmp_path / "store")
    dying = functools.partial(_until_it_dies, store)
    _, ((found, expected), went_on) = processes(dying, (rank_programs.meet_a_rank_that_dies, store, 0))
    assert expected is not None and found is expected and went_on


def _until_it_dies(store):
    """Rank 1, in a process of its own below this one."""
    import torch.multiprocessing

    context = torch.multiprocessing.get_context("spawn")
    rank = context.Process(target=rank_programs.meet_a_rank_that_dies, args=(store, 1))
    rank.start()
    rank.join(100)
    assert rank.exitcode == 9


@pytest.mark.gpu
def test_stages_on_two_gpus_of_one_process():
    """A pipeline without ranks: each stage on its GPU, first each compiled by itself, then both as one graph."""
    first, second = torch.device("cuda:0"), torch.device("cuda:1")

    def run(wrap_stage, wrap_all):
        blocks = rank_programs.stack().blocks
        stages = [wrap_stage(blocks[0].to(first)), wrap_stage(blocks[1].to(second))]
        whole = wrap_all(lambda x: stages[1](stages[0](x).to(second)).pow(2).mean())
        torch.manual_seed(1)
        for _ in range(2):
            loss = whole(torch.randn(8, 16).to(first))
            loss.backward()
        return loss.detach(), [p.grad for p in blocks.parameters()]

    expected = run(lambda stage: stage, lambda fn: fn)
    torch.testing.assert_close(run(rank_programs.compiled, lambda fn: fn), expected)
    torch._dynamo.reset()
    torch.testing.assert_close(run(lambda stage: stage, lambda fn: rank_programs.compiled(fn, fullgraph=True)), expected)


@pytest.mark.gpu
def test_kernels_run_while_collectives_do(run_ranks, device):
    """Steps of DDP and FSDP2 on two GPUs; the times are printed (pytest -s)."""
    arguments = (rank_programs.times_of_steps,), (), device
    ranks = run_ranks(rank_programs.run_rank, arguments, arguments, timeout=400)
    for rank, result in enumerate(ranks):
        assert not isinstance(result.get("times_of_steps"), str), result.get("times_of_steps")
        (times, _), _ = result["times_of_steps"][0]
        for program, modes in times.items():
            for mode, (step, collectives, both) in modes.items():
                print(f"rank {rank} {program} {mode}: {step:.2f} ms per step, NCCL {collectives:.2f} ms, {both:.2f} ms of it beside kernels")
            assert modes["compiled"][2] > 0, f"{program}: no kernel runs while a collective does"
