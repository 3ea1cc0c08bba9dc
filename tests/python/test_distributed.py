"""torch.distributed on two ranks over gloo: collectives in graphs, DDP, FSDP2, tensor parallelism, pipelines, and faults.

The programs are in rank_programs.py; one group of two processes runs them all.
"""

import functools

import pytest
import torch

import rank_programs
from test_faults import processes, script  # noqa: F401: a fixture

COLLECTIVES = (
    rank_programs.collectives,
    rank_programs.collectives_in_place,
    rank_programs.an_input_written_after_its_collective,
    rank_programs.gradients_of_collectives,
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


@pytest.fixture(autouse=True)
def gloo_on_the_cpu(device):
    if device != "cpu" or not torch.distributed.is_gloo_available():
        pytest.skip("needs gloo on the CPU")


@pytest.fixture(scope="module")
def run_ranks(processes, tmp_path_factory):  # noqa: F811
    def run(work, *arguments):
        """What work(store, rank, *arguments of the rank) returns in each of two processes."""
        store = tmp_path_factory.mktemp("ranks") / "store"
        return processes(*((work, str(store), rank, *rank_arguments) for rank, rank_arguments in enumerate(arguments)))

    return run


@pytest.fixture(scope="module")
def results(run_ranks):
    """[{name: result} of each rank], made once."""
    return run_ranks(rank_programs.run_rank, (COLLECTIVES + TRAINING,), (COLLECTIVES + TRAINING,))


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


def test_a_rank_that_cannot_compile(run_ranks, tmp_path):
    """It runs op by op through ATen, the other goes on, and the results are right."""
    programs = rank_programs.collectives, rank_programs.ddp_whole
    broken = script(tmp_path, "echo 'this source is bad' >&2; exit 1\n")
    ranks = run_ranks(rank_programs.run_rank, (programs,), (programs, broken))
    for program in programs:
        (counters, _), (broken_counters, messages) = check(ranks, program.__name__)
        assert counters["graphs"] > 0 and counters["aten_fallback"] == 0
        assert broken_counters["graphs"] == 0 and broken_counters["aten_fallback"] > 0
        assert all("runs op by op through ATen" in message for message in messages) and messages


def test_a_rank_that_dies(processes, tmp_path):  # noqa: F811
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
