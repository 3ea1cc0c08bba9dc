"""Threads that trace graphs and end, in a process of its own: an error of PyTorch's that the package guards against."""

from children import run_python

PROGRAM = """
import threading, torch, cxxinductor
from torch._subclasses.fake_tensor import FakeTensorMode

def trace():
    for _ in range(20):
        with FakeTensorMode():
            torch.empty(1)

for _ in range(20):
    threads = [threading.Thread(target=trace) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("END")
"""


def test_later_threads_trace_after_the_first_has_ended():
    done = run_python(PROGRAM)
    assert done.returncode == 0 and done.stdout == "END\n", done.stdout + done.stderr
