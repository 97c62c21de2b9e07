"""Models play: same bytes from replays and at any concurrency, honest failures, costs, badges,
refusals.
"""

import shutil
from unittest import mock

import msgspec
import pytest
import runs_talk as talk
import runs_world as world

from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.core.dialogue import Usage
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.llm import RecordingMismatch
from tradeassay_bench.llm.scripted.model import ScriptedProvider
from tradeassay_bench.play.dialogue_log import DialogueLog, Spending, whole_messages
from tradeassay_bench.runs import AgentSpec, Answered, Asking, AskStarted, Run, expand, resume, run
from tradeassay_bench.runs.play.episodes import conversation_rng
from tradeassay_bench.runs.score import NET_RETURN
from tradeassay_bench.runs.spec.episode import protocol_of
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.verify.report import verify

KEY = "tiny-talk-v1__tiny-us__tiny-good__s0"


@pytest.fixture(scope="module")
def played(home, tmp_path_factory):
    """One uninterrupted run with a good and a mute model. Tests must not change it."""
    folder = tmp_path_factory.mktemp("talk") / "talk"
    return run(talk.talk_spec("tiny-good", "tiny-mute"), folder, executor="inline", home=home)


def test_rules_and_models_share_a_leaderboard(played, home):
    rows = {row.agent: row for row in played.scores.agents}
    assert set(rows) == {"equal-weight", "reversal-lookback=3", "tiny-good", "tiny-mute"}
    good = rows["tiny-good"]
    assert good.measures["cumulative_return"].median.value is not None
    assert good.versus_baseline is not None
    assert isinstance(rows["equal-weight"].inference, msgspec.UnsetType)
    assert NET_RETURN not in rows["equal-weight"].measures
    report = verify(played.folder, home=home, workers=1)
    assert report.ok, report.violations


def test_a_model_that_gives_no_usable_answer_has_failed_and_has_no_return(played):
    row = next(row for row in played.scores.agents if row.agent == "tiny-mute")
    assert (row.failed, row.measures["cumulative_return"].median.value) == (2, None)
    assert row.measures[NET_RETURN].median.value is None
    episode = played.scores.episode("tiny-talk-v1__tiny-us__tiny-mute__s0")
    assert (episode.status, episode.failures) == ("failed", {"parse": 100})
    assert "no usable answer in any of 50 sessions" in str(episode.reason)


def test_what_answers_take_is_counted(played):
    row = next(row for row in played.scores.agents if row.agent == "tiny-good")
    assert not isinstance(row.inference, msgspec.UnsetType)
    assert (row.inference.calls, row.inference.decisions, row.inference.usd) == (200, 100, 0.0)
    assert row.inference.calls_per_decision == 2.0
    assert row.measures[NET_RETURN].median.value == row.measures["cumulative_return"].median.value


def test_badges_say_whose_answers_they_are(played):
    assert played.badges(KEY).model == "scripted"
    assert played.badges("tiny-talk-v1__tiny-us__equal-weight__s0").model == "none"
    assert played.setting_badges("tiny-talk-v1__tiny-us").model == "scripted"
    with pytest.raises(RunError, match="no setting"):
        played.setting_badges("nowhere")


def test_the_dialogue_is_kept_question_by_question(played):
    lines = list(played.dialogue(KEY))
    assert [(line.step, line.purpose, line.kept) for line in lines[:4]] == [
        (0, "look", 0),
        (0, "decide", 2),
        (1, "look", 0),
        (1, "decide", 2),
    ]
    whole = list(whole_messages(lines))
    assert [message.role for message in whole[1]] == ["system", "user", "assistant", "user"]
    assert lines[0].reply.usage.input_tokens > 0
    assert "remember ['0:day 0']" in lines[2].reply.text
    assert list(played.dialogue("tiny-talk-v1__tiny-us__equal-weight__s0")) == []


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_replay_gives_the_same_bytes_without_asking(
    played, home, tmp_path, concurrency, monkeypatch
):
    def nobody(*args, **kwargs):
        raise AssertionError("a replay opened a provider")

    monkeypatch.setattr(ScriptedProvider, "__init__", nobody)
    asking = Asking(replay=True, recordings=played.folder, concurrency=concurrency)
    again = run(played.spec, tmp_path / "r", executor="inline", home=home, asking=asking)
    assert world.same_bytes(again.folder) == world.same_bytes(played.folder)
    dialogue = RunFolder(again.folder).dialogue(KEY).read_bytes()
    assert dialogue == RunFolder(played.folder).dialogue(KEY).read_bytes()


def test_a_replay_from_answers_laid_into_an_empty_folder(played, home, tmp_path):
    shutil.copytree(played.folder / "models", tmp_path / "r" / "models")
    again = run(
        played.spec, tmp_path / "r", executor="inline", home=home, asking=Asking(replay=True)
    )
    assert world.same_bytes(again.folder) == world.same_bytes(played.folder)


def test_a_replay_of_other_questions_fails_closed(played, home, tmp_path):
    changed = msgspec.structs.replace(played.spec, protocol={"mask": "bright"})
    with pytest.raises(RecordingMismatch, match="nothing was recorded for"):
        run(changed, tmp_path / "r", executor="inline", home=home, asking=Asking(replay=True))


def test_a_replay_that_lacks_answers_fails_and_can_be_gone_on_with(played, home, tmp_path):
    shutil.copytree(played.folder / "models", tmp_path / "r" / "models")
    path = tmp_path / "r" / "models" / f"{KEY}.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:40]))
    with pytest.raises(RecordingMismatch, match="nothing was recorded for"):
        run(played.spec, tmp_path / "r", executor="inline", home=home, asking=Asking(replay=True))
    assert not Run.load(tmp_path / "r").complete
    resume(tmp_path / "r", executor="inline", home=home)
    assert world.same_bytes(tmp_path / "r") == world.same_bytes(played.folder)


def test_being_cut_off_is_no_result_and_costs_nothing_twice(home, tmp_path):
    cut = tmp_path / "cut"
    cut.touch()
    with mock.patch.object(talk.LOG, "path", cut):
        first = run(talk.talk_spec("tiny-cut-off"), tmp_path / "r", executor="inline", home=home)
        key = "tiny-talk-v1__tiny-us__tiny-cut-off__s0"
        episode = first.scores.episode(key)
        assert (episode.status, episode.steps) == ("failed", 5)
        assert str(episode.reason).startswith("unreachable on 2024-01-22: no route")
        assert episode.measures["cumulative_return"].value is None
        assert list(first.dialogue(key))[-1].reply.error == "no route"
        assert verify(first.folder, home=home, workers=1).ok
        recorded = (tmp_path / "r" / "models" / f"{key}.jsonl").read_bytes()
        cut.unlink()
        again = resume(tmp_path / "r", executor="inline", home=home, retry_failed=True)
        assert not again.failed
        assert (tmp_path / "r" / "models" / f"{key}.jsonl").read_bytes().startswith(recorded)
        whole = run(
            talk.talk_spec("tiny-cut-off"), tmp_path / "whole", executor="inline", home=home
        )
        assert world.same_bytes(again.folder) == world.same_bytes(whole.folder)


def test_a_changed_prompt_is_refused(played, home, tmp_path, monkeypatch):
    shutil.copytree(played.folder, tmp_path / "r")
    monkeypatch.setattr("tradeassay_bench.runs.spec.episode.sha256_bytes", lambda prompt: "0" * 64)
    with pytest.raises(RunError, match=r"the prompt runs_talk_prompt\.txt has changed"):
        resume(tmp_path / "r", executor="inline", home=home)


def test_the_manifest_names_prompts_settings_and_prices(played):
    record = played.manifest.protocols["tiny-talk-v1__tiny-us"]
    assert set(record.prompts) == {"runs_talk_prompt.txt"}
    assert record.config == {"mask": "bright", "attempts": 2, "max_tokens": 100}
    assert played.manifest.models["tiny-good"].model == "scripted/tiny-good"
    assert played.manifest.models["tiny-good"].price_as_of is not None


def test_a_grid_over_settings_is_one_spec(home, tmp_path):
    spec = talk.talk_spec(
        "tiny-good", protocol={"mask": ("bright", "blinded"), "attempts": 1}, seeds=(0,)
    )
    cells = dict.fromkeys(episode.setting for episode in expand(spec))
    assert list(cells) == [
        "tiny-talk-v1__tiny-us__attempts=1+mask=bright",
        "tiny-talk-v1__tiny-us__attempts=1+mask=blinded",
    ]
    done = run(spec, tmp_path / "r", executor="inline", home=home)
    bright, blinded = (done.scores.episode(f"{cell}__reversal-lookback=3__s0") for cell in cells)
    assert bright.events_sha256 == blinded.events_sha256, "a rule is not concerned by masks"
    configs = {cell: record.config for cell, record in done.manifest.protocols.items()}
    assert [configs[cell]["mask"] for cell in cells] == ["bright", "blinded"]
    one, other = (
        next(e for e in done.episodes if e.setting == cell and e.by_model) for cell in cells
    )
    drawn = [
        conversation_rng(done.manifest.benchmark(each), each, "x").random() for each in (one, other)
    ]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"protocol": {"maks": "bright"}}, "has no option 'maks'.*did you mean mask"),
        ({"protocol": {"mask": "dark"}}, "cannot take mask='dark'.*bright, blinded"),
        ({"protocol": {"attempts": "many"}}, "cannot take attempts='many'"),
        ({"protocol": {"mask": ("bright", "bright")}}, "'bright' is given twice"),
        ({"protocol": {"mask": ()}}, "no value is given"),
        ({"agents": (talk.model("nobody"),)}, "no scripted model 'nobody'"),
        (
            {"agents": (AgentSpec(name="model", params={"model": "gpt"}),)},
            "'gpt' is not a model name",
        ),
        ({"agents": (talk.model("tiny-good", temperature=9.0),)}, "cannot take temperature"),
        (
            {"windows": ("W1",)},
            "'tiny-talk' has no window 'W1'.*first= and last=, or after-DAY",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(changes, complaint, home, tmp_path):
    with pytest.raises(UserError, match=complaint):
        run(talk.talk_spec(**changes), tmp_path / "r", executor="inline", home=home)
    assert not (tmp_path / "r" / "manifest.json").exists()


def test_a_benchmark_without_a_conversation_says_so():
    silent = msgspec.structs.replace(benchmarks.get("daily-us-v1"), protocol="silent")
    with pytest.raises(UserError, match="'daily-us-v1' has no conversation"):
        protocol_of(silent)


def test_a_window_and_named_windows_exclude_each_other():
    with pytest.raises(UserError, match="both given"):
        talk.talk_spec(window={"first": "2024-01-15", "last": "2024-02-01"}, windows=("W1",))


def test_a_cap_needs_a_price(home, tmp_path):
    unknown = AgentSpec(name="model", params={"model": "openai/none-such"}, label="x")
    with pytest.raises(UserError, match="price of openai/none-such is unknown"):
        run(
            talk.talk_spec(agents=(unknown,)), tmp_path / "r", home=home, asking=Asking(max_usd=1.0)
        )
    for wrong in ({"max_usd": 0.0}, {"concurrency": 0}):
        with pytest.raises(UserError):
            Asking(**wrong)


def prices(path):
    path.write_text(
        '[prices."scripted/tiny-good"]\ninput = 1000.0\noutput = 1000.0\nsource = "a test"\nas_of '
        "= 2026-01-01\n"
    )
    return path


def test_the_cap_is_hard_and_the_run_can_go_on_with_more(home, tmp_path):
    table = prices(tmp_path / "prices.toml")
    spec = talk.talk_spec("tiny-good")
    first = run(
        spec, tmp_path / "r", executor="inline", home=home, asking=Asking(max_usd=4.0, prices=table)
    )
    row = next(row for row in first.scores.agents if row.agent == "tiny-good")
    assert row.failed == 2
    assert not isinstance(row.inference, msgspec.UnsetType)
    assert row.inference.usd is not None and 2.0 < row.inference.usd <= 4.0
    assert all("over_budget" in str(first.scores.episode(key).reason) for key in row.episodes)
    again = resume(
        tmp_path / "r",
        executor="inline",
        home=home,
        retry_failed=True,
        asking=Asking(max_usd=400.0, prices=table),
    )
    assert not again.failed
    whole = run(spec, tmp_path / "whole", executor="inline", home=home, asking=Asking(prices=table))
    assert world.same_bytes(again.folder) == world.same_bytes(whole.folder)
    net = next(row for row in again.scores.agents if row.agent == "tiny-good").measures
    gross, paid = net["cumulative_return"].median.value, net[NET_RETURN].median.value
    assert gross is not None and paid is not None and paid < gross


def test_a_file_of_prices_is_what_the_manifest_names(home, tmp_path):
    asking = Asking(prices=prices(tmp_path / "prices.toml"))
    done = run(
        talk.talk_spec(seeds=(0,)), tmp_path / "r", executor="inline", home=home, asking=asking
    )
    record = done.manifest.models["tiny-good"]
    assert (str(record.price_as_of), record.price_source) == ("2026-01-01", "a test")


def test_as_many_talk_at_once_as_may(home, tmp_path):
    talking = {}
    most = 0

    def watch(event):
        nonlocal most
        if isinstance(event, AskStarted | Answered):
            talking[event.key] = isinstance(event, AskStarted)
            most = max(most, sum(talking.values()))

    spec = talk.talk_spec("tiny-waits", seeds=tuple(range(5)))
    asking = Asking(concurrency=3)
    run(spec, tmp_path / "r", executor="inline", home=home, asking=asking, progress=watch)
    assert most == 3


def test_unknown_prices_are_not_zero():
    spent = Spending().plus(Usage(input_tokens=10, output_tokens=5, usd=None))
    assert spent.known_usd is None
    assert spent.words() == "1 call, 15 tokens, price unknown"
    mixed = spent.plus(Usage(input_tokens=1, usd=0.5))
    assert mixed.words() == "2 calls, 16 tokens, $0.50 and 1 call of unknown price"


def test_progress_says_who_asks_what(home, tmp_path):
    events = []
    run(
        talk.talk_spec(seeds=(0,)),
        tmp_path / "r",
        executor="inline",
        home=home,
        progress=events.append,
    )
    asked = [event for event in events if isinstance(event, AskStarted)]
    assert (asked[0].agent, asked[0].session, asked[0].purpose) == (
        "tiny-good",
        "2024-01-15",
        "look",
    )
    assert sum(isinstance(event, Answered) for event in events) == len(asked) == 100


def test_a_listener_that_breaks_is_no_failure_of_an_episode(home, tmp_path):
    def broken(event):
        if isinstance(event, AskStarted):
            raise ValueError("the listener is broken")

    with pytest.raises(ValueError, match="the listener is broken"):
        run(talk.talk_spec(), tmp_path / "r", executor="inline", home=home, progress=broken)
    assert not Run.load(tmp_path / "r").failed


def test_inside_a_running_loop(home, tmp_path):
    import asyncio

    async def notebook():
        return run(talk.talk_spec(seeds=(0,)), tmp_path / "r", executor="inline", home=home)

    assert asyncio.run(notebook()).complete


def test_forged_conversations_are_found(played, home, tmp_path):
    shutil.copytree(played.folder, tmp_path / "r")
    path = RunFolder(tmp_path / "r").dialogue(KEY)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    found = verify(tmp_path / "r", home=home, workers=1)
    assert {(one.check, one.episode) for one in found.violations} == {("dialogue", KEY)}
    path.write_text("{nonsense\n")
    with pytest.raises(RunError, match="line 1 is damaged"), DialogueLog(path, 0):
        pass
    path.write_text("")
    with pytest.raises(RunError, match="ends before step 3"), DialogueLog(path, 3):
        pass
