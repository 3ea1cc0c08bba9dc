"""A guard against an error of PyTorch 2.11 on machines without a GPU."""

import torch


def keep_for_all_threads() -> None:
    """Makes PyTorch's stand-in for the guard of CUDA devices this thread's.

    The first thread that traces a graph makes it, in memory of its own, and all others read it there: a process whose first such thread has ended
    may crash. On a machine with a GPU there is no stand-in, and nothing is asked here: a process that has asked CUDA cannot fork any more.
    """
    if torch.version.cuda is not None and torch.cuda._device_count_nvml() <= 0:
        torch._C._ensureCUDADeviceGuardSet()
