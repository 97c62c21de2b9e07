"""Every field of a run's records and of its assay is changed in turn; ``verify`` notices what is
not excused.

A change is made as a forger would make it: what follows from the changed field is computed again,
and pages, which would give the forgery away, are left out. An honest folder with the same contents
is accused of nothing.
"""

import shutil
import sys
from functools import partial
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "forgeries"))

from forger import NOT_COVERED, counted, cover_tracks, field_changes, share_noticed
from forging import command
from honest_runs import given, play

from tradeassay.core.errors import TradeassayError
from tradeassay_bench.core.executors import make_executor
from tradeassay_bench.examine import assay_file
from tradeassay_bench.report.verifying import check_beside
from tradeassay_bench.runs import load_run
from tradeassay_bench.runs.verify.report import verify

pytestmark = pytest.mark.journey

DAYS = ("--first", "2022-01-10", "--last", "2022-04-12")
"""Long enough for tests of an edge."""
ASSAY = ("--portfolios", "100")
EXCUSED = {
    **NOT_COVERED,
    r"manifest\.json spec\.secret": "who chose the secret is named in a note; nothing is drawn "
    "from it here",
}
"""Fields whose change need not be noticed, and why. Of an assay there is none."""


# -- folders that were made honestly --


def alone(root):
    """A rule and a scripted model, judged, with no other run beside them."""
    run = play(
        root, "run", "daily-us-v1", "-a", "momentum-12-1:k=3", "-m", "scripted/sensible", *DAYS
    )
    assert command("assay", run, *ASSAY)[0] == 0
    return [run]


def company(root):
    """Two runs of a benchmark: the first was judged while it was alone, the second beside it."""
    first = play(root, "run", "daily-us-v1", "-a", "momentum-12-1:k=3", *DAYS, "--name", "first")
    assert command("assay", first, *ASSAY)[0] == 0
    second = play(root, "run", "daily-us-v1", "-a", "random", *DAYS, "--name", "second")
    assert command("assay", second, *ASSAY)[0] == 0
    return [first, second]


def leaked(root):
    """A run beside another, whose agents' leaks were tested."""
    first = company(root)[0]
    assert command("assay", first, *ASSAY, "--leak-sessions", "3")[0] == 0
    return [first]


def brief(root):
    """Two runs of a few sessions."""
    words = "run daily-us-v1 -a {} --first 2022-01-10 --last 2022-01-20 --name {}"
    return [given(words.format(rule, rule))(root) for rule in ("momentum-12-1", "random")]


FOLDERS = {one.__name__: one for one in (alone, company, leaked, brief)}


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """Return the runs of an honest folder; it is made once."""
    made = {}

    def of(name):
        if name not in made:
            made[name] = FOLDERS[name](tmp_path_factory.mktemp(name))
        return made[name]

    return of


@pytest.fixture
def fast(monkeypatch):
    """Verify in this process, and make an assay once for every way in which it can be asked for."""
    real, made = assay_file.assay_run, {}

    def assayed(run, config, *, memory, outside):
        asked = repr((run.folder, config, memory, outside))
        if asked not in made:
            made[asked] = real(run, config, memory=memory, outside=outside)
        return made[asked]

    def inline(kind, **how):
        return make_executor("inline", **how)

    monkeypatch.setattr(assay_file, "assay_run", assayed)
    monkeypatch.setattr("tradeassay_bench.runs.verify.report.make_executor", inline)


# -- changed in turn --


def looked(run, found):
    """Return what is said of a run: the exit status first, and all that names what was changed
    or chosen.
    """
    found = found if found.contradicted else check_beside(load_run(run), found)
    return found.exit_code, found.unchecked, found.notes, found.freedom


def changed_in_turn(run, place, name, *, part=slice(None), seed=0):
    """Change the fields of a file in copies of a folder of runs; return what was tried."""
    folder = Path(shutil.copytree(run.parent, place / "runs"))
    work, examined = folder / run.name, {}
    (work / "report.html").unlink(missing_ok=True)
    if name != "assay.json":
        (work / "assay.json").unlink(missing_ok=True)
    look = partial(verify, work, workers=1, examined=examined)
    record = look()
    before = {path: path.read_bytes() for path in sorted(work.rglob("*")) if path.is_file()}
    was, tried = looked(work, record), []
    assert was[0] != 1, was
    planned = []
    for path in sorted(work.rglob(name)):
        planned += [(path, *one) for one in field_changes(path, before[path], Random(seed))]
    for path, what, change in planned[part]:
        path.write_bytes(change())
        if name != "assay.json":
            cover_tracks(work, path)
        if all(file.read_bytes() == then for file, then in before.items()):
            continue  # a hash that follows from the content
        try:
            found = looked(work, record if name == "assay.json" else look())
            named = "marked" if found[1:] != was[1:] else "passed"
            became = "contradicted" if found[0] == 1 else named
        except TradeassayError:
            became = "contradicted"  # one line that names the file: nothing of it is shown
        tried.append((name, what, became))
        for file, then in before.items():
            if not file.is_file() or file.read_bytes() != then:
                file.write_bytes(then)
    return tried


@pytest.mark.parametrize(
    ("folder", "number", "name", "few"),
    [
        ("company", 0, "assay.json", 12),
        ("company", 1, "assay.json", 12),
        ("brief", 1, "manifest.json", 6),
        ("brief", 1, "outcome.json", 3),
        ("brief", 1, "scores.json", 6),
    ],
)
def test_a_sample_of_changed_fields_is_noticed(folder, number, name, few, honest, fast, tmp_path):
    tried = changed_in_turn(honest(folder)[number], tmp_path, name, part=slice(few))
    assert share_noticed(counted(tried, EXCUSED)) == 1.0, counted(tried, EXCUSED)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("folder", "number", "name", "least"),
    [
        ("alone", 0, "assay.json", 2500),
        ("company", 0, "assay.json", 1900),
        ("company", 1, "assay.json", 1900),
        ("leaked", 0, "assay.json", 1900),
        *(("brief", number, "manifest.json", 80) for number in (0, 1)),
        *(("brief", number, "outcome.json", 10) for number in (0, 1)),
        *(("brief", number, "scores.json", 600) for number in (0, 1)),
    ],
)
def test_every_changed_field_is_noticed(folder, number, name, least, honest, fast, tmp_path):
    found = counted(changed_in_turn(honest(folder)[number], tmp_path, name), EXCUSED)
    assert found["made"] >= least
    assert share_noticed(found) == 1.0, found
    if name == "assay.json":
        assert found["contradicted"] + found["marked"] == found["made"], (
            "nothing of an assay is excused"
        )
