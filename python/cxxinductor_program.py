"""Becomes the program ``cxxinductor`` of the installed package. A module of its own: importing the package would load PyTorch for it."""

import importlib.util
import os
import sys


def main() -> None:
    program = os.path.join(importlib.util.find_spec("cxxinductor").submodule_search_locations[0], "bin", "cxxinductor")
    if not os.path.exists(program):
        sys.exit(f"{program} does not exist: a tree built in place has the program in build/release/bin (`make test` builds it)")
    os.execv(program, [program, *sys.argv[1:]])
