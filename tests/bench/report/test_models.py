"""Models in a report: what is shown of them is what was recorded, and no text of theirs is more
than text.
"""

import base64
import gzip
import json
import re

import msgspec
import numpy as np
import pytest
from model_sample import decision, masked_cell, model_page, model_report
from report_sample import ATTACK, page_text, printed, report
from test_page import Page

from tradeassay.core.measure import Badges
from tradeassay.core.screen import StackedTable
from tradeassay.metrics import BootstrapConfig
from tradeassay.report.numbers import dollars, short
from tradeassay.report.words import badge_words
from tradeassay_bench.core.dialogue import Message, ModelReply, ToolCall, Usage
from tradeassay_bench.core.events import (
    Expired,
    Filled,
    Marked,
    Rejected,
    Rested,
    StepRecord,
    Trimmed,
)
from tradeassay_bench.core.orders import Decision, Failure, Order
from tradeassay_bench.report import render_html, terminal
from tradeassay_bench.report.decisions import packed
from tradeassay_bench.report.run_words import arm_standing
from tradeassay_bench.runs import DialogueLine
from tradeassay_bench.runs.summary import RunSummary, completed_run, contrasts, decision_notes
from tradeassay_bench.runs.summary.figures import option_words
from tradeassay_bench.runs.summary.models import Fates, clipped, error_rows, interesting, turns
from tradeassay_bench.runs.summary.rows import ShownTurn

QUICK = BootstrapConfig(draws=200)
MARK = Marked(cash=1.0, positions=0.0, nav=1.0)


def filled(order, quantity, price=10.0):
    return Filled(
        order_id=order,
        symbol="A",
        quantity=quantity,
        price=price,
        reference=price,
        fee=1.0,
        tax=0.5,
        cash=0.0,
    )


def record(step, decision=None, *events):
    return StepRecord(
        step=step,
        session=f"2024-01-{step + 1:02d}",
        decided_at=0,
        opening=(),
        decision=decision or Decision(),
        events=(*events, MARK),
    )


def line(step, index, reply, *messages, attempt=1):
    return DialogueLine(
        step=step,
        session="2024-01-01",
        index=index,
        purpose="research",
        attempt=attempt,
        kept=0,
        messages=messages,
        reply=reply,
    )


def test_fates_of_orders():
    records = [
        record(
            0,
            None,
            filled("0.0", 100),
            filled("0.0", 100, 20.0),
            Rejected(order_id="0.1", symbol="B", reason="limit_up", detail="no seller"),
            filled("0.2", -50),
            Trimmed(order_id="0.2", symbol="C", asked=80, filled=50, reason="no_volume"),
            Rested(order_id="0.3", symbol="D", quantity=5),
            Rested(order_id="0.4", symbol="E", quantity=5),
            Rested(order_id="0.5", symbol="F", quantity=5),
        ),
        record(1, None, Expired(order_id="0.4", symbol="E"), filled("0.5", 5)),
    ]
    fates = Fates(records)
    assert fates.of(0, 0) == ("filled", "bought 200 at 15, costs 3.00")
    assert fates.of(0, 1) == ("refused", "refused: limit up (no seller)")
    assert fates.of(0, 2) == ("partly", "sold 50 at 10, costs 1.50; of 80 ordered (no volume)")
    assert fates.of(0, 3) == ("waiting", "waiting at the end")
    assert fates.of(0, 4) == ("waiting", "expired before its price was reached")
    assert fates.of(0, 5)[0] == "filled"
    assert fates.of(0, 6) == ("nothing", "no trade")


def test_results_stand_with_their_calls_even_when_ids_come_again():
    ask = ToolCall(id="c", name="look", arguments="{}")
    lines = [
        line(
            0,
            0,
            ModelReply(calls=(ask,)),
            Message(role="system", text="rules"),
            Message(role="user", text="go"),
        ),
        line(
            0,
            1,
            ModelReply(text="hm", calls=(ask,)),
            Message(role="assistant", text="", calls=(ask,)),
            Message(role="tool", text="first", call_id="c"),
        ),
        line(
            0,
            2,
            ModelReply(error="gone", error_kind="timeout"),
            Message(role="assistant", text="hm", calls=(ask,)),
            Message(role="tool", text="second", call_id="c"),
            Message(role="user", text="again"),
        ),
    ]
    made = turns(lines)
    assert made[0].asked == (("system", "rules"), ("user", "go"))
    assert [turn.calls[0].result for turn in made[:2]] == ["first", "second"]
    assert (made[2].asked, made[2].error) == ((("user", "again"),), "timeout: gone")


def test_sessions_worth_reading_are_chosen_before_others():
    failure = Failure(kind="invalid_json", detail="x")
    navs = [100.0, 101.0, 90.0, 91.0, 120.0, 121.0, 122.0, 123.0]
    records = []
    for step, nav in enumerate(navs):
        decision = Decision(failures=(failure,), status="failed") if step == 5 else Decision()
        events = (
            *((filled("3.0", 500),) if step == 3 else ()),
            Marked(cash=nav, positions=0.0, nav=nav),
        )
        records.append(msgspec.structs.replace(record(step, decision), events=events))
    assert interesting(records, 5) == {
        5: "mistakes",
        2: "large loss",
        4: "large gain",
        3: "much traded",
        7: "latest",
    }
    assert set(interesting(records, 99)) == set(range(8)) and interesting(records, 0) == {}


def test_shown_sessions_have_their_cost_and_their_mistakes():
    order = Order(symbol="A", amount=5, side="BUY", confidence=0.6, reason="why not")
    records = [
        record(step, Decision(orders=(order,), reason="r"), filled(f"{step}.0", 5))
        for step in range(5)
    ]
    known, unknown = Usage(input_tokens=10, output_tokens=5, usd=0.25), Usage(input_tokens=1)
    dialogue = [
        line(0, 0, ModelReply(usage=known)),
        line(0, 1, ModelReply(usage=known), attempt=2),
        line(4, 0, ModelReply(usage=known)),
        line(4, 1, ModelReply(usage=unknown)),
    ]
    shown, left_out = decision_notes(records, dialogue, talks=2, most=3)
    assert left_out == 1
    assert [one.session[-2:] for one in shown] == ["05", "04", "03", "01"]
    assert [bool(one.turns) for one in shown] == [True, False, False, True]
    assert shown[0].usd is None
    assert (shown[3].usd, shown[3].tokens, shown[3].attempts) == (0.5, 30, 2)
    assert (shown[3].orders[0].order.confidence, shown[3].orders[0].tone) == (0.6, "filled")
    assert decision_notes((), (), talks=2, most=9) == ((), 0)
    twice = Decision(
        failures=(Failure(kind="schema", detail="a"), Failure(kind="schema", detail="b"))
    )
    noted = Decision(failures=(Failure(kind="context_cut", detail="c"),) * 9)
    rows = error_rows([record(0, twice), record(1), record(2, noted), record(3, twice)], 0.95)
    assert [(row.kind, row.answers, row.sessions, row.rate.value) for row in rows] == [
        ("schema", 4, 2, 0.5),
        ("context_cut", 9, 1, 0.25),
    ]
    assert clipped("x" * 20, 10) == "x" * 10 + " … [10 characters more]"
    assert clipped("x" * 10, 10) == "x" * 10


def test_a_page_of_long_conversations_leaves_out_what_is_least_worth_reading():
    rng = np.random.default_rng(0)
    noises = ["".join(map(chr, rng.integers(33, 126, 3_000))) for _ in range(28)]
    notes = [
        msgspec.structs.replace(
            decision(f"2024-01-{day:02d}"),
            why="mistakes" if day == 7 else "latest",
            turns=(ShownTurn(purpose="submit", attempt=1, asked=(("user", noise),), said=""),),
        )
        for day, noise in zip(range(28, 0, -1), noises, strict=True)
    ]
    everything, some = packed([notes])[0], packed([notes], 30_000)[0]
    assert everything[1:] == (28, 28) and some[1] == 28
    assert 0 < some[2] < 28 and len(some[0]) < 30_000
    rows = json.loads(gzip.decompress(base64.b64decode(some[0])))["rows"]
    assert [one["session"] for one in rows if "turns" in one and one.get("why") == "mistakes"] == [
        "2024-01-07"
    ]


def test_dollars_and_large_counts():
    for value, text in (
        (None, "price unknown"),
        (0.0, "$0.00"),
        (0.00123, "$0.0012"),
        (1234.5, "$1,234.50"),
    ):
        assert dollars(value) == text
    for value, text in ((940, "940"), (12_345, "12.3k"), (999_999, "1.0M"), (345_678, "346k")):
        assert short(value) == text


def test_badges_name_every_kind_of_answer():
    plain = Badges(data="synthetic", convention="corrected")
    assert ("model", "rules only, no model") in badge_words(plain)
    said = [text for kind, text in badge_words(plain, ("live", "scripted")) if kind == "model"]
    assert said == [
        "live model",
        "scripted model",
        "answers as recorded by the runner, not re-derivable",
    ]
    assert ("model", "replayed model") in badge_words(
        msgspec.structs.replace(plain, model="replayed")
    )


def test_settings_are_compared_with_bright_or_say_why_not():
    (found,) = contrasts(model_report().settings, QUICK)
    assert found.labels == ("bright", "blinded")
    assert [row.agent for row in found.rows] == ["rememberer", "honest"]
    lost, kept = (row.arms[1] for row in found.rows)
    assert kept is not None
    assert arm_standing(lost, "bright").label == "worse"
    assert arm_standing(kept, "bright").label == "cannot be told apart"
    assert lost.versus.p_adjusted is not None
    assert lost.versus.p_value is not None
    assert lost.versus.p_adjusted == pytest.approx(2 * lost.versus.p_value)
    cells = (masked_cell(0, "bright"), masked_cell(1, "blinded", n=90))
    (found,) = contrasts(cells, QUICK)
    arm = found.rows[0].arms[1]
    assert arm is not None
    assert "the sessions differ" in arm_standing(arm, "bright").sentence
    alone = msgspec.structs.replace(cells[1], options={"mask": "bright"}, dataset="other")
    assert contrasts((cells[0], alone), QUICK) == ()
    bright = masked_cell(0, "bright")
    blinded = msgspec.structs.replace(bright, id="other", options={"mask": "blinded"})
    (found,) = contrasts((bright, blinded), QUICK)
    arm = found.rows[0].arms[1]
    assert arm is not None
    assert arm_standing(arm, "bright").label == "same"


def test_a_grid_is_compared_one_setting_at_a_time():
    cells = [
        msgspec.structs.replace(
            masked_cell(0, mask, n=60), id=f"{mask}-{mode}", options={"mask": mask, "mode": mode}
        )
        for mask in ("blinded", "bright")
        for mode in ("memory-only", "open-research")
    ]
    found = contrasts(cells, QUICK)
    assert [one.key for one in found] == ["mask", "mask", "mode", "mode"]
    assert found[0].where == "ktdfin-v1 on synthetic/ashare:7, mode: memory-only"
    assert option_words("control", True) == "control: yes"
    page = Page(
        render_html(completed_run(RunSummary(title="grid", settings=tuple(cells), draws=100)))
    )
    assert page.wrong == []
    folded = [
        attrs
        for tag, attrs in page.elements
        if tag == "details" and "contrast" in str(attrs.get("class"))
    ]
    assert ["open" in attrs for attrs in folded] == [True, False, False, False]


@pytest.fixture(scope="module")
def page():
    return Page(model_page())


def test_the_page_of_models(page):
    assert page.wrong == []
    packs = [json.dumps(pack, ensure_ascii=False) for pack in page.packs]
    words = " ".join(" ".join([*page.text, *packs]).split())
    for wanted in (
        "live model",
        "scripted model",
        "rule",
        "price unknown",
        "$1.50",
        "Mask by mask",
        "Every decision",
        "117 others are in the run's folder",
        "bought 10 at 99.5",
        "25.0%",
        "Valid tool calls",
        "1 benchmark in 2 settings",
        "You manage a portfolio.",
    ):
        assert wanted in words, wanted
    assert "rules only" not in words
    assert page.tags.count("table") == page.tags.count("caption")
    ids = [attrs["id"] for _, attrs in page.elements if attrs.get("id")]
    assert len(ids) == len(set(ids))
    attacked = Page(model_page(attack=True))
    assert attacked.wrong == []
    assert len(attacked.running) == len(page.running) == 2
    assert "img" not in attacked.tags
    assert sum(ATTACK in text for text in attacked.text) > 10
    assert sum(ATTACK in one for pack in attacked.packs for one in pack["texts"]) == 8


def test_a_page_of_rules_has_nothing_of_models():
    text = page_text()
    body = text[text.index("<main") :]
    for word in (
        "Mask by mask",
        "price unknown",
        'class="kind"',
    ):
        assert word not in body
    assert len(text) < 1_000_000

    def tabs(text):
        return re.findall(r'role="tab" id="tab-c\d".*?>([^<]+)</button>', text)

    assert tabs(model_page()) == ["blinded", "bright"]
    assert tabs(page_text()) == [cell.title for cell in report().settings]


def test_no_number_is_cut_off_at_any_width():
    rows = [
        (
            "1",
            "scripted-sensible",
            "−9.3% [−35.5%, +27.5%]",
            "−5.6% cannot be told apart",
            "−1.38",
            "13.55",
        )
    ]
    titles = (
        ">tier",
        "agent",
        ">return (95% interval)",
        "against it, per year",
        ">sharpe",
        ">turnover per year",
    )
    for width in range(52, 160):
        text = printed(StackedTable(titles, rows, heads=2), width)
        assert max(len(one) for one in text.splitlines()) <= width
        assert all(rows[0][place] in text for place in (0, 1, 2, 4, 5)), width


@pytest.mark.slow_for("120", "160")
@pytest.mark.parametrize("width", [60, 100, 120, 160])
def test_the_terminal_shows_cost_at_any_width(width):
    text = printed(terminal(model_report()), width)
    assert max(len(one) for one in text.splitlines()) <= width
    assert "live model | scripted model" in " ".join(text.split())
    for wanted in ("Mask by mask", "price unknown", "+"):
        assert wanted in text
    rules = RunSummary(title="r", settings=(report().settings[2],), draws=100)
    assert "tokens" not in printed(terminal(rules), width)


def test_numbers_of_names_held():
    cell = masked_cell(0, "bright")
    detail = cell.agents[1].detail
    weights = np.asarray(detail.holdings.weights)
    assert detail.times.names == (np.abs(weights) > 0).sum(axis=0).mean()
    text = render_html(completed_run(RunSummary(title="x", settings=(cell,), draws=100)))
    assert f"{detail.times.names:.1f}" in text
