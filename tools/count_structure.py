"""Counts how much of the tree knows a thing that should be known in one place: files that name it, and sizes of the emitters.

Usage: count_structure.py [--files]

A file names a kind (of reduction, statement, mapping, device) where its code, comments aside, has the enumerator, struct or text of it. Whoever adds
one of them has to look at these files. Of statements, a new kind needs the files that name every kind; the others ask for a kind of their own and treat
a new one by its properties (csrc/ir/loops/stmt_properties.h). --files: list them.
"""

import argparse
import collections
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [path for folder in ("csrc", "kernels_templates") for path in sorted((ROOT / folder).rglob("*")) if path.suffix in {".cpp", ".h", ".def", ".cuh", ".hpp", ".inc"}]


def code_of(path):
    return re.sub(r"//[^\n]*", "", path.read_text())


CODE = {str(path.relative_to(ROOT)): code_of(path) for path in SOURCES}


def naming(pattern, outside=()):
    return [name for name, code in CODE.items() if not name.startswith(tuple(outside)) and re.search(pattern, code)]


def reductions():
    """By the reductions with a struct of their own: the others are one expression."""
    return {row: naming(rf"\b{row}\b") for row in ("ArgMax", "SoftmaxSum", "Welford")}


def statements():
    """By the struct's name where it is defined, described, asked for or taken as a parameter, or by its function of the builder where that is defined or
    parsed. Code that only makes statements of a kind need not know another one. Of csrc/ir/graph/ the structs are another IR's."""
    kinds = re.search(r"using StmtKind = std::variant<([^>]*)>", CODE["csrc/ir/loops/loops.h"])[1].split(", ")

    def pattern(kind):
        struct = rf"\b(?:struct {kind} {{|(?:StmtTraits<|loops::|plan::|as<|get_if<|holds_alternative<|get<|const ){kind}\b(?:>|&|\*))"
        return struct + rf"|\b(?:builder_\.|RegionBuilder::){kind.lower()}\("

    return {kind: naming(pattern(kind), ("csrc/ir/graph/",)) for kind in kinds}


def files_of_a_scan(every_kind):
    """What a statement needs that has a value at each point of a row, of a state that the points up to it have updated: the files that name every kind,
    and the families of rows along memory, which have to keep their order. One more makes the statement."""
    return sorted({*every_kind, *naming(r"\bfamily::(?:cpu_)?rows\{")})


def mappings():
    shapes = re.search(r"using Shape = std::variant<([^>]*)>", CODE["csrc/ir/plan/mapping.h"])[1].split(", ")
    asking = {"Matmul": r"|\b(?:matmul_parts|estimate_matmul)\b|kernels/matmul/"}
    return {name: naming(rf"\b(?:plan::|as<|get<){name}\b" + asking.get(name, ""), ("csrc/ir/plan/mapping.",)) for name in shapes}


def places_of_a_family(keyword, struct):
    """Files that a kernel family needs besides its own, which are named after it: the two lists, and whatever else names its shape."""
    lists = [name for name, pattern in (("csrc/ir/plan/mapping.h", rf"using Shape = .*\b{struct}\b"), ("csrc/kernels/families.def", rf"FAMILY\({keyword}\)"))
             if re.search(pattern, CODE[name])]
    return sorted({*lists, *(name for name in mappings()[struct] if keyword not in name)})


# Where the kinds may be named: the enumeration, its table, measured processors by kind, and factories of the targets in the tree, which tests
# of the lower layers use.
TARGET_TABLES = ("csrc/ir/dtype.h", "csrc/ir/device_types.cpp", "csrc/ir/machines.def", "csrc/ir/target.h", "csrc/ir/target.cpp")


def target_questions():
    """By an enumerator or text of a kind, what a Target is called, or a predicate that is named after a kind, which may be torch's own in the
    layers that include torch."""
    outside = ("csrc/targets/", "csrc/codegen/", *TARGET_TABLES)
    kinds = naming(r"DeviceType::(?:Cuda|Cpu)\b|\b(?:cuda|cpu)_target\b|\"(?:cuda|cpu)\"|\btarget\.(?:device|name)\b", outside)
    predicates = naming(r"\b(?:is|on|is_on|uses|of|has)_(?:cuda|cpu|gpu)\b", (*outside, "csrc/torch_bridge/", "csrc/api/", "csrc/cli/"))
    return sorted({*kinds, *predicates})


def aten_strings():
    return naming(r"\"aten::", ("csrc/frontend/", "csrc/model/", "csrc/readers/", "csrc/torch_bridge/", "csrc/ir/callees", "csrc/ir/library_ops.def"))


def lines(folder):
    return sum(len((ROOT / name).read_text().splitlines()) for name in CODE if name.startswith(folder))


def most_methods(folder):
    """The class of a folder with the most declarations of functions, constructors aside."""
    declaration = re.compile(r"^  (?! |using|struct|class|friend|return|explicit)[\w:<>,*& ]+\b\w+\([^;{]*\)(?: const)?(?:;| \{)", re.MULTILINE)
    found = []
    for name, text in CODE.items():
        if name.startswith(folder):
            for match in re.finditer(r"^(?:class|struct) (\w+)[^;{]*\{$(.*?)^\};$", text, re.MULTILINE | re.DOTALL):
                found.append((len(declaration.findall(match[2])), f"{match[1]} of {name}"))
    return max(found)


def show(what, files, list_them):
    print(f"{what}: {len(files)}")
    if list_them:
        print("".join(f"    {file}\n" for file in files), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="list the files")
    args = parser.parse_args()
    of_statements = statements()
    for what, found in (("reduction", reductions()), ("statement", of_statements), ("mapping", mappings())):
        for kind, files in found.items():
            show(f"files that name {what} {kind}", files, args.files)
    every_kind = sorted(set.intersection(*map(set, of_statements.values())))
    show("files that name every statement, which any new one needs besides what makes it", every_kind, args.files)
    show("files that a scan needs besides what makes it", files_of_a_scan(every_kind), args.files)
    show("files that a GEMM family needs besides its own", places_of_a_family("matmul", "Matmul"), args.files)
    for folder in ("cuda", "cpu"):
        show(f"files that name the target {folder}, outside of its folders",
             naming(rf"DeviceType::{folder.capitalize()}\b|\b{folder}_target\b|\"{folder}\"", (f"csrc/targets/{folder}", f"csrc/codegen/{folder}")), args.files)
    show("files that ask which target, outside of targets/, codegen/ and tables", target_questions(), args.files)
    show('files with "aten:: outside of the front ends\' tables', aten_strings(), args.files)
    print(f"lines of codegen/: {lines('csrc/codegen/')}")
    methods, emitter = most_methods("csrc/codegen/")
    print(f"methods of the largest class of codegen/: {methods} ({emitter})")


if __name__ == "__main__":
    main()
