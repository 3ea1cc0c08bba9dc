"""Writes aten_schemas.txt: the schemas of torch's ATen and prims operators, for tools and tests that run without torch.

Usage: snapshot_schemas.py [--check]; with --check exit status 1 where the file is not what the installed torch has.
"""

import argparse
import re
import sys
from pathlib import Path

import torch

FILE = Path(__file__).with_name("aten_schemas.txt")
# Types of TorchScript's containers and of the distributed runtime, which no graph of tensors holds.
FOREIGN = re.compile(r"Dict\(|Future\(|RRef\(|\bAny\b|\btVal\b|\bt1\b|__torch__|\.\.\.")


def schemas() -> str:
    lines = set()
    for schema in torch._C._jit_get_all_schemas():
        text = str(schema)
        if not schema.name.startswith(("aten::", "prims::")) or FOREIGN.search(text):
            continue
        packet = getattr(getattr(torch.ops, schema.name.split("::")[0]), schema.name.split("::")[1], None)
        overload = getattr(packet, schema.overload_name or "default", None)
        tagged = isinstance(overload, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in overload.tags
        lines.add(text + (" {nondeterministic_seeded}" if tagged else ""))
    return "\n".join(sorted(lines)) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    if not parser.parse_args().check:
        FILE.write_text(schemas())
        return 0
    return int(FILE.read_text() != schemas())


if __name__ == "__main__":
    sys.exit(main())
