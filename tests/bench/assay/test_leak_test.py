"""The leak test finds what was planted, names its channel, and leaves the honest alone."""

from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import leaking_agents as planted
import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from tradeassay.cli import root
from tradeassay.core.errors import UserError
from tradeassay_bench.agents import agents, converses, plays_alone
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo
from tradeassay_bench.core.dialogue import AskModel, Message, ToolCall
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.time import HOUR
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.store.read import read_panel
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.examine import leak_test
from tradeassay_bench.examine.leaks import CHANNELS, LeakTestConfig, late_stamps, withhold_late
from tradeassay_bench.examine.leaks.futures import STYLES, Cut, rewrite
from tradeassay_bench.runs import Window

SMALL = LeakTestConfig(sessions=8)


def examine(agent, **more):
    return leak_test(
        agent, more.pop("benchmark", planted.benchmark()), planted.world(), config=SMALL, **more
    )


@pytest.mark.parametrize("channel", planted.PLANTED)
def test_a_planted_leak_is_found_in_its_channel(channel):
    report = examine(planted.PLANTED[channel])
    assert {finding.channel for finding in report.findings} - {None} == {channel}
    assert {name for name, measure in report.moved.items() if measure.value} == {channel}
    assert report.findings[0].through == "decision" and report.findings[0].days >= 1
    assert channel in report.sentence
    # Only the reader of news repeats what it read: the planted word tells.
    said = [one for one in report.findings if one.kind == "canary"]
    assert [one.channel for one in said] == (["news"] if channel == "news" else [])


OURS = [
    name
    for name in agents.names()
    if not name.startswith(("test-", "tiny-")) and name != "factor-model"
]
RULES = [name for name in OURS if not converses(name) and plays_alone(name)]


@pytest.mark.parametrize("name", RULES)
def test_no_registered_rule_is_flagged(name):
    report = examine(name)
    assert not report.findings and report.repeatable
    assert report.sentence.startswith(("No leak was found", f"{name} never traded"))


def test_the_honest_and_who_does_not_repeat_himself_are_not_accused():
    honest, fickle, model = map(examine, (planted.honest, planted.fickle, "scripted/sensible"))
    assert not honest.leaks and (honest.futures, honest.decisions_with_orders) == (2, 8)
    assert set(honest.moved) | set(honest.untested) == set(CHANNELS)
    assert (
        not (fickle.repeatable or fickle.findings or fickle.moved)
        and "cannot be told" in fickle.sentence
    )
    assert not model.findings and model.decisions_with_orders > 0
    counting = examine(planted.Counting, params={"names": 3})
    assert counting.agent == "Counting" and counting.repeatable and not counting.leaks
    with pytest.raises(UserError, match="did you mean names"):
        examine(planted.Counting, params={"name": 3})


def test_a_tool_with_a_later_time_stamp_fails_closed_and_one_that_hides_it_is_found():
    tool = "tool screen_candidates"
    for name, found in (
        # What was withheld reached nobody: no rewritten future could move anything.
        ("test-leaky", [("time stamp", None, tool)]),
        ("test-leaky-unstamped", [("counterfactual", "bars", tool)]),
    ):
        report = examine("scripted/sensible", benchmark=planted.benchmark(name))
        assert report.withheld == (report.sessions if name == "test-leaky" else 0)
        assert [(one.kind, one.channel, one.through) for one in report.findings] == found


def test_wrong_names_and_windows_are_refused():
    day = str(planted.world().sessions[-1])
    for agent, window, words in (
        ("model", None, "own name"),
        ("momentun", None, "no agent"),
        ("cash", Window(first=day, last=day), "two sessions"),
    ):
        with pytest.raises(UserError, match=words):
            examine(agent, window=window)


@pytest.mark.journey
def test_the_command_says_it_in_json_and_in_words():
    asked = ["leak-test", "cash", "--sessions", "3"]
    done = CliRunner().invoke(root, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    assert msgspec.json.decode(done.stdout)["futures"] == 2
    assert "never traded" in CliRunner().invoke(root, asked).stderr


NOON = 1_709_629_200 * 10**9
SEEN = SimpleNamespace(step=3, session="2024-03-05", time=NOON)


def test_time_stamps():
    for body, late in (
        ({"as_of": "2024-03-04", "trade_day": "2024-03-05"}, []),
        ({"bars": [["2024-03-04", 1.0], ["2024-03-06", 1.1]]}, [("bars", "2024-03-06")]),
        ({"day": "day_+3", "next": "day_+4"}, [("next", "day_+4")]),
        ({"ex_date": "2024-04-01", "expiry": "2024-06-21"}, []),
        ({"title": "results due on 2024-04-01"}, []),
        ({"published_at": NOON + HOUR}, [("published_at", str(NOON + HOUR))]),
        ({"published_at": "2024-03-05T08:00:00Z"}, []),
        (
            {"published_at": "2024-03-05T23:00:00+00:00"},
            [("published_at", "2024-03-05T23:00:00+00:00")],
        ),
        ({"time": "2024-03-05 23:00"}, [("time", "2024-03-05 23:00")]),
        ({"shares": 2024, "ok": True, "x": None, "bad": "2024-13-45T99:99"}, []),
    ):
        assert list(late_stamps(body, SEEN)) == late, body


def test_a_prompt_is_shown_and_its_late_stamp_reported():
    prompt = Message(role="user", text='Now:\n```json\n{"day": "2024-03-06"}\n```\n')
    call = Message(
        role="assistant", text="", calls=(ToolCall(id="a", name="look", arguments="{}"),)
    )
    answer = Message(role="tool", text='{"day": "2024-03-07"}', call_id="a")
    shown, late = withhold_late(AskModel(purpose="x", messages=(prompt, call, answer)), SEEN)
    assert [one.through for one in late] == ["prompt", "tool look"]
    assert shown.messages[0] == prompt and "withheld" in shown.messages[2].text
    honest = AskModel(purpose="x", messages=(call,))
    assert withhold_late(honest, SEEN) == (honest, ())


@settings(max_examples=8)
@given(
    st.integers(20, 270), st.sampled_from(["pre_open", "open", "close"]), st.sampled_from(STYLES)
)
def test_another_future_leaves_the_past_alone(row, phase, style):
    panel = read_panel(planted.world().folder)
    cut = Cut(row, phase)
    other, _ = rewrite(panel, cut, CHANNELS, style, 0)
    for field, values in panel.bars.items():
        np.testing.assert_array_equal(
            values[: cut.first_unknown], other.bars[field][: cut.first_unknown]
        )
    if phase == "open":
        np.testing.assert_array_equal(panel.bars["open"][row], other.bars["open"][row])
    clock = cut.clock(panel)
    for name, at in (
        ("news", "published_at"),
        ("fundamentals", "known_at"),
        ("actions", "known_at"),
    ):
        known = [
            [one for one in getattr(p, name) if getattr(one, at) <= clock] for p in (panel, other)
        ]
        assert sorted(map(msgspec.json.encode, known[0])) == sorted(
            map(msgspec.json.encode, known[1])
        )
    levels = panel.indices["IDX"][: cut.first_unknown]
    np.testing.assert_array_equal(levels, other.indices["IDX"][: cut.first_unknown])
    assert (panel.bars["close"][row + 1 :] != other.bars["close"][row + 1 :]).any()
    alone, canaries = rewrite(panel, cut, ("news",), style, 0)
    assert alone.bars is panel.bars and alone.fundamentals is panel.fundamentals
    assert list(canaries.values()) == ["news"]


PLAYED = 200


@lru_cache(maxsize=1)
def world():
    panel = generate(preset("us", seed=5, names=12, sessions=262 + PLAYED, index_members=12)).panel
    folder = Path(mkdtemp(prefix="shares-")) / "world"
    write_snapshot(panel, folder, allow_faults=True)
    return open_snapshot(folder)


def benchmark():
    days, base = world().sessions, benchmarks.get("daily-us-v1")
    market = msgspec.structs.replace(base.market, first=str(days[262]), last=str(days[-1]))
    return msgspec.structs.replace(base, id="shares", market=market)


class Drawing:
    """Holds three names drawn by chance; ``peek`` may spoil the draw, on a share of days."""

    def __init__(self, peek=None, share: float = 0.0, every: int = 1) -> None:
        self._peek, self._share, self._every = peek, share, every

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self._rng = np.random.default_rng(11)

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        names = [seen.universe[k] for k in self._rng.permutation(len(seen.universe))[:3]]
        weights, leaks = dict.fromkeys(names, 0.2), self._rng.random() < self._share
        if seen.step % self._every:
            return Decision(reason="waits")
        if leaks:
            weights = self._peek(seen, weights)
        wanted = {name: 0.0 for name in seen.account.positions if name not in weights} | weights
        orders = [
            Order(symbol=name, amount=size, unit="target_weight") for name, size in wanted.items()
        ]
        return Decision(orders=tuple(orders), reason="")


def ahead(seen, field):
    return seen.view._history.fields[field][seen.view.row, : len(seen.view.symbols)]


def rises(seen):
    return ahead(seen, "close") / ahead(seen, "open")


def most(seen, values):
    ranked = [seen.view.symbols[k] for k in np.argsort(-np.nan_to_num(values))]
    return dict.fromkeys([name for name in ranked if name in seen.universe][:3], 0.2)


PEEKS = {
    "names": lambda seen, weights: most(seen, rises(seen)),
    "sizes": lambda seen, weights: dict.fromkeys(
        weights, 0.25 if np.nanmean(rises(seen)) > 1.0 else 0.1
    ),
    "one name": lambda seen, weights: {
        **weights,
        seen.view.symbols[0]: 0.2 if rises(seen)[0] > 1.0 else 0.01,
    },
    "volumes": lambda seen, weights: most(seen, ahead(seen, "volume")),
}


@pytest.mark.slow
@pytest.mark.parametrize("peek", PEEKS)
@pytest.mark.parametrize("share", [0.02, 0.05])
def test_a_leak_on_few_days_is_found(peek, share):
    report = leak_test(lambda: Drawing(PEEKS[peek], share), benchmark(), world())
    assert {finding.channel for finding in report.findings} - {None} == {"bars"}, report.sentence
    days = max(finding.days for finding in report.findings)
    assert 1 <= days <= 3 * share * PLAYED


@pytest.mark.slow
def test_a_rule_that_seldom_trades_is_tested_on_the_days_it_does():
    assert leak_test(lambda: Drawing(PEEKS["names"], 1.0, every=21), benchmark(), world()).leaks
    honest = leak_test(lambda: Drawing(every=21), benchmark(), world())
    assert not honest.leaks
    assert honest.undetected == pytest.approx(1.0 - 0.05 ** (1.0 / PLAYED))
    assert "1.5 %" in honest.sentence
