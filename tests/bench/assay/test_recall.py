"""What a model remembers: questions, answers, scores, the edge without recall, and bad input."""

import dataclasses
import json
from contextlib import contextmanager
from datetime import date

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from recalling_server import recalling

from tradeassay.cli import root
from tradeassay.core.measure import Measure, above
from tradeassay_bench.cli.memory import ratio_text
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.store.read import read_panel
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.examine.memory import (
    RecallConfig,
    RecallReport,
    counterfactual,
    questions,
    recall_audit,
    split_edge,
)
from tradeassay_bench.examine.memory.edge import recalled_moves, split_sentence
from tradeassay_bench.examine.memory.propensity import Sentence, continuations, headlines, min_k
from tradeassay_bench.examine.memory.recall import RecallPlan, score_recall
from tradeassay_bench.examine.memory.scoring import sizes_recalled
from tradeassay_bench.llm.logprobs import TokenLogprobs
from tradeassay_bench.report.recall_page import write_counterfactual
from tradeassay_bench.runs import Asking

CUTOFF = date(2021, 9, 30)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recall") / "world"
    write_snapshot(
        generate(preset("us", seed=5, names=12, sessions=360, index_members=12)).panel, folder
    )
    return open_snapshot(folder)


def knows(chance, *, after=False):
    """Return somebody who knows a share of what lies before the cutoff, and says so when he does
    not.
    """
    rng = np.random.default_rng(3)

    def answer(one):
        known = (
            not one.invented
            and (after or one.until <= CUTOFF.isoformat())
            and rng.random() < chance
        )
        if not known and one.wording % 2 == 0:
            return ModelReply(text="I do not know.")
        return ModelReply(text=true_words(one) if known else guess(one, rng))

    return answer


def true_words(one):
    if questions.form_of(one.kind) == "choice":
        return str(one.named)
    if questions.form_of(one.kind) == "move":
        return (
            f"It went {'up' if one.truth > 0 else 'down'} by {abs(one.truth):.1%} from {one.day}."
        )
    return f"{one.truth:.0f}" if one.kind == "year" else f"${one.truth:,.2f}"


def guess(one, rng):
    if questions.form_of(one.kind) == "choice":
        return one.choices[int(rng.integers(5))]
    if questions.form_of(one.kind) == "move":
        return f"{'up' if rng.random() < 0.5 else 'down'} {rng.uniform(0, 9):.1f}%"
    return "1999" if one.kind == "year" else f"{rng.uniform(1, 900):.2f}"


def read(text, number=0, **about):
    """Return what is read of an answer about a name."""
    usual = {"symbol": "ABC", "title": "Abc Corp (ABC)", "day": "2021-03-04", "until": "2021-03-11"}
    asked = questions.RecallQuestion(number=number, **{"fact": number, **usual, **about})
    return questions.read_answer(asked, ModelReply(text=text))


def test_questions_are_balanced_and_hold_no_price(world):
    truth = questions.PriceTruth.of(world)
    drawn = questions.draw_questions(truth, RecallConfig(questions=400), CUTOFF)
    assert drawn == questions.draw_questions(truth, RecallConfig(questions=400), CUTOFF)
    assert len(drawn) == 400
    moves = [one for one in drawn if questions.form_of(one.kind) == "move" and not one.invented]
    assert 0.4 <= np.mean([one.truth > 0 for one in moves]) <= 0.6
    assert 0.35 <= np.mean([one.day <= CUTOFF.isoformat() for one in drawn]) <= 0.65
    assert {one.kind for one in drawn} == {
        "close",
        "day",
        "week",
        "month",
        "best",
        "worst",
        "index",
        "year",
    }
    invented = [one for one in drawn if one.invented]
    assert 0.05 < len(invented) / len(drawn) < 0.3
    assert not {one.symbol for one in invented} & set(truth.symbols)
    for one in drawn:
        if one.kind == "close":
            assert f"{one.truth:.2f}" not in questions.question_text(one)


@pytest.mark.parametrize(
    ("kind", "text", "value", "right", "refused"),
    [
        ("close", "$1,050.00", 1050.0, False, False),
        ("close", "On 2021-03-04 it closed at 101.20 dollars.", 101.2, True, False),
        ("close", "about a hundred dollars", None, None, False),
        ("close", "unknown", None, None, True),
        ("close", "I don't have access to prices of 2021.", None, None, True),
        ("week", "down 2.5%", -0.025, False, False),
        ("week", "It rose by 3 percent", 0.03, True, False),
        ("week", "+1.4", 0.014, True, False),
        ("week", "it rose a little", None, True, False),
        ("week", "", None, None, False),
    ],
)
def test_answers_are_read(kind, text, value, right, refused):
    found = read(text, kind=kind, truth=100.0 if kind == "close" else 0.02)
    assert (found.right, found.refused) == (right, refused)
    assert found.value == (None if value is None else pytest.approx(value))


def score_of(found: RecallReport, period: str):
    """Return the row about moves of real names in one period."""
    return next(
        one
        for one in found.scores
        if (one.kind, one.names, one.period) == ("moves", "real", period)
    )


def test_choices_are_read_and_answers_that_agree_are_steady():
    about = {
        "kind": "best",
        "choices": ("Abc Corp (ABC)", "Xyz Inc (XYZ)"),
        "named": "Xyz Inc (XYZ)",
    }
    for texts, right, steady in (
        (("XYZ.", "xyz inc"), [True, True], 1.0),
        (("Abc Corp, not XYZ", "XYZ"), [False, True], 0.0),
        (("neither", "ABCD"), [None, None], None),
    ):
        answers = [read(text, number=k, fact=0, wording=k, **about) for k, text in enumerate(texts)]
        assert [one.right for one in answers] == right
        assert {one.steady.value for one in scored(answers).scores if one.kind == "best"} == {
            steady
        }


def test_recall_is_found_before_the_cutoff_by_name_and_only_where_there_is_any(world):
    config = RecallConfig(questions=800, cutoff=CUTOFF)
    found = recall_audit("scripted/knows", world, config=config, answer=knows(0.8))
    assert found.told == "recalls" and found.recall.low > 0.4
    assert found.after.low <= 0.0 <= found.after.high
    before, late = score_of(found, "before"), score_of(found, "after")
    assert before.correlation.low > 0.5 and late.refused.value > before.refused.value
    assert found.months and found.cutoff == CUTOFF
    for seed in range(4):  # nothing is found where nothing is known
        config = RecallConfig(questions=400, seed=seed, cutoff=CUTOFF)
        assert (
            recall_audit("scripted/none", world, config=config, answer=knows(0.0)).told != "recalls"
        )


def audited(say):
    """Score what is said of 800 weeks from 200 days, most of which rose."""
    rng = np.random.default_rng(8)
    answers = []
    for k in range(800):
        truth = 0.02 if rng.random() < 0.7 else -0.02
        answers.append(
            read(say(truth > 0, rng.random()), k, kind="week", truth=truth, day=f"d{k // 4}")
        )
    return scored(answers)


def scored(answers):
    plan = RecallPlan(questions=800, facts=800, input_tokens=0, output_tokens=0, usd=0.0)
    about = {"model": "m", "dataset": "d", "run": None, "plan": plan, "usd": 0.0}
    return score_recall(answers, config=RecallConfig(), cutoff=None, **about)


@pytest.mark.parametrize(
    ("say", "told", "words"),
    [
        (lambda rose, drawn: "up", "cannot be told", "so alike tell at most 0% beyond guessing"),
        (lambda rose, drawn: "lower", "cannot be told", "so alike tell at most 0% beyond guessing"),
        (
            lambda rose, drawn: "up" if drawn < 0.95 else "down",
            "cannot be told",
            "so alike tell at most",
        ),
        (
            lambda rose, drawn: "up" if drawn < 0.8 else "down",
            "cannot be told",
            "dealt to other questions may be",
        ),
        (
            lambda _, drawn: (
                "up" if 0.9 <= drawn < 0.97 else "down" if drawn >= 0.97 else "unknown"
            ),
            "cannot be told",
            "so few",
        ),
        (lambda rose, drawn: "down" if rose else "up", "cannot be told", "takes knowing"),
        (
            lambda rose, drawn: "down" if drawn < 0.7 else "up" if rose else "down",
            "cannot be told",
            "Whether m",
        ),
        (lambda rose, drawn: "up" if rose == (drawn < 0.8) else "down", "recalls", "m recalls"),
        (
            lambda rose, drawn: "up" if drawn < 0.4 else "down",
            "no recall is shown",
            "No recall of m",
        ),
    ],
)
def test_answers_that_tell_nothing_apart_neither_show_recall_nor_exclude_it(say, told, words):
    found = audited(say)
    assert (found.told, words in found.sentence) == (told, True), found.sentence
    if "0%" in words:
        row, rose = score_of(found, "all"), float(say(True, 0.0) == "up")
        assert (row.rising.value, row.falling.value) == (rose, 1.0 - rose)


def answered(true, stated, lasts=1, words="{way} {size:.3f}%"):
    """Return answers about a table of moves, a row a day and a column a name; each lasts so many
    days.
    """
    answers = []
    for k, ((day, name), truth) in enumerate(np.ndenumerate(true)):
        first, last = (str(np.datetime64("2021-01-04") + one) for one in (day, day + lasts))
        about = {
            "kind": "day",
            "symbol": f"N{name}",
            "title": f"N{name}",
            "day": first,
            "until": last,
        }
        way, size = "up" if stated[day, name] > 0 else "down", abs(stated[day, name]) * 100
        answers.append(read(words.format(way=way, size=size), k, truth=float(truth), **about))
    return answers


def test_sizes_are_correlated_and_days_and_names_left_out_in_turn():
    """By hand: half of both sides are up, so that scores are +1 and -1. 14 of 16 agree: (14 - 2)
    / 16 = 0.75. Without a name or a day with a wrong one it is 10/12, without one of the others
    8/12: four times 1/12 away, so that the variance is 3/4 * 4/144 from either, 1/24 together,
    with 3 + 3 degrees of freedom: 2.4469 * sqrt(1/24).
    """
    true = 0.02 * np.array([[1, -1, 1, -1], [-1, 1, 1, -1], [1, -1, -1, 1], [-1, 1, -1, 1]])
    stated = true / 2.0
    stated[0, 0], stated[1, 3] = -0.01, 0.01
    found = sizes_recalled(answered(true, stated), 0.95)
    assert found.value == pytest.approx(0.75)
    assert (found.low, found.high) == pytest.approx((0.75 - 0.49947, 0.75 + 0.49947), abs=1e-5)
    # Moves that overlap are one stretch of days: here all of them are.
    whole = sizes_recalled(answered(true, stated, lasts=4), 0.95)
    assert (
        whole.value == found.value
        and whole.low is None
        and "one stretch of days" in str(whole.note)
    )


def test_one_who_knows_how_names_ended_is_found_by_sizes():
    """All names rose: that it says "up" of each of them tells nothing, but by how much does."""
    rng = np.random.default_rng(4)
    ended = rng.permutation(np.linspace(0.001, 0.02, 20))
    true = ended + rng.normal(0.0, 0.04, (51, 20))
    stated = np.broadcast_to(ended, true.shape)
    found = scored(answered(true, stated))
    assert found.told == "recalls"
    assert "the moves that it states go with the true ones, correlated by 0." in found.sentence
    assert scored(answered(true, stated, words="{way}")).told == "cannot be told"
    assert scored(answered(true, rng.permuted(stated, axis=1))).told != "recalls"


def test_who_says_more_of_names_that_move_more_guesses_that_the_market_rises():
    rng = np.random.default_rng(5)
    usual = np.linspace(0.005, 0.05, 20)
    true = usual * (0.4 + rng.normal(0.0, 1.0, (200, 20)))
    stated = usual * rng.uniform(0.9, 1.1, true.shape)
    assert np.corrcoef(true.ravel(), stated.ravel())[0, 1] > 0.15  # by days alone that is certain
    found = sizes_recalled(answered(true, stated), 0.95)
    assert abs(found.value) < 0.05 and not above(found)


@pytest.mark.parametrize("by", ["name", "day"])
def test_one_guess_for_a_name_or_for_a_day_is_one_guess(by):
    """Of ten that go one way all the time seven are guessed: as by luck, however often they are
    asked about.
    """
    way = np.repeat([1.0, -1.0], 5)
    true = 0.01 * way + np.random.default_rng(6).normal(0.0, 0.01, (60, 10))
    stated = np.broadcast_to(
        0.02 * way * np.where(np.isin(range(10), (2, 6, 8)), -1, 1), true.shape
    )
    found = sizes_recalled(
        answered(true, stated) if by == "name" else answered(true.T, stated.T), 0.95
    )
    assert found.value > 0.2 and not above(found)


def test_refusals_and_words_are_missing_measures(world):
    config = RecallConfig(questions=80)
    for text, word in (("unknown", "every answer is a refusal"), ("hm", "no answer has the form")):
        found = recall_audit(
            "scripted/mute", world, config=config, answer=lambda _, t=text: ModelReply(text=t)
        )
        assert found.told == "cannot be told"
        assert found.recall.value is None and word in str(found.recall.reason)
        assert found.after.value is None and "cutoff is not known" in str(found.after.reason)
        assert any(f"{word}" in note and "nothing can be scored" in note for note in found.notes)
        assert any("names are invented" in note for note in found.notes)
        assert any("--cutoff" in note for note in found.notes)


def test_the_edge_is_split():
    rng = np.random.default_rng(1)
    returns, noise, strange = (rng.normal(0, 0.02, (250, 10)) for _ in range(3))
    follows = (returns + noise > 0.01) * 0.1  # decides by what it recalls
    reads = (np.roll(noise, 3, axis=0) + returns > 0.02) * 0.1

    def split(held, recalled):
        found, _ = split_edge(held, returns, recalled, year=252, horizon=1)
        return found, split_sentence(found)

    by_recall, said = split(follows, returns + noise)
    assert by_recall.remembered and by_recall.share.value > 0.7
    assert "recall explains" in said and "is not distinguishable from luck" in said
    own, said = split(reads, strange)
    assert not own.remembered and not own.partly and "more than luck" in said
    same, said = split(follows, np.full((250, 10), 0.01))
    assert same.explained.value == 0.0 and not same.remembered
    assert "tells nothing apart and explains nothing; what is left, +" in said
    assert split(-follows, returns + noise)[1].startswith("what follows recall lost \u2212")
    assert split(-follows, strange)[1].endswith("is a loss beyond luck.")
    assert (
        split(follows, returns)[1]
        == "recall explains 100% (100% to 100%) of alpha; nothing is left."
    )
    assert "what was held never changed" in split(np.full((250, 10), 0.1), returns)[1]
    for known, share in ((0, np.nan), (19, 1.0)):
        hidden = np.where(np.arange(250)[:, None] < known, returns * share, np.nan)
        for none in split_edge(follows, hidden, returns, year=252, horizon=1):
            assert none.alpha.value is None and f"known in {known} of 250 sessions" in str(
                none.alpha.reason
            )
    market = rng.normal(0, 0.01, (250, 1))
    moved = market + rng.normal(0, 0.01, (250, 8))
    invested = np.repeat((market > 0) * 0.125, 8, axis=1)
    _, dates = split_edge(invested, moved, np.repeat(market, 8, axis=1), year=252, horizon=1)
    assert dates.remembered  # when it is invested follows what it recalls of the market


def test_recall_of_a_week_explains_one_who_trades_on_the_days_to_come():
    rng = np.random.default_rng(4)
    returns = rng.normal(0, 0.02, (120, 5))
    ahead = np.array([returns[day : day + 5].sum(axis=0) for day in range(120)])
    held = (ahead > 0) * 0.1  # every day anew, by the sign of the week that begins
    weeks = np.repeat([returns[day : day + 5].mean(axis=0) for day in range(0, 120, 5)], 5, axis=0)
    split, _ = split_edge(held, returns, weeks, year=252, horizon=5)
    none, _ = split_edge(held, returns, rng.normal(0, 0.01, (120, 5)), year=252, horizon=5)
    assert not none.remembered and none.rest.low > 0.0
    # Asked for every day it is known what was decided on: more of alpha is explained.
    daily, _ = split_edge(held, returns, weeks, ahead=ahead, year=252, horizon=5)
    assert daily.remembered and daily.share.value > split.share.value > 0.5


def test_moves_asked_for_every_session_are_taken_as_they_were_asked(world):
    truth = questions.PriceTruth.of(world)
    symbol, days = truth.symbols[0], [str(day) for day in truth.sessions[100:120]]
    spans = [(symbol, days[at], days[at + 5]) for at in range(10)]
    asked = questions.draw_for_pairs(truth, spans, RecallConfig(wordings=1, samples=1, every=1))
    answers = [
        questions.read_answer(one, ModelReply(text=f"up {k}%"))
        for k, one in enumerate(asked)
        if not one.invented
    ]
    names, recalled, ahead = recalled_moves(answers, truth)
    said = [one.value or 0.001 for one in answers]  # "up 0%" has a sign
    assert names == (symbol,) and ahead[101 : 101 + len(said), 0].tolist() == said
    assert recalled[101, 0] == pytest.approx(said[0] / 5) and not ahead[:90].any()


def test_decoys_are_as_round_as_the_prices(world):
    truth = questions.PriceTruth.of(world)
    asked = next(
        one for one in questions.draw_questions(truth, RecallConfig(), None) if one.kind == "close"
    )
    rough = dataclasses.replace(truth, traded=np.round(truth.traded, 1))
    one = questions.read_answer(
        msgspec.structs.replace(asked, truth=62.8), ModelReply(text="62.80")
    )
    assert all(end.endswith("0") for end in continuations(one, rough).ends)
    assert not all(end.endswith("0") for end in continuations(one, truth).ends)


def test_changed_markets(world):
    panel = read_panel(world.folder)
    row = 300
    other = counterfactual.mirrored(panel, row)
    logs, turned = (np.log(one.bars["close"]) for one in (panel, other))
    assert np.allclose(
        np.nan_to_num(np.diff(turned, axis=0)), -np.nan_to_num(np.diff(logs, axis=0))
    )
    swapped, carries = counterfactual.exchanged_names(panel, row, 0)
    name = next(symbol for symbol, other in carries.items() if symbol != other)
    was, now = panel.symbols.index(name), panel.symbols.index(carries[name])
    before, after = (
        np.diff(np.log(one.bars["close"][:, k])) for one, k in ((panel, was), (swapped, now))
    )
    assert np.allclose(np.nan_to_num(before), np.nan_to_num(after))
    assert swapped.bars["close"][row, now] == pytest.approx(panel.bars["close"][row, now])
    assert counterfactual.shifted_dates("on 2021-03-04") == "on 2015-03-12"
    assert (
        counterfactual.turned_words('{"title": "Abc raises outlook"}')
        == '{"title": "Abc cuts outlook"}'
    )


def reasked(arm, then, now, day, **more):
    moved = {{"A": "B", "B": "C", "C": "A"}[name]: sign for name, sign in then.items()}
    about = {
        "episode": "e",
        "session": f"2021-01-{day:02d}",
        "confidence": None,
        "confidence_now": None,
    }
    return counterfactual.ReaskedDecision(
        arm=arm, recorded=then, now=now, moved=moved, **about, **more
    )


def studied(made):
    return counterfactual.score_counterfactual(
        made, model="m", run="r", config=counterfactual.CounterfactualConfig()
    )


def test_an_answer_that_failed_is_no_decision():
    """Who answers only in the true market has not shown that it reads: what failed is left out,
    and said.
    """
    then, made = {"A": 1.0}, []
    for day in range(1, 21):
        made += [reasked("again", then, then, day)]
        made += [reasked(arm, then, {}, day, failed=True) for arm in ("prices", "names", "date")]
    found = studied(made)
    assert (
        found.sentence == "What the decisions of m rest on cannot be told: no usable answer came."
    )
    assert (
        found.notes == ("60 of 80 decisions had no usable answer and are left out",)
        and not found.by_name
    )


@pytest.mark.parametrize("by", ["name", "series", "date"])
def test_who_answers_by_name_is_caught(by):
    names, made = "ABC", []
    moves = {
        "again": False,
        "prices": by == "series",
        "names": by == "series",
        "date": by == "date",
    }
    for day in range(1, 21):
        then, other = {names[day % 3]: 1.0}, {names[(day + 1) % 3]: 1.0}
        made += [reasked(arm, then, other if moved else then, day) for arm, moved in moves.items()]
    found = studied([one for one in made if by != "date" or one.arm != "names"])
    assert found.by_name == (by != "series")
    assert {"name": "by name", "series": "reads what it is shown", "date": "by date"}[
        by
    ] in found.sentence


def test_opposite_orders_are_no_share_of_decisions_and_two_days_have_no_interval_on_the_page(
    tmp_path,
):
    then, turned, made = {"A": 1.0, "B": -1.0}, {"A": -1.0, "B": 1.0}, []
    for day in range(1, 21):
        made += [reasked("again", then, then, day), reasked("prices", then, turned, day)]
    assert studied(made).sentence == (
        "m reads what it is shown: with mirrored returns its orders agree with the recorded ones "
        "at -1.00, "
        "with nothing changed at +1.00 (+1 the same, -1 the opposite)."
    )
    found = studied(
        [reasked(arm, then, then, day) for day in (1, 2) for arm in ("again", "prices")] * 9
    )
    assert {(one.same.value, one.same.low) for one in found.arms} == {(1.0, None)}
    page = write_counterfactual(found, tmp_path / "page.html").read_text()
    assert '<span title="no interval: 2 days">1.00</span></td>' in page


def scoring(value):
    """Return what a server says of a prompt whose words have these log-probabilities."""

    def scored(prompt):
        words = [f"{one} " for one in prompt.split(" ")]
        offsets = [sum(map(len, words[:k])) for k in range(len(words))]
        values = [None, *(value(prompt, k, one) for k, one in enumerate(words[1:], 1))]
        return {"logprobs": {"tokens": words, "token_logprobs": values, "text_offset": offsets}}

    return scored


@pytest.fixture
def served(monkeypatch):
    pytest.importorskip("inspect_ai")
    pytest.importorskip("openai")

    @contextmanager
    def serve(logprobs):
        with recalling(lambda _: "up 1.0%", logprobs=logprobs) as (address, busy):
            monkeypatch.setenv("TRADEASSAY_LOCAL_SERVER", address)
            yield busy

    return serve


def test_a_server_is_asked_recorded_and_replayed(world, tmp_path, served):
    command = [
        "memory",
        "recall",
        "-m",
        "local/tiny",
        "--dataset",
        str(world.folder),
        "--questions",
        "24",
    ]
    command += [
        "--samples",
        "1",
        "--logprobs",
        "3",
        "--recordings",
        str(tmp_path / "tape"),
        "--json",
    ]
    with served(scoring(lambda prompt, k, word: -float(len(word)))) as busy:
        live = CliRunner().invoke(root, command)
        assert live.exit_code == 0, live.output
    assert len(busy) == 24
    again = CliRunner().invoke(root, [*command, "--replay"])
    assert again.exit_code == 0, again.output
    first, second = json.loads(live.stdout), json.loads(again.stdout)
    assert [first[name] for name in ("answers", "propensity", "scores")] == [
        second[name] for name in ("answers", "propensity", "scores")
    ]
    assert first["propensity"]["first"]["value"] is not None


def test_only_name_and_days_make_a_question_familiar():
    text = "Did the closing price of ACME rise or fall from 2019-02-08 to 2019-03-12?"
    asked = Sentence(
        0, "month", "2019-02-08", False, text, "", (), ("ACME", "2019-02-08", "2019-03-12")
    )
    words = [text.split(" ")[0], *(f" {one}" for one in text.split(" ")[1:])]

    def level(name, wording):
        each = [name if one[1:] == "ACME" else -2.0 if "2019" in one else wording for one in words]
        return min_k(TokenLogprobs(tokens=tuple(words), logprobs=(None, *each[1:])), asked)

    assert level(-9.0, -1.0) == level(-9.0, -30.0) == -9.0
    assert level(-1.0, -30.0) == -2.0
    assert min_k(TokenLogprobs(tokens=tuple(words), logprobs=(None,) * len(words)), asked) is None


@pytest.mark.slow
def test_the_true_headline_of_a_day_is_ranked_among_others(tmp_path, served):
    made = generate(preset("us", seed=5, names=12, sessions=160, index_members=12)).panel
    write_snapshot(made, tmp_path / "told")
    told = open_snapshot(tmp_path / "told")
    asked = headlines(questions.PriceTruth.of(told), 12, 100)
    assert len(asked) == 12 and all(len(set(one.ends)) == 5 for one in asked)
    true = {one.begun + one.ends[0] for one in asked}
    config = RecallConfig(questions=100, wordings=1, samples=1, logprobs=24)
    how = Asking(recordings=tmp_path / "tape")
    with served(scoring(lambda prompt, *_: -0.1 if prompt in true else -3.0)):
        found = recall_audit("local/tiny", told, config=config, asking=how).propensity
    assert found.headlines.value == 1.0 and found.headlines.n == 12
    assert found.first.value == 0.0  # ties with decoys are no knowledge of prices
    # A recording from before headlines were asked for keeps its other measures.
    recording = tmp_path / "tape" / "recall-logprobs.jsonl"
    lines = recording.read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line).get("asked", {}).get("step", 0) < 100]
    recording.write_text("".join(kept))
    replay = msgspec.structs.replace(how, replay=True)
    again = recall_audit("local/tiny", told, config=config, asking=replay).propensity
    assert again.first == found.first
    assert again.headlines.value is None and again.headlines.reason == "no headline was recorded"


@pytest.mark.parametrize(
    ("logprobs", "why"),
    [
        (None, "HTTP 404"),
        (scoring(lambda prompt, k, word: -1.0 if k % 2 else None), "omits tokens"),
        (
            lambda prompt: {"logprobs": {"tokens": ["hi"], "token_logprobs": [-1.0]}},
            "its own output",
        ),
    ],
)
def test_log_probabilities_that_are_missing_say_why(logprobs, why, world, served):
    with served(logprobs):
        found = recall_audit("local/tiny", world, config=RecallConfig(questions=16, samples=1))
    assert found.propensity.first.value is None and why in found.propensity.sentence


def test_bad_input_is_one_line(tmp_path):
    record = tmp_path / "recall.json"
    record.write_text("{}")
    for command, words in (
        (["memory", "recall", "-m", "scripted/sensible"], "neither a data set nor a run is given"),
        (["memory", "recall", "--dataset", "synthetic/us:7"], "no model is named"),
        (["memory", "counterfactual", "nothing"], "no recorded run"),
        (
            ["assay", "nothing", "--recall", str(record)],
            "no recorded run",
        ),  # the record is no table to judge
    ):
        done = CliRunner().invoke(root, command)
        assert done.exit_code != 0
        assert words in done.output + str(done.exception)


def test_no_more_than_all_is_said_to_be_known_and_what_has_no_interval_is_printed_without_one(
    world,
):
    found = recall_audit(
        "scripted/knows", world, config=RecallConfig(questions=40), answer=knows(0.8, after=True)
    )
    assert found.recall.high > 1.0 and " to 100%)" in found.sentence
    # Several seeds of two sessions are enough decisions for a number, and too few days for an interval.
    assert ratio_text(Measure(value=1.0)) == "1.00" and ratio_text(
        Measure(value=1.0, low=0.5, high=1.0)
    ).endswith("1.00)")
