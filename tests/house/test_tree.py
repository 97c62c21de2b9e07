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
from tradeassay.cli.code import code
from tradeassay.core.measure import plain_sum

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
    lines = ((path, line) for path in tracked("src/*.py") for line in path.read_text().splitlines())
    return [f"{path.relative_to(ROOT)}: {line.strip()}" for path, line in lines if sought.search(line)]


def test_nothing_is_left_unfinished():
    assert not lines_with(r"NotImplementedError|TO" + r"DO|FIX" + r"ME|XX" + r"X\b")


def test_every_package_says_what_it_is_for():
    for path in tracked("src/**/__init__.py"):
        assert path.read_text().lstrip().startswith('"""'), f"{path} has no docstring"


def test_a_type_ignore_states_its_reason():
    assert not lines_with(r"#\s*type:\s*ignore(\[[\w, -]+\])?\s*$")


def test_hints_of_the_library_name_keywords_and_not_options():
    """The command line puts its options in their place; a whole command may be named as it is."""
    library = [path for path in tracked("src/*.py") if "cli" not in path.relative_to(ROOT).parts]
    hints = [(path.name, hint) for path in library for hint in hints_of(ast.parse(path.read_text()))]
    assert len(hints) > 500
    assert not [one for one in hints if re.search(r"(?<![\w-])--[a-z]", one[1]) and "tradeassay " not in one[1]]


def hints_of(tree: ast.AST) -> Iterable[str]:
    """Yield the source of what is given as ``hint``, or kept under that name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            yield ast.unparse(node.value)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "hint":
            yield ast.unparse(node.value)


def test_what_cannot_be_decoded_has_one_name():
    """A reader that catches one of the ways alone lets the others through as a traceback."""
    alone = r"except\b.*\bmsgspec\.(DecodeError|MsgspecError)"
    assert not lines_with(alone), "catch tradeassay.core.errors.UNDECODABLE"


ROW = re.compile(r"^\| `(\w+)` \| .* \| ([^|]*) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def imported():
    graph = grimp.build_graph("tradeassay")
    return {module: graph.find_modules_directly_imported_by(module) - {module} for module in graph.modules}


def test_no_circles(imported):
    """Not even inside a room and not even for types."""
    left = dict(imported)
    while ready := [module for module, others in left.items() if not others & left.keys()]:
        for module in ready:
            del left[module]
    assert not left, f"in or above a circle: {sorted(left)[:20]}"


def test_the_map_of_the_house_is_true(imported):
    """The rooms in the manual are the folders, and import what it says beside the core."""
    rooms = {path.parent.name for path in (ROOT / "src" / "tradeassay").glob("*/__init__.py")}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module, others in imported.items():
        room = module.split(".")[1:2]
        if room and room[0] in rooms:
            found[room[0]] |= {other.split(".")[1] for other in others if "." in other} & rooms - {*room, "core"}
    told = dict(ROW.findall((ROOT / "docs" / "concepts" / "house.md").read_text(encoding="utf-8")))
    said = {room: set(re.findall(r"`(\w+)`", text)) for room, text in told.items()}
    assert said.keys() == rooms
    wrong = {room: f"imports {sorted(found[room])}" for room in sorted(rooms) if found[room] != said[room]}
    assert not wrong, "mend the table in docs/concepts/house.md, or the import"


HEAVY = set(
    """akshare anthropic arch baostock ccxt exchange_calendars httpx inspect_ai numba openai pandas plotly polars
    pyarrow pydantic ray requests rich scipy xllamacpp yfinance""".split()
)


def test_importing_and_asking_for_help_load_nothing_heavy():
    code = f"""
import sys, tradeassay, tradeassay.assay, tradeassay.cli, tradeassay.llm, tradeassay.runs
tradeassay.cli.main(["--help"])
print("LOADED", *{HEAVY | {"numpy"}} & sys.modules.keys())
import tradeassay.data, tradeassay.data.connectors, tradeassay.data.synthetic, tradeassay.factors
print("LOADED", *{HEAVY} & sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("LOADED")] == ["LOADED", "LOADED"]


def test_every_name_that_a_package_offers_is_there():
    """Names that are loaded on use must not point at a file that has moved."""
    missing = []
    rooms = [found.name for found in pkgutil.walk_packages(tradeassay.__path__, "tradeassay.") if found.ispkg]
    for package in map(importlib.import_module, ["tradeassay", *rooms]):
        names = getattr(package, "__all__", ())
        assert set(names) <= set(dir(package)), package
        missing += [f"{package.__name__}.{name}" for name in names if not hasattr(package, name)]
    assert not missing


PACKAGE = Path(tradeassay.__file__).parent
COUNTING = frozenset("len bool int any all ord isinstance startswith match search".split())
"""Functions that give whole numbers or truths."""
WHOLE = frozenset(
    """ENGLISH GAP GIVEN PER_MESSAGE a_start a_stop agents at b_start b_stop bars bit book calls codes
    compress_size correct_account count counts decisions drifted end ended episodes estimate_request
    estimate_tokens failed file_size input_tokens items least level long look_ahead marks model_calls
    most_tokens n nbytes not_cleared ok output_tokens passed reached_goal reads refused row rows
    said sessions size slots st_size start steps talks tasks tests tokens tokens_of tool_calls tricks unparsed
    unpriced valid words write""".split()
)
"""What counts something, wherever a sum of the package names it."""
ALLOWED = {
    "arena/queries/decisions.py": {"sum((right for _, right in here))"},  # truths
    "arena/web/status.py": {"sum(mine['corrections'].values())"},  # rows
    "arena/standings/variance.py": {"sum(effects)"},  # arrays, which numpy adds
    "assay/memory/recall.py": {"sum(moves)"},  # truths
    "assay/attribute.py": {"sum(trading.values(), np.zeros(daily.trading.size))"},
    "benchmarks/quantcode/scores.py": {"sum((Counter(getattr(cell, field)) for cell in cells), Counter[str]())"},
    "benchmarks/quantcode/tables.py": {"sum((getattr(row, name) for row in printed_rows))"},  # tasks
    "benchmarks/systrade/tables.py": {"sum(one[1])"},  # submissions
    "data/synthetic/events.py": {"sum(weights)"},  # whole percents
    "metrics/reliability.py": {"sum(group)"},  # truths
    "code/collapse.py": {"sum((counts[left] & counts[right]).values())"},
}


def whole(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Constant(value=value):
            return isinstance(value, int)
        case ast.BinOp(left=left, right=right, op=op):
            return not isinstance(op, ast.Div) and whole(left) and whole(right)
        case ast.Call(func=ast.Name(id="sum")):
            return counts(node)
        case ast.Call(func=ast.Attribute(attr="values" | "get", value=value)) | ast.Subscript(value=value):
            return whole(value)
        case ast.Call(func=ast.Name(id="max" | "min" | "abs"), args=args):
            return all(map(whole, args))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) | ast.Name(id=name):
            return name.lstrip("_") in COUNTING | WHOLE
        case ast.Attribute(attr=name):
            return name in WHOLE
    return False


def counts(call: ast.Call) -> bool:
    match call.args[0]:
        case ast.GeneratorExp(elt=elt) | ast.ListComp(elt=elt):
            return whole(elt)
        case ast.Call(func=ast.Name(id="map"), args=[function, *_]):
            return whole(function)
        case other:
            return whole(other)


def test_the_builtin_sum_adds_counts_only():
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        name, text = file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(r"(?<![\w.])sum\(", text) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum":
                if not counts(node) and ast.unparse(node) not in ALLOWED.get(name, ()):
                    wrong.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert not wrong, "floats: use core.measure.plain_sum; counts: name them in this test\n" + "\n".join(wrong)


def test_floats_are_rounded_after_every_term():
    assert plain_sum([0.1] * 10) == 0.9999999999999999  # 1.0 when compensated
    assert plain_sum(iter(())) == 0 and plain_sum((1e308, 1e308, -1e308)) == float("inf")


FILES = [ROOT / "compose.yaml", ROOT / "action.yml", ROOT / "CITATION.cff", *sorted(ROOT.glob(".github/**/*.yml"))]


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
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', (ROOT / "Dockerfile").read_text())
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= set(known)
    assert "postgres" in extras.split(","), "compose.yaml plays on PostgreSQL"


def test_the_composed_arena_calls_options_that_exist():
    from tradeassay.cli.arena import arena

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
            if not isinstance(found, ast.ImportFrom) or (found.module or "").partition(".")[0] != "tradeassay":
                continue
            room = importlib.import_module(str(found.module))
            inside = {one.name for one in pkgutil.iter_modules(getattr(room, "__path__", ()))}
            wanted = {one.name for one in found.names} - inside
            missing += [f"{path.name}: {found.module}.{one}" for one in wanted if not hasattr(room, one)]
    assert not missing
