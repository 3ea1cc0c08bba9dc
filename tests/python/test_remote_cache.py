"""A remote store in Python beside threads that compile: who waits for them may hold the GIL, the process may end or fork.

Each program runs in a process of its own, with an empty cache; its store takes a moment for each answer.
"""

import os
import subprocess
import sys

import pytest
import torch

import cxxinductor
from cxxinductor import cache_transfer

SETUP = """
import atexit, gc, os, sys, threading, time, torch, cxxinductor
from torch import nn

class Store:
    asked = 0
    def get(self, name):
        Store.asked += 1
        begun.set()
        time.sleep(0.3)
    def put(self, name, content):
        pass

begun = threading.Event()
cxxinductor.cache_transfer._PATIENCE = 2000
x = torch.ones(3)
cxxinductor.set_remote_cache(Store(), trusted=True)
"""

PROGRAMS = {
    "a model that is dropped while it compiles": """
model = cxxinductor.load(sys.argv[1], options={"wait": False})
assert begun.wait(20)
del model
""",
    "a TorchScript module that is dropped while it compiles": """
module = cxxinductor.optimize(torch.jit.script(nn.Sequential(nn.Tanh(), nn.Sigmoid()).eval()), options={"wait": False})
module(x)
assert begun.wait(20)
del module
""",
    "a device that draws random numbers": """
cxxinductor.register_device("cxxi", "cpu", options={"wait": True})
y = nn.functional.dropout(x.to("cxxi") * 2, 0.5) + 1
torch.cxxi.manual_seed(0)
cxxinductor.explain_device()
assert y.cpu().shape == x.shape
""",
    "an end while a thread asks": """
run = torch.compile(lambda x: x.sin() + 1, backend="cxxinductor", options={"background": "all"})
run(x)
assert begun.wait(20)
""",
    "threads that wait for the GIL when the end begins": """
requests = cxxinductor._C.open_remote_cache(1000)
for _ in range(4):
    threading.Thread(target=requests.next, daemon=True).start()
time.sleep(0.2)
atexit._clear()  # what is left holds the GIL throughout
atexit.register(sum, range(10**7))
atexit.register(requests.close)
""",
    "another store in its place": """
run = torch.compile(lambda x: x.sin() + 1, backend="cxxinductor")
run(x)
for number, store in enumerate((Store(), None, Store())):
    asked = Store.asked
    cxxinductor.set_remote_cache(store, trusted=True)
    gc.collect()
    torch._dynamo.reset()
    run = torch.compile(lambda x: x.cos() + number, backend="cxxinductor")
    assert torch.allclose(run(x), x.cos() + number)
    assert (Store.asked > asked) == (store is not None)
""",
    "warnings that are errors": """
class Broken(Store):
    def get(self, name):
        super().get(name)
        raise OSError("no route to host")

import warnings
warnings.simplefilter("error", UserWarning)
cxxinductor.set_remote_cache(Broken(), trusted=True)
threading.excepthook = lambda args: None
for count in range(6):  # there are four threads
    asked = Store.asked
    torch._dynamo.reset()
    assert torch.allclose(torch.compile(lambda x: x.sin() + count, backend="cxxinductor")(x), x.sin() + count)
    assert Store.asked > asked, count
""",
    "a child that asks": """
child = os.fork()
asked = Store.asked
shift = 1 if child else 2  # what the other one compiles is soon in the cache on disk
run = torch.compile(lambda x: x.sin() + shift, backend="cxxinductor")
assert torch.allclose(run(x), x.sin() + shift) and Store.asked > asked
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""",
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.pt2"
    torch.export.save(torch.export.export(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Sigmoid()), (torch.ones(3),)), path)
    return path


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_store_beside(name, archive, tmp_path):
    program = SETUP + PROGRAMS[name] + 'print("END", flush=True)\n'
    environment = {**os.environ, "CXXINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", program, archive], capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0 and done.stdout.rstrip().endswith("END"), done.stdout + done.stderr


def test_a_store_that_raises_costs_a_warning():
    class Broken:
        def get(self, name):
            raise OSError("no route to host")

        put = get

    store = cache_transfer._CheckedStore(Broken(), b"mine")
    with pytest.warns(UserWarning, match="get failed: OSError: no route to host"):
        assert store.get("00") is None
    with pytest.raises(cxxinductor.UserError, match="expected a secret"):
        cxxinductor.set_remote_cache(Broken())
    with pytest.raises(cxxinductor.UserError, match="expected bytes as secret, found str"):
        cxxinductor.set_remote_cache(Broken(), secret="mine")
    with pytest.raises(cxxinductor.UserError, match="expected a store with get and put, found object without get and put"):
        cxxinductor.set_remote_cache(object(), secret=b"mine")
