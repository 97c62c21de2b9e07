"""Habits of the house that a tool can check over the whole tree."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import grimp
import pytest
import yaml

import tradeassay
from tradeassay_programs.cli.code import code

ROOT = Path(__file__).resolve().parents[2]


def tracked(*patterns: str) -> list[Path]:
    try:
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
        listed = subprocess.check_output(command, cwd=ROOT, stderr=subprocess.DEVNULL, text=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.split("\n") if name and (ROOT / name).is_file()]


def lines_with(pattern: str) -> list[str]:
    sought = re.compile(pattern)
    lines = (
        (path, line) for path in tracked("packages/*.py") for line in path.read_text().splitlines()
    )
    return [
        f"{path.relative_to(ROOT)}: {line.strip()}" for path, line in lines if sought.search(line)
    ]


def test_nothing_is_left_unfinished():
    assert not lines_with(r"NotImplementedError|TO" + r"DO|FIX" + r"ME|XX" + r"X\b")


def test_every_package_says_what_it_is_for():
    for path in tracked("packages/**/__init__.py"):
        assert path.read_text().lstrip().startswith('"""'), f"{path} has no docstring"


def test_a_type_ignore_states_its_reason():
    assert not lines_with(r"#\s*type:\s*ignore(\[[\w, -]+\])?\s*$")


def test_hints_of_the_library_name_keywords_and_not_options():
    """The command line puts its options in their place; a whole command may be named as it is."""
    library = [
        path for path in tracked("packages/*.py") if "cli" not in path.relative_to(ROOT).parts
    ]
    hints = [
        (path.name, hint) for path in library for hint in hints_of(ast.parse(path.read_text()))
    ]
    assert len(hints) > 500
    assert not [
        one
        for one in hints
        if re.search(r"(?<![\w-])--[a-z]", one[1]) and "tradeassay " not in one[1]
    ]


def names_hint(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "hint"


def hints_of(tree: ast.AST) -> Iterable[str]:
    """Yield the source of what is given as ``hint``, or kept under that name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            yield ast.unparse(node.value)
        elif isinstance(node, ast.Assign) and names_hint(node.targets[0]):
            yield ast.unparse(node.value)


def test_what_cannot_be_decoded_has_one_name():
    """A reader that catches one of the ways alone lets the others through as a traceback."""
    alone = r"except\b.*\bmsgspec\.(DecodeError|MsgspecError)"
    assert not lines_with(alone), "catch tradeassay.core.errors.UNDECODABLE"


ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
PACKAGES = ("tradeassay", "tradeassay_bench", "tradeassay_programs", "tradeassay_arena")
SOURCES = [path for name in PACKAGES for path in ROOT.glob(f"packages/*/src/{name}")]


@pytest.fixture(scope="module")
def imported():
    graph = grimp.build_graph(*PACKAGES)
    return {
        module: graph.find_modules_directly_imported_by(module) - {module}
        for module in graph.modules
    }


def test_no_circles(imported):
    """Not even inside a room and not even for types."""
    left = dict(imported)
    while ready := [module for module, others in left.items() if not others & left.keys()]:
        for module in ready:
            del left[module]
    assert not left, f"in or above a circle: {sorted(left)[:20]}"


def test_the_map_of_the_code_names_every_folder():
    """One table a package. Which imports are allowed is in the contracts of import-linter."""
    text = (ROOT / "docs" / "concepts" / "architecture.md").read_text(encoding="utf-8")
    for source in SOURCES:
        section = text.partition(f"### `{source.name}`")[2].partition("\n##")[0]
        folders = {path.parent.name for path in source.glob("*/__init__.py")}
        assert set(ROW.findall(section)) == folders, source.name


MOST_PUBLIC_NAMES = 450
"""Functions and classes that the modules of the instrument offer.

Names in a private module do not count.
"""


def test_the_instrument_offers_few_names():
    public = [
        f"{path.stem}.{node.name}"
        for path in sorted((ROOT / "packages/tradeassay/src").rglob("*.py"))
        if not re.match(r"_[a-z]", path.stem)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(public) <= MOST_PUBLIC_NAMES, len(public)


HEAVY = set(
    """anthropic arch baostock ccxt exchange_calendars httpx inspect_ai numba openai pandas plotly polars
    pyarrow pydantic ray requests rich scipy xllamacpp yfinance""".split()
)


def test_importing_and_asking_for_help_load_nothing_heavy():
    code = f"""
import sys, tradeassay, tradeassay_bench.examine, tradeassay.cli, tradeassay_bench.llm, tradeassay_bench.runs
tradeassay.cli.main(["--help"])
print("LOADED", *{HEAVY | {"numpy"}} & sys.modules.keys())
import tradeassay_bench.data, tradeassay_bench.data.connectors, tradeassay_bench.data.synthetic, tradeassay.factors
print("LOADED", *{HEAVY} & sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("LOADED")] == [
        "LOADED",
        "LOADED",
    ]


def test_every_name_that_a_package_offers_is_there():
    """Names that are loaded on use must not point at a file that has moved."""
    missing = []
    found = [
        one
        for name in PACKAGES
        for one in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}.")
    ]
    for package in map(
        importlib.import_module, [*PACKAGES, *(one.name for one in found if one.ispkg)]
    ):
        names = getattr(package, "__all__", ())
        assert set(names) <= set(dir(package)), package
        missing += [f"{package.__name__}.{name}" for name in names if not hasattr(package, name)]
    assert not missing


def test_a_lazy_package_declares_what_type_checkers_read():
    """Its names stand in imports for type checkers, and in a mapping for Python."""
    lazy = [path for path in tracked("packages/**/__init__.py") if "= attach(" in path.read_text()]
    assert len(lazy) >= 5
    for path in lazy:
        package = ".".join(
            path.parent.relative_to(next(one for one in path.parents if one.name == "src")).parts
        )
        tree = ast.parse(path.read_text())
        branch = next(node for node in tree.body if isinstance(node, ast.If))
        read: dict[str, set[str]] = {}
        for node in branch.body:
            assert isinstance(node, ast.ImportFrom)
            read.setdefault(str(node.module), set()).update(alias.name for alias in node.names)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        call = next(one for one in calls if ast.unparse(one.func) == "attach")
        declared = {module: set(names) for module, names in ast.literal_eval(call.args[1]).items()}
        for keyword in call.keywords:
            declared[package] = set(ast.literal_eval(keyword.value))
        assert declared == read, f"{path}: the imports and the mapping of attach() differ"


FILES = [
    ROOT / "compose.yaml",
    ROOT / "action.yml",
    ROOT / "CITATION.cff",
    *sorted(ROOT.glob(".github/**/*.yml")),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_parses(path):
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_the_citation_names_this_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == tradeassay.__version__


def test_the_action_calls_a_command_that_exists():
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    (line,) = [step["run"] for step in steps if "code eval" in step.get("run", "")]
    known = {option for parameter in code.commands["eval"].params for option in parameter.opts}
    assert set(re.findall(r"--\w+", line)) <= known


def test_the_image_copies_what_there_is():
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY "):
            for name in line.split()[1:-1]:
                assert (ROOT / name).exists(), line


def test_the_image_installs_extras_that_exist_and_what_the_arena_needs():
    found = dict(re.findall(r"packages/([\w-]+)\[([\w,]+)\]", (ROOT / "Dockerfile").read_text()))
    for package, extras in found.items():
        project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())[
            "project"
        ]
        assert set(extras.split(",")) <= set(project["optional-dependencies"]), package
    assert "postgres" in found["tradeassay-arena"], "compose.yaml plays on PostgreSQL"


def test_the_composed_arena_calls_options_that_exist():
    from tradeassay_arena.cli.arena import arena

    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    command = services["one"]["command"]
    assert services["two"] == services["one"] and {"db", "proxy"} < services.keys()
    assert "PASSWORD" not in str(command)  # arguments can be read in the list of processes
    known = {option for parameter in arena.commands["serve"].params for option in parameter.opts}
    assert {part.partition("=")[0] for part in command if part.startswith("--")} <= known


def test_every_page_of_the_manual_is_in_its_contents():
    def pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        parts = entry.values() if isinstance(entry, dict) else entry
        assert isinstance(parts, Iterable)
        return [page for part in parts for page in pages(part)]

    listed = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    there = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(there), "add the page to nav in mkdocs.yml"


def test_scripts_and_examples_import_what_there_is():
    """Nothing else notices a name that moved away under a script: it is run once in months."""
    missing = []
    for path in tracked("scripts/*.py", "perf/*.py", "examples/*.py"):
        for found in ast.walk(ast.parse(path.read_text())):
            if (
                not isinstance(found, ast.ImportFrom)
                or (found.module or "").partition(".")[0] not in PACKAGES
            ):
                continue
            room = importlib.import_module(str(found.module))
            inside = {one.name for one in pkgutil.iter_modules(getattr(room, "__path__", ()))}
            wanted = {one.name for one in found.names} - inside
            missing += [
                f"{path.name}: {found.module}.{one}" for one in wanted if not hasattr(room, one)
            ]
    assert not missing
