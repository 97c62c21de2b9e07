"""Running: the same bytes however it is carried out, failures recorded, nothing overwritten,
changes seen.
"""

import shutil
from importlib import import_module

import msgspec
import pytest
import runs_world as world
from registries import replace_registered

from tradeassay.core.errors import DataError, TradeassayError, UserError
from tradeassay_bench.account import venues
from tradeassay_bench.agents import agents
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.core.errors import LedgerError, RunError
from tradeassay_bench.core.events import InterestCharged
from tradeassay_bench.play import Market
from tradeassay_bench.runs import AgentSpec, Finished, PhaseStarted, Run, Window, resume, run
from tradeassay_bench.runs.play import trading
from tradeassay_bench.runs.store.folder import Versions, present_versions, run_lock, version_changes


def test_a_run_has_everything_on_disk(finished):
    assert finished.complete
    assert finished.failed == {}
    assert len(finished.episodes) == 10
    names = {path.name for path in finished.folder.iterdir()}
    assert names == {".lock", "manifest.json", "episodes", "scores.json", "timing.json"}
    for episode in finished.episodes:
        outcome = finished.outcome(episode.key)
        assert (outcome.status, outcome.steps) == ("done", world.SESSIONS - world.WARM)
        assert len(list(finished.records(episode.key))) == outcome.steps
        assert (
            finished.series(episode.key).nav[0] == finished.manifest.benchmark(episode).market.cash
        )
    assert len(finished.scores.agents) == 6
    assert {row.agent for row in finished.scores.agents if row.baseline} == {"equal-weight"}


@pytest.mark.slow_for("local-3")
@pytest.mark.parametrize(("executor", "workers"), [("inline", None), ("local", 2), ("local", 3)])
def test_the_same_bytes_from_every_executor(finished, home, tmp_path, executor, workers):
    again = run(
        world.tiny_spec("other"), tmp_path / "r", executor=executor, workers=workers, home=home
    )
    assert world.same_bytes(again.folder) == world.same_bytes(finished.folder)


def test_a_finished_run_is_not_touched_again(finished, home, tmp_path):
    folder = shutil.copytree(finished.folder, tmp_path / "tiny")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("events.jsonl")}
    phases = []
    resume(folder, executor="inline", home=home, progress=phases.append)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("events.jsonl")} == before
    assert [event.total for event in phases if isinstance(event, PhaseStarted)] == [2, 0]


def test_another_spec_under_the_same_name_is_refused(finished, home, tmp_path):
    folder = shutil.copytree(finished.folder, tmp_path / "tiny")
    before = world.same_bytes(folder)
    with pytest.raises(RunError, match="contains a different run: its seeds differ") as caught:
        run(world.tiny_spec(seeds=(0,)), folder, executor="inline", home=home)
    assert "a different name" in str(caught.value.hint)
    assert world.same_bytes(folder) == before


def test_a_folder_with_something_else_in_it_is_refused(home, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RunError, match="is not empty and does not contain a run"):
        run(world.tiny_spec(), tmp_path, executor="inline", home=home)
    with pytest.raises(RunError, match="is a file"):
        run(world.tiny_spec(), tmp_path / "thesis.txt", executor="inline", home=home)


def test_a_window_or_an_index_that_the_data_does_not_have_is_found_first(home, tmp_path):
    spec = world.tiny_spec(window=Window(first="2030-01-01", last="2030-02-01"))
    with pytest.raises(UserError, match="has no session from 2030-01-01"):
        run(spec, tmp_path / "r", executor="inline", home=home)
    market = msgspec.structs.replace(benchmarks.get("tiny-us-v1").market, universe="NASDAQ")
    benchmarks.add(
        "tiny-other-v1",
        msgspec.structs.replace(benchmarks.get("tiny-us-v1"), id="tiny-other-v1", market=market),
    )
    with pytest.raises(DataError, match="NASDAQ"):
        run(
            world.tiny_spec(benchmarks=("tiny-other-v1",)),
            tmp_path / "r",
            executor="inline",
            home=home,
        )
    assert not (tmp_path / "r" / "manifest.json").exists()
    assert run(world.tiny_spec(), tmp_path / "r", executor="inline", home=home).complete


def test_no_stale_scores_while_an_episode_is_played_again(home, play):
    done = play("test-cannot-begin")
    whole = world.same_bytes(done.folder)

    def stop(event):
        if isinstance(event, PhaseStarted) and event.phase == "score":
            raise KeyboardInterrupt

    played = []  # what failed is played again only when that is asked for
    resume(done.folder, executor="inline", home=home, progress=played.append)
    assert not [
        event for event in played if isinstance(event, Finished) and event.key in done.failed
    ]
    with pytest.raises(KeyboardInterrupt):
        resume(done.folder, executor="inline", home=home, retry_failed=True, progress=stop)
    assert not (done.folder / "scores.json").exists()
    (done.folder / ".scores.json.123.tmp").write_text("half")
    resume(done.folder, executor="inline", home=home)
    assert world.same_bytes(done.folder) == whole
    assert not list(done.folder.rglob(".*.tmp"))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_episode_that_fails_is_recorded_and_the_others_go_on(play, workers):
    events, names = [], ("test-cannot-begin", "test-never-answers", "reversal")
    both = ("tiny-us-v1", "tiny-ashare-v1")
    done = play(*names, benchmarks=both, how=("local", workers), progress=events.append)
    assert len(done.failed) == 4
    failures = [
        event for event in events if isinstance(event, Finished) and event.status == "failed"
    ]
    assert {event.key for event in failures} == set(done.failed)
    begin = done.scores.episode("tiny-us-v1__tiny-us__test-cannot-begin__s0")
    assert (
        begin.reason
        == "RuntimeError: no <b>key</b> for <object object at 0x...> (runs_agents.py, line 79)"
    )
    assert begin.steps == 0
    silent = done.scores.episode("tiny-us-v1__tiny-us__test-never-answers__s0")
    assert silent.steps == 50
    assert str(silent.reason).startswith("no usable answer in any of 50 sessions")
    for episode in (begin, silent):
        assert (episode.status, episode.measures["cumulative_return"].value) == ("failed", None)
    row = next(row for row in done.scores.agents if row.agent == "test-never-answers")
    assert (row.failed, row.versus_baseline.distinguishable) == (1, None)
    assert done.scores.episode("tiny-us-v1__tiny-us__reversal__s0").status == "done"
    assert "Traceback" in str(done.outcome(begin.key).traceback)


def test_wrong_money_stops_everything(home, tmp_path, monkeypatch):
    def broken(*_):
        raise LedgerError("cash is gone")

    monkeypatch.setattr(Market, "step", broken)
    with pytest.raises(LedgerError, match="cash is gone"):
        run(world.tiny_spec(), tmp_path / "r", executor="inline", home=home)
    assert not list((tmp_path / "r").rglob("outcome.json"))


def test_a_sum_that_is_not_finite_ends_its_own_episode_alone(play, monkeypatch):
    step = Market.step

    def overflows(market, decision):
        if decision.reason == "everything a float holds":
            market.ledger.apply(InterestCharged(float("-inf")))
        return step(market, decision)

    monkeypatch.setattr(Market, "step", overflows)
    done = play("test-special-floats", "reversal")
    assert list(done.failed) == ["tiny-us-v1__tiny-us__test-special-floats__s0"]
    assert "NotFinite: the balance would become -inf" in str(
        done.scores.episode(next(iter(done.failed))).reason
    )
    assert done.scores.episode("tiny-us-v1__tiny-us__reversal__s0").status == "done"


def test_an_agent_that_sends_every_special_float_is_scored_and_so_are_the_others(play):
    done = play("test-special-floats", "reversal", benchmarks=("tiny-us-v1", "tiny-ashare-v1"))
    assert done.failed == {}
    scores = done.scores.episode("tiny-us-v1__tiny-us__test-special-floats__s0")
    assert scores.measures["cumulative_return"].value is not None
    answered = scores.steps - scores.steps // 10
    assert (scores.rejections["bad_amount"], scores.rejections["bad_price"]) == (
        2 * answered,
        answered,
    )
    assert scores.failures["amount"] >= scores.steps // 10


def dying(tmp_path, times):
    """An agent that kills its process so many times."""
    return AgentSpec(
        name="test-dies", params={"marker": str(tmp_path / "deaths"), "times": times}, label="dies"
    )


@pytest.mark.journey
def test_a_worker_that_dies_once_does_not_show_in_the_result(play, tmp_path):
    first, second = (
        play(dying(tmp_path, 1), "reversal", folder=folder, how=("local", 2))
        for folder in ("one", "two")
    )
    assert (tmp_path / "deaths").read_text() == "x"
    assert first.failed == {}
    assert world.same_bytes(first.folder) == world.same_bytes(second.folder)


@pytest.mark.journey
def test_a_worker_that_dies_again_is_a_failed_episode(play, tmp_path):
    done = play(dying(tmp_path, 9), "reversal", how=("local", 2))
    assert list(done.failed) == ["tiny-us-v1__tiny-us__dies__s0"]
    assert "died" in str(done.scores.episode(next(iter(done.failed))).reason)
    assert done.scores.episode("tiny-us-v1__tiny-us__reversal__s0").status == "done"


def test_an_agent_with_other_randomness_is_caught_on_resume(play, home):
    done = play("test-fickle")
    (done.folder / "episodes" / "tiny-us-v1__tiny-us__test-fickle__s0" / "outcome.json").unlink()
    with pytest.raises(RunError, match=r"step 0 of .* differs from the journal"):
        resume(done.folder, executor="inline", home=home)


def test_a_journal_that_was_swapped_is_noticed_on_resume(finished, home, tmp_path):
    folder = shutil.copytree(finished.folder, tmp_path / "tiny")
    first, second = sorted(folder.glob("episodes/*/events.jsonl"))[:2]
    first.write_bytes(second.read_bytes())
    with pytest.raises(RunError, match="does not match its outcome"):
        resume(folder, executor="inline", home=home)


def test_a_costly_agent_is_reminded_not_asked_again(play, home, tmp_path):
    log = tmp_path / "log"
    done = play(AgentSpec(name="test-costly", params={"log": str(log)}, label="costly"))
    whole = world.same_bytes(done.folder)
    assert log.read_text().splitlines() == [f"asked {step}" for step in range(50)]
    events = done.folder / "episodes" / "tiny-us-v1__tiny-us__costly__s0" / "events.jsonl"
    lines = events.read_bytes().splitlines(keepends=True)
    events.write_bytes(b"".join(lines[:20]) + lines[20][:40])
    (events.parent / "outcome.json").unlink()
    log.write_text("")
    resume(done.folder, executor="inline", home=home)
    said = [line.split()[:2] for line in log.read_text().splitlines()]
    assert said == [["told" if step < 20 else "asked", str(step)] for step in range(50)]
    assert world.same_bytes(done.folder) == whole


def test_reading_what_is_not_there(finished, tmp_path):
    with pytest.raises(RunError, match="does not contain a run"):
        Run.load(tmp_path)
    with pytest.raises(RunError, match="did you mean"):
        finished.episode("tiny-us-v1__tiny-us__equal-weight__s1")
    folder = shutil.copytree(finished.folder, tmp_path / "tiny")
    (folder / "scores.json").unlink()
    with pytest.raises(RunError, match="has no scores yet"):
        _ = Run.load(folder).scores
    (folder / "scores.json").write_text("{")
    with pytest.raises(RunError, match="is damaged"):
        _ = Run.load(folder).scores
    (folder / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(RunError, match="has format 99"):
        Run.load(folder)


@pytest.fixture
def unfinished(finished, tmp_path):
    """The finished run with one episode still to play."""
    folder = shutil.copytree(finished.folder, tmp_path / "tiny")
    shutil.rmtree(sorted((folder / "episodes").iterdir())[0])
    (folder / "scores.json").unlink()
    return folder


def refused(folder, home, complaint):
    def content():
        return {
            one: one.read_bytes()
            for one in folder.rglob("*")
            if one.is_file() and one.name != ".lock"
        }

    before = content()
    with pytest.raises(TradeassayError, match=complaint) as caught:
        resume(folder, executor="inline", home=home)
    assert caught.value.hint and content() == before


def test_other_data_is_refused(unfinished, tmp_path):
    other = tmp_path / "other-home"
    world.write_world(other, seed=1)
    refused(unfinished, other, "data set 'tiny-us' has changed since")


def test_an_altered_file_of_the_data_is_refused(unfinished, home, tmp_path):
    other = tmp_path / "other-home"
    shutil.copytree(home, other)
    bars = other / "store" / "tiny-us" / "bars.arrow"
    content = bytearray(bars.read_bytes())
    content[len(content) // 2] ^= 1
    bars.chmod(0o644)
    bars.write_bytes(bytes(content))
    refused(unfinished, other, "altered")


def test_another_benchmark_venue_or_version_is_refused(unfinished, home, monkeypatch):
    for registry, name, changes, what in (
        (benchmarks, "tiny-us-v1", {"description": "harder"}, "benchmark 'tiny-us-v1' has changed"),
        (venues, "us-v1", {"title": "kinder"}, "the venue of benchmark 'tiny-us-v1' has changed"),
    ):
        with monkeypatch.context() as patch:
            changed = msgspec.structs.replace(registry.get(name), **changes)
            replace_registered(patch, registry, name, changed)
            refused(unfinished, home, what)
    now = present_versions()
    newer = msgspec.structs.replace(now, packages={**now.packages, "numpy": "99.0"})
    monkeypatch.setattr(trading, "present_versions", lambda: newer)
    refused(unfinished, home, r"made with other versions: numpy was .*, is 99.0")


def test_changed_code_beside_a_users_agent_is_refused(play, home, tmp_path, monkeypatch):
    """An agent may be a package, and decide in a file that does not define it."""
    package = tmp_path / "many_files"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "picks.py").write_text("SYMBOLS = 1\n")
    (package / "trader.py").write_text(
        "from many_files.picks import SYMBOLS\nfrom runs_agents import Provoker\nclass "
        "Trader(Provoker): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    trader = import_module("many_files.trader").Trader
    with agents.knowing({"test-many-files": trader}):
        done = play("test-many-files")
        assert resume(done.folder, executor="inline", home=home).complete
        (package / "picks.py").write_text("SYMBOLS = 2\n")
        refused(done.folder, home, "the code of agent 'test-many-files' has changed")


def test_two_processes_cannot_write_one_run(unfinished, home):
    with (
        run_lock(unfinished / ".lock"),
        pytest.raises(RunError, match="is being written by process"),
    ):
        resume(unfinished, executor="inline", home=home)


def test_which_versions_matter():
    then = Versions(
        packages={"numpy": "2.0", "polars": "1"},
        python="3.11.7",
        platform="linux",
        machine="x86_64",
    )
    for now, said in (
        ({"packages": {"numpy": "2.0", "polars": "2"}}, []),
        ({"python": "3.11.9", "platform": "darwin"}, []),
        ({"python": "3.12.1"}, ["Python was 3.11, is 3.12"]),
        ({"machine": "arm64"}, ["the machine was x86_64, is arm64"]),
        ({"packages": {}}, ["numpy was 2.0, is not installed"]),
    ):
        assert version_changes(then, msgspec.structs.replace(then, **now)) == said


@pytest.mark.parametrize(
    ("name", "old", "new", "complaint"),
    [
        ("manifest.json", b'"tiny-us-v1"', b'"tiny-\xff-v1"', "manifest.json is damaged"),
        ("manifest.json", b'"windows"', b'"wind\xffws"', "manifest.json is damaged"),
        ("manifest.json", b'"tiny-us-v1": {', b'"tiny-us-v9": {', "no description of"),
        ("manifest.json", b"{", b'{"more":' + b"[" * 100_000, "manifest.json is damaged"),
        ("episodes/*/events.jsonl", b'"step"', b'"st\xffp"', "damaged"),
        ("episodes/*/events.jsonl", b"{", b'{"more":' + b"[" * 100_000, "damaged"),
    ],
)
def test_a_byte_that_does_not_belong_is_one_line(unfinished, home, name, old, new, complaint):
    path = next(unfinished.glob(name))
    assert old in path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    if name.endswith("jsonl"):
        (path.parent / "outcome.json").unlink()
    refused(unfinished, home, complaint)
