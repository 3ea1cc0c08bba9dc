"""Becomes the program ``cxxinductor`` of the installed package. A module of its own: importing the package would load PyTorch for it."""

import importlib.util
import os
import sys


def main() -> None:
    package = importlib.util.find_spec("cxxinductor").submodule_search_locations[0]
    in_place = os.path.join(os.path.dirname(os.path.dirname(package)), "build", "release")
    for folder in (package, in_place):
        program = os.path.join(folder, "bin", "cxxinductor")
        if os.path.exists(program):
            os.execv(program, [program, *sys.argv[1:]])
    sys.exit(f"{program} does not exist; `make build` builds it")
