"""Enforces the layers of ARCHITECTURE.md by scanning #include lines, and reports files that outgrow their room.

Exit status 1 when a layer includes what it may not. Usage: check_layers.py [--root DIR]
"""

import argparse
import re
import sys
from pathlib import Path

MIDDLE = {"frontend", "passes", "lowering", "schedule", "codegen", "interp", "runtime"}
# Layer (first folder under csrc) -> layers that it may include besides itself.
ALLOWED = {
    "support": set(),
    "sym": {"support"},
    "ir": {"support", "sym"},
    **{layer: {"support", "sym", "ir"} for layer in MIDDLE},
    "driver": {"support", "sym", "ir"} | MIDDLE,
    "torch_bridge": {"support", "sym", "ir", "driver"} | MIDDLE,
}
# Header pattern -> folders (under csrc) that alone may include it.
CONFINED = {
    r"^(torch|ATen|c10|caffe2)/": ["torch_bridge"],
    r"^(cuda|nvrtc|cuda_runtime)\.h$": ["runtime/cuda"],
    r"^ginac/": ["sym"],
    r"^(pybind11/|Python\.h)": ["torch_bridge/bindings"],
}
LIMITS = {".h": 400, ".cpp": 600, ".def": 600, ".cuh": 600, ".py": 600}
# Words that must not appear in a layer's own text: a back-end's name in schedule/ is a design error.
FORBIDDEN_WORDS = {"schedule": re.compile(r"\b(cuda|nvrtc|CUDA)\b")}

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^">]+)[">]')


def problems_of(path: Path, root: Path) -> list[str]:
    relative = path.relative_to(root / "csrc")
    layer = relative.parts[0]
    problems = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"csrc/{relative}:{number}"
        match = INCLUDE.match(line)
        if match:
            header = match.group(1)
            target = header.split("/")[0]
            if target in ALLOWED and target != layer and target not in ALLOWED[layer]:
                problems.append(f"{where}: layer {layer} may not include {header}")
            for pattern, folders in CONFINED.items():
                if re.search(pattern, header) and not any(str(relative).startswith(f + "/") for f in folders):
                    problems.append(f"{where}: only {', '.join(folders)} may include {header}")
        elif layer in FORBIDDEN_WORDS:
            code = line.split("//")[0]
            found = FORBIDDEN_WORDS[layer].search(code)
            if found:
                problems.append(f"{where}: layer {layer} names the back-end '{found.group(0)}'")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    sources = sorted(p for p in (root / "csrc").rglob("*") if p.suffix in {".h", ".cpp", ".def"})
    problems = [problem for path in sources for problem in problems_of(path, root)]
    print("\n".join(problems) or f"layers: {len(sources)} files keep to the layering")

    everything = sources + [p for d in ("python", "tests", "tools", "kernels_templates", "examples", "benchmarks") for p in (root / d).rglob("*")]
    for path in everything:
        limit = LIMITS.get(path.suffix)
        if limit and (count := len(path.read_text().splitlines())) > limit:
            print(f"size: {path.relative_to(root)} has {count} lines (limit {limit})")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
