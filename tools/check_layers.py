"""Enforces the layers of ARCHITECTURE.md by scanning #include lines, the limits of files and functions, and the project's vocabulary.

Exit status 1 when a layer includes what it may not, a file or function has too many lines, or a text uses a retired name
(retired_names.py), or a template names an intrinsic of CUDA outside of the folder that has them. Usage: check_layers.py [--root DIR]
"""

import argparse
import ast
import re
import sys
from pathlib import Path

from retired_names import ALLOWED_IN, retired_names

MIDDLE = {"frontend", "passes", "lowering", "schedule", "codegen", "interp", "runtime"}
# Layer (first folder under csrc) -> layers that it may include besides itself.
ALLOWED = {
    "support": set(),
    "sym": {"support"},
    "ir": {"support", "sym"},
    "model": {"support", "sym", "ir"},
    "kernels": {"support", "sym", "ir"},
    **{layer: {"support", "sym", "ir"} for layer in MIDDLE},
    "schedule": {"support", "sym", "ir", "kernels"},
    "codegen": {"support", "sym", "ir", "kernels"},
    "readers": {"support", "sym", "ir", "model"},
    "package": {"support", "sym", "ir", "model", "readers"},
    "frontend": {"support", "sym", "ir", "model"},
    "targets": {"support", "sym", "ir", "codegen", "runtime"},
    "driver": {"support", "sym", "ir", "model", "kernels"} | MIDDLE,
    "torch_bridge": {"support", "sym", "ir", "model", "readers", "package", "targets", "driver"} | MIDDLE,
    "api": {"support", "sym", "ir", "model", "readers", "package", "torch_bridge"},
    "cli": {"support", "sym", "ir", "model", "readers", "package", "torch_bridge", "api"},
}
# Folders of kernels/ that all of it shares. The others are families, which never include one another.
SHARED_BY_FAMILIES = {"region", "body"}
# Header pattern -> folders (under csrc) that alone may include it.
CONFINED = {
    r"^(torch|ATen|c10|caffe2)/": ["torch_bridge", "api", "cli"],
    r"^(cuda|nvrtc|cuda_runtime)\.h$": ["targets/cuda"],
    r"^nvtx3/": ["torch_bridge"],
    r"^ginac/": ["sym"],
    r"^nlohmann/": ["readers", "package", "driver"],
    r"^(minizip/|zlib\.h)": ["readers"],
    r"^nettle/": ["package"],
    r"^CLI/": ["cli"],
    r"^(pybind11/|Python\.h)": ["torch_bridge/bindings"],
}
LIMITS = {".h": 400, ".cpp": 600, ".def": 600, ".cuh": 600, ".py": 600}
FUNCTION_LIMIT = 80  # from the line that opens the body to the one that closes it
# Folders whose files have limits and are searched for retired names, besides csrc.
OTHERS = ("include", "python", "tests", "tools", "kernels_templates", "examples", "benchmarks", "docs")
TEXTS = {*LIMITS, ".cxxi", ".graph", ".md", ".sh"}
# What must not appear in a layer's own text: outside of codegen and targets nothing asks which target it is.
ASKS_WHICH_TARGET = re.compile(r"(?<!c10::)\bDeviceType::C\w+")  # what differs is a column of ir/device_types.h or a function of TargetRuntime
FORBIDDEN_WORDS = {
    **{layer: re.compile(r"\b(cuda|nvrtc|CUDA|DeviceType::Cuda)\b") for layer in ("kernels", "schedule")},
    **{layer: ASKS_WHICH_TARGET for layer in ("runtime", "driver", "torch_bridge", "api")},
}

# Templates call intrinsics by the names of this folder, which tests/emulation defines for the host. Those of the CPU have builtins of their own.
INTRINSICS = "kernels_templates/intrinsics/"
CPU_TEMPLATES = "kernels_templates/cpu/"
# Beside inline assembly, what begins with two underscores, but for the words of CUDA itself, and functions that look like others.
INTRINSIC = re.compile(
    r"\basm\b|\b__(?!(?:global|device|shared|launch_bounds|grid_constant|restrict)__\b)\w+"
    r"|\batomic[A-Z]\w*|\b(?:rsqrtf?|sincos(?:pi)?f?|clock(?:64)?)\b"
)

# The last line of a function's head, as clang-format writes it. The heads of classes, namespaces and initializers do not end so.
FUNCTION = re.compile(r"[)}](?: const| noexcept| override| final| mutable| &| &&| try| ->[^{]*| requires[^{]*)* \{$")
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)

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
            if layer == "kernels" and len(relative.parts) > 2 and target == "kernels" and header.count("/") > 1:
                other = header.split("/")[1]
                if other != relative.parts[1] and other not in SHARED_BY_FAMILIES:
                    problems.append(f"{where}: the family {relative.parts[1]} may not include {header} of another")
            for pattern, folders in CONFINED.items():
                if re.search(pattern, header) and not any(str(relative).startswith(f + "/") for f in folders):
                    problems.append(f"{where}: only {', '.join(folders)} may include {header}")
        elif layer in FORBIDDEN_WORDS:
            code = line.split("//")[0]
            found = FORBIDDEN_WORDS[layer].search(code)
            if found:
                problems.append(f"{where}: layer {layer} names the target '{found.group(0)}'")
    return problems


def size_problems(path: Path, root: Path) -> list[str]:
    limit = LIMITS.get(path.suffix)
    count = len(path.read_text().splitlines()) if limit else 0
    return [f"{path.relative_to(root)}: {count} lines, the limit is {limit}"] if limit and count > limit else []


def function_problems(path: Path, root: Path) -> list[str]:
    if path.suffix == ".py":
        return python_function_problems(path, root)
    if path.suffix not in {".h", ".cpp", ".cuh"}:
        return []
    # Other languages inside of raw strings have braces of their own.
    lines = RAW_STRING.sub(lambda match: '""' + "\n" * match.group(0).count("\n"), path.read_text()).splitlines()
    problems = []
    at = 0
    while at < len(lines):
        if not FUNCTION.search(lines[at]):
            at += 1
            continue
        begin = at
        # A body is two columns to the right of the brace that closes it. What it holds, lambdas too, is not looked at again.
        body = next((line for line in lines[begin + 1 :] if line.strip() and not line.startswith("#")), "")
        closing = " " * (len(body) - len(body.lstrip()) - 2) + "}"
        while at < len(lines) and not lines[at].startswith(closing):
            at += 1
        count = at - begin + 1
        if count > FUNCTION_LIMIT:
            problems.append(f"{path.relative_to(root)}:{begin + 1}: a function of {count} lines, the limit is {FUNCTION_LIMIT}")
        at += 1
    return problems


def python_function_problems(path: Path, root: Path) -> list[str]:
    problems = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            count = node.end_lineno - node.lineno + 1
            if count > FUNCTION_LIMIT:
                problems.append(f"{path.relative_to(root)}:{node.lineno}: a function of {count} lines, the limit is {FUNCTION_LIMIT}")
    return problems


def intrinsic_problems(path: Path, root: Path) -> list[str]:
    name = path.relative_to(root).as_posix()
    if not name.startswith("kernels_templates/") or name.startswith((INTRINSICS, CPU_TEMPLATES)):
        return []
    problems = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = INTRINSIC.search(line.split("//")[0])
        if found:
            problems.append(f"{name}:{number}: '{found.group(0)}' is for a function in {INTRINSICS}cuda")
    return problems


def name_problems(path: Path, root: Path) -> list[str]:
    name = path.relative_to(root).as_posix()
    if path.suffix not in TEXTS or name in ALLOWED_IN:
        return []
    return [f"{name}:{line}: '{old}' is retired: write '{new}'" for line, old, new in retired_names(path.read_text())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    sources = sorted(p for p in (root / "csrc").rglob("*") if p.suffix in {".h", ".cpp", ".def"})
    others = [p for d in OTHERS for p in sorted((root / d).rglob("*")) if "__pycache__" not in p.parts]
    pages = [p for p in sorted(root.glob("*.md")) if p.name != "CHANGELOG.md"]
    problems = [problem for path in sources for problem in problems_of(path, root)]
    problems += [problem for path in sources + others for problem in size_problems(path, root)]
    problems += [problem for path in sources + others for problem in function_problems(path, root)]
    problems += [problem for path in others if path.is_file() for problem in intrinsic_problems(path, root)]
    problems += [problem for path in sources + others + pages for problem in name_problems(path, root)]
    print("\n".join(problems) or f"layers, sizes and names: {len(sources)} sources and {len(others)} other files pass")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
