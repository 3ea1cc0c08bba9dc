"""A guard against an error of PyTorch 2.11 on machines without a GPU."""

import os

import torch

# Of drivers on Linux, in WSL and on Jetson. Asking CUDA itself would keep the process from forking, and from choosing devices later.
_GPU_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl", "/dev/nvgpu")


def keep_for_all_threads() -> None:
    """Makes PyTorch's stand-in for the guard of CUDA devices this thread's, which should outlive the others: the main thread's.

    The first thread that traces a graph makes it, in memory of its own, and all others read it there: a process whose first such thread has ended
    may crash. Where there is a GPU there is no stand-in.
    """
    if torch.version.cuda is not None and not any(map(os.path.exists, _GPU_FILES)):
        torch._C._ensureCUDADeviceGuardSet()
