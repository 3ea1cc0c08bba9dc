"""Python programs in processes of their own, forked from one that has imported torch: they start in a tenth of a second, not in five.

For tests whose subject is not how a process starts or ends: atexit functions run, destructors of static objects do not, and what torch reads from
the environment when it is imported (thread counts, PYTHONHASHSEED, flags of Python) is that of the session.
"""

from __future__ import annotations

import atexit
import functools
import multiprocessing
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import types
from multiprocessing import forkserver
from pathlib import Path

SESSION = dict(os.environ)  # as it is before tests change it
PRELOAD = ["torch", "torch._dynamo", "torch._functorch.aot_autograd", "torch._inductor.decomposition", "torch._export", "torch.testing"]


@functools.cache
def context():
    """The context of multiprocessing whose processes these are."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(PRELOAD)
    now = dict(os.environ)
    _set_environment(SESSION)
    try:
        forkserver.ensure_running()
    finally:
        _set_environment(now)
    return made


def _set_environment(wanted):
    os.environ.clear()
    os.environ.update(wanted)


def _main(program, arguments, environment, output, errors):
    """What the process does. multiprocessing makes its exit status, and writes what it raises."""
    _set_environment(environment)
    for stream, path in ((1, output), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), stream)
    sys.argv = ["-c", *arguments]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        exec(compile(program, "<string>", "exec"), main.__dict__)
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()


def run_python(program, *arguments, environment=None, timeout=300, check=False):
    """What ``subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)`` returns. The program may be indented;
    ``environment`` adds to that of the test."""
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("output", "errors")]
        for stream in streams:
            stream.touch()
        process = context().Process(target=_main, args=(command[2], command[3:], {**os.environ, **(environment or {})}, *streams))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, timeout, *(stream.read_bytes() for stream in streams))
        done = subprocess.CompletedProcess(command, process.exitcode, *(stream.read_text() for stream in streams))
    if check:
        done.check_returncode()
    return done
