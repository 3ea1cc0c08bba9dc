"""Pages name files that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cxxinductor

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# Where a path may begin: pages on one part of the code leave the first folders out.
BASES = [ROOT, ROOT / "csrc", ROOT / "python/cxxinductor"]
SOURCES = {".h", ".cpp", ".def", ".cuh", ".py", ".md", ".sh", ".cxxi", ".graph"}
FOLDERS = ["csrc", "python/cxxinductor", "tests", "tools", "benchmarks", "examples", "kernels_templates", "docs"]
NAMES = {file.name for folder in FOLDERS for file in (ROOT / folder).rglob("*")} | {file.name for file in ROOT.iterdir()}
EXAMPLE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def missing_files(text):
    """Paths in backticks, outside of examples, that look like files or folders of this repository and are not there."""
    missing = []
    for name in re.findall(r"`([\w./-]+)`", EXAMPLE.sub("", text)):
        source, first = Path(name).suffix in SOURCES, name.split("/")[0]
        if "/" in name:
            ours = first != "build" and (source or any((base / first).is_dir() for base in BASES if first))
            found = any((base / name).exists() for base in BASES)
        else:
            ours, found = source, name in NAMES
        if ours and not found:
            missing.append(name)
    return missing


def without_blanks(text):
    return "".join(text.split())


@pytest.fixture(scope="module")
def sources():
    files = (file for folder in [*FOLDERS, "include"] for file in (ROOT / folder).rglob("*") if file.suffix in SOURCES - {".md"})
    return "\0".join(without_blanks(file.read_text(errors="replace")) for file in files)


def examples_of(page):
    """Code of a page in parts that have to stand in the tree as they are: "..." is what an example leaves out. Of diffs what they add."""
    for language, code in re.findall(r"^```(cpp|cuda|python|diff)$(.*?)^```", page, re.MULTILINE | re.DOTALL):
        if language == "diff":
            code = "\n".join(line[1:] for line in code.splitlines() if line.startswith("+"))
        yield from filter(None, map(without_blanks, re.split(r"^.*\.\.\..*$", code, flags=re.MULTILINE)))


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/howto/*.md")), ids=lambda page: page.stem)
def test_examples_of_how_tos_are_the_code_as_it_stands(page, sources):
    assert [example for example in examples_of(page.read_text()) if example not in sources] == []


def test_an_example_that_is_no_longer_the_code_is_found(sources):
    gone = "from_the_tree"  # in two parts, or this file would have it
    examples = list(examples_of(f"```cpp\nint gone_{gone}();\n  ...\n```\n```diff\n-old\n+struct Columns {{\n```\n"))
    assert [example in sources for example in examples] == [False, True]


def test_a_new_statement_needs_as_many_files_as_pages_say():
    """Those that tools/count_structure.py counts, and one that makes the statement."""
    counted = subprocess.run([sys.executable, ROOT / "tools/count_structure.py"], capture_output=True, text=True, check=True).stdout
    (every, scan) = (int(re.search(rf"^files that {words}[^\n]*: (\d+)$", counted, re.MULTILINE)[1]) for words in ("name every statement", "a scan needs"))
    assert f"kind needs {every + 1} files, a scan along rows {scan + 1}" in " ".join((ROOT / "ARCHITECTURE.md").read_text().split())
    page = (ROOT / "docs/howto/loops_statement.md").read_text()
    numbers = {11: "eleven"}
    assert f"A scan needs these {scan + 1} files" in page and f"need the first {numbers[every + 1]}" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_exist(page):
    assert missing_files(page.read_text()) == []


def test_the_option_table_reads_like_its_page():
    table, page = cxxinductor.option_table(), (ROOT / "docs/options.md").read_text()
    text = str(table)
    assert repr(table) == text and max(map(len, text.splitlines())) <= 132
    words = " ".join(text.split())
    for row in table:
        assert row["type"] in ("bool", "int", "float", "str")
        default = f"`{row['default']}`" if row["default"] else ""
        assert f"| `{row['name']}` | `{row['environment']}` | {default} |" in page
        assert f"{row['name']} = {row['default'] or '(empty)'}" in text and row["environment"] in text
        assert " ".join(row["doc"].split()) in words
        assert all(f"`{value}`" in page and value in text for value in row["values"])
    values = {row["name"]: row["values"] for row in table}
    assert values["check"] == ["off", "eager", "interp"] and "graph-cse" in values["skip_passes"] and values["cache_dir"] == []


@pytest.mark.parametrize("page", ["README.md", "docs/options.md", "docs/troubleshooting.md"])
def test_pages_that_offer_variables_say_when_c_plus_plus_reads_them(page):
    assert "CXXINDUCTOR_" in (ROOT / page).read_text() and "`options_from_environment()`" in (ROOT / page).read_text()


@pytest.mark.parametrize("name", ["frontend/call_graph.h", "csrc/frontend/none", "docs/none.md", "other/file.cpp", "none.cpp"])
def test_a_file_that_is_not_there_is_found(name):
    assert missing_files(f"See `{name}`, `model/call_graph.h`, `calls.txt`, `build/none.h` and `a/b`.\n```\n`x.cpp`\n```\n") == [name]
