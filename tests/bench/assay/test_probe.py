"""The probe knows all under a bright market, counts what it is told, and leaves the truth out of
payloads.
"""

import json
from dataclasses import replace

import leaking_agents as planted
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of
from tradeassay_bench.core.dialogue import Message, ModelReply
from tradeassay_bench.core.errors import ModelError
from tradeassay_bench.core.view import Instrument
from tradeassay_bench.examine import ProbeConfig, ProbeReport, probe_mask
from tradeassay_bench.examine.probe import payloads
from tradeassay_bench.examine.probe.probe import hits, random_baseline, sessions_apart
from tradeassay_bench.examine.probe.programs import (
    ATTACKERS,
    Guess,
    PriceArchive,
    interrogate,
    known_calendar,
    read_guess,
)
from tradeassay_bench.llm import scripted_models
from tradeassay_bench.masking import MaskConfig, Truth, find_leaks
from tradeassay_bench.runs import Asking


def insider(request):
    """Know one public fact: whoever is called by a real ticker is that stock.

    Needs two attempts.
    """
    if request.attempt == 1:
        return ModelReply(text="It might be a bank.")
    alias = request.messages[1].text.rpartition("Which stock is ")[2].partition(",")[0]
    if alias.startswith("asset_"):
        return ModelReply(text='{"tickers": []}')
    return ModelReply(text=f'```json\n{{"tickers": ["{alias}.SZ"], "sector": "none"}}\n```\n')


UNREACHED = ModelReply(text="", error="500: overloaded", error_kind="unreachable")
SCRIPTS = {
    "tiny-insider": insider,
    "tiny-silent": lambda _: ModelReply(text="I'm sorry, I cannot help with that."),
    "tiny-constant": lambda _: ModelReply(text='{"tickers": ["600519"], "date": "2020-03-09"}'),
    "tiny-down": lambda _: UNREACHED,
}
for name, answer in SCRIPTS.items():
    if name not in scripted_models:
        body = {"summary": name, "answer": lambda self, request, answer=answer: answer(request)}
        scripted_models.add(name, type("Scripted", (), body))

CONFIG = ProbeConfig(
    probes=12, masks=("bright", "blinded"), hardenings=("plain", "scaled"), lookback=30
)


@pytest.fixture(scope="module")
def report():
    attackers = ("reader", "levels", "grid", "scripted/tiny-insider", "scripted/sensible")
    return probe_mask(planted.benchmark(), attackers, dataset=planted.world(), config=CONFIG)


def rate(report, attacker, mask, hardening, metric):
    return report.row(attacker, mask, hardening).of_all[metric].value


def test_a_bright_market_hides_nothing_and_a_mask_hides_names(report):
    for metric in payloads.METRICS:
        assert rate(report, "reader", "bright", "plain", metric) == 1.0
        assert rate(report, "reader", "blinded", "plain", metric) == (
            1.0 if metric == "board" else 0.0
        )
    assert report.row("reader", "bright", "scaled") is None
    assert msgspec.json.decode(msgspec.json.encode(report), type=ProbeReport) == report
    assert set(report.rows[0].strata) == {
        "window all",
        *(f"board {board}" for board in report.boards),
    }


def test_no_mask_stops_who_has_the_archive_and_hardening_takes_levels_away(report):
    for variant in (("bright", "plain"), ("blinded", "plain"), ("blinded", "scaled")):
        assert rate(report, "match", *variant, "top_1") >= 0.9
        assert report.row("match", *variant).above_random["joint"]
    assert rate(report, "levels", "blinded", "plain", "top_1") == 1.0
    chance = report.random["top_1"].value
    for attacker in ("levels", "grid"):
        hardened = report.row(attacker, "blinded", "scaled")
        assert not any(hardened.above_random[name] for name in ("top_1", "date_7", "joint"))
        assert hardened.of_all["top_1"].low <= chance <= hardened.of_all["top_1"].high
    bounds = {
        bound.archive: bound
        for bound in report.bounds
        if (bound.mask, bound.hardening, bound.metric) == ("blinded", "scaled", "top_1")
    }
    assert (
        bounds[True].attacker == "match" != bounds[False].attacker
        and bounds[True].share.value == 1.0
    )
    assert bounds[True].times_chance == pytest.approx(1.0 / chance)


def test_a_models_answers_are_counted_beside_its_silence(report):
    bright, blinded = (report.row("scripted/tiny-insider", mask) for mask in ("bright", "blinded"))
    assert (bright.kind, bright.response.value, bright.of_all["date_7"].value) == (
        "model",
        1.0,
        0.0,
    )
    assert [bright.conditional[name].value for name in ("top_1", "date_7", "sector")] == [
        1.0,
        None,
        0.0,
    ]
    assert (blinded.response.value, blinded.conditional["top_1"].value) == (0.0, None)
    assert (
        report.row("scripted/sensible", "blinded").response.value == 0.0 and report.usd is not None
    )


def test_payloads_hold_no_truth_and_pairs_are_spread():
    probes = payloads.draw_probes(planted.benchmark(), planted.world(), CONFIG)
    counts = [
        sum(probe.board == board for probe in probes) for board in {probe.board for probe in probes}
    ]
    assert max(counts) - min(counts) <= 1
    assert len({(probe.row, probe.symbol) for probe in probes}) == len(probes)
    made = payloads.make_payloads(
        planted.benchmark(), planted.world(), probes, ("blinded", "plain"), CONFIG
    )
    truth = Truth.of(
        planted.world().at(probes[0].row, "pre_open"), MaskConfig(level="blinded"), history=30
    )
    assert [payload.number for payload in made] == list(range(12))
    for payload in made[:4]:
        assert payload.alias.startswith("asset_") and payload.alias in payload.text
        assert not find_leaks(payload.text, truth)


def test_other_modes_show_less():
    config = msgspec.structs.replace(CONFIG, probes=6, masks=("blinded",), hardenings=("plain",))
    alone, table = (
        probe_mask(
            planted.benchmark(),
            dataset=planted.world(),
            config=msgspec.structs.replace(config, mode=mode),
        )
        for mode in ("memory-only", "fixed-candidate")
    )
    assert {row.response.value for row in alone.rows} == {0.0}
    assert table.rows[0].conditional["top_1"].value == 1.0


def test_wrong_names_and_a_bright_market_that_is_hardened_are_refused():
    assert ProbeConfig(masks=("bright",), hardenings=("plain", "scaled")).variants == (
        ("bright", "plain"),
    )
    for asked, words in (
        (
            lambda: ProbeConfig(masks=("bright",), hardenings=("rebased", "scaled")),
            "market cannot be hardened",
        ),
        (
            lambda: probe_mask(planted.benchmark(), ("macth",), dataset=planted.world()),
            "no attacker 'macth'",
        ),
        (lambda: ProbeConfig(masks=("dark",)), "no mask"),
        (lambda: ProbeConfig(hardenings=("soft",)), "no hardening"),
        (lambda: probe_mask("stockbench-v1", config=CONFIG), "has no masks"),
    ):
        with pytest.raises(UserError, match=words):
            asked()


# -- by hand ---------------------------------------------------------------------------------------

DAYS = np.busday_offset(np.datetime64("2024-01-01", "D"), np.arange(20))
PROBE = payloads.Probe(0, "W1", "", "", 10, 0, "600519", str(DAYS[10]), "Liquor", "main", 50)


def test_hits_by_hand():
    for guess, right in (
        (
            Guess(tickers=("600519.SH",), date=str(DAYS[11]), sector="liquor ", board="MAIN"),
            set(payloads.METRICS),
        ),
        (
            Guess(tickers=(*"1234", "sh600519"), date=str(DAYS[3])),
            {"top_5", "date_7", "date_30", "joint"},
        ),
        (Guess(tickers=("000001",), date=str(DAYS[0])), {"date_30"}),
        (Guess(sector="Banks", board="star"), set()),
    ):
        assert {name for name, hit in hits(guess, PROBE, DAYS).items() if hit} == right, guess
    assert set(hits(None, PROBE, DAYS).values()) == {None}


def test_days_outside_the_archive_and_weekends():
    asked = [
        ("2024-01-06", 4),
        ("2024-01-06", 5),
        ("2024-01-15", 10),
    ]  # Saturday: as near to Friday as to Monday
    asked += [("2025-01-26", 19), ("2023-12-25", 0), ("2024-02-31", 0)]
    assert [sessions_apart(day, row, DAYS) for day, row in asked] == [0, 0, 0, 261, 5, None]


def test_chance_by_hand():
    chance = random_baseline([PROBE, replace(PROBE, row=0, names=100)], np.arange(20), 10, 4)
    expected = {
        "top_1": (1 / 50 + 1 / 100) / 2,
        "top_5": (5 / 50 + 5 / 100) / 2,
        "date_1": (3 / 20 + 2 / 20) / 2,
        "date_7": (15 / 20 + 8 / 20) / 2,
        "date_30": 1.0,
        "sector": 0.1,
        "board": 0.25,
        "joint": (0.1 * 0.75 + 0.05 * 0.4) / 2,
    }
    assert {name: measure.value for name, measure in chance.items()} == pytest.approx(expected)
    bare = random_baseline([PROBE], np.arange(20), 0, 1)
    assert bare["sector"].reason == "the data has no sectors"
    assert bare["board"].reason == "the data has only one board"


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_correlations_equal_numpys(seed):
    rng = np.random.default_rng(seed)
    close = 10 * np.exp(np.cumsum(rng.normal(0, 0.02, (30, 3)), axis=0))
    archive = PriceArchive((), DAYS, close, close, close)
    query = rng.normal(0, 0.02, 6)
    found = archive.correlations(query[None])[0]
    returns = close[1:] / close[:-1] - 1
    assert np.isneginf(found[:6]).all()
    for end in (6, 17, 29):
        for name in range(3):
            wanted = np.corrcoef(query, returns[end - 6 : end, name])[0, 1]
            assert found[end, name] == pytest.approx(wanted, abs=1e-9)
    best, rows = archive.best_matches(query[None])
    np.testing.assert_allclose(best[0], found.max(axis=0))
    np.testing.assert_array_equal(rows[0], found.argmax(axis=0))


def test_an_answer_of_which_nothing_can_be_read_is_asked_for_again():
    for text in ("", "no", "[1]", '{"date": "soon"}', '{"tickers": 7}', '{"guess": "A"}'):
        with pytest.raises(ValueError):
            read_guess(text)
        talk = interrogate(
            payloads.ProbePayload(0, "asset_0001", (Message(role="user", text="x"),))
        )
        first = next(talk)
        assert "asset_0001" in first.messages[1].text and first.answer_schema
        assert talk.send(ModelReply(text=text)).attempt == 2
        with pytest.raises(StopIteration) as done:
            talk.send(ModelReply(text=text))
        assert (
            done.value.value.guess is None
            and done.value.value.said == text
            and done.value.value.wrong
        )


def test_a_bad_date_does_not_void_a_right_ticker_nor_the_other_way_round():
    for text, tickers, day, wrong in (
        (
            'Sure: {"tickers": ["A", "B"], "date": "in spring", "why": 1}',
            ("A", "B"),
            None,
            "date must",
        ),
        ('{"ticker": "AAPL", "date": "2020/3/9"}', ("AAPL",), "2020-03-09", ""),
        ('{"tickers": 7, "date": "2020-03-09", "sector": 3}', (), "2020-03-09", "tickers must be"),
        ('{"tickers": [], "date": null}', (), None, ""),
        ('{"tickers": ["A", "B", "C", "D", "E", "F"]}', tuple("ABCDE"), None, ""),
    ):
        found = read_guess(text)
        assert (found.guess.tickers, found.guess.date) == (tickers, day)
        assert [one.startswith(wrong) for one in found.wrong] == ([True] if wrong else [])


# -- attackers without the archive, against what they are made for ---------------------------------

YEARS = np.busday_offset(np.datetime64("2018-01-01", "D"), np.arange(1000))
NAMES = ("State Street", "Nasdaq", "Penn Gaming", "Small", "Large")


def known_world():
    made = tuple(
        Instrument(symbol=f"S{k}", name=name, kind="stock", lot=100.0)
        for k, name in enumerate(NAMES)
    )
    close = np.outer(np.linspace(1.0, 1.5, 1000), [10.0, 20.0, 40.0, 80.0, 160.0])
    return PriceArchive(
        made, YEARS, close, close, np.full((1000, 5), 1.0) * [1e6, 1e7, 1e8, 1e5, 1e9]
    )


def shown(request="{}", observation=None, **evidence):
    seen = {"step": 3, "account": {"nav": 1e6}, **(observation or {})}
    about = {
        "observation": json.dumps(seen),
        "request": request,
        "evidence": payloads.Evidence(**evidence),
    }
    return payloads.ProbePayload(number=0, alias="asset_0001", messages=(), **about)


def guessed(attacker, payload):
    return next(iter(ATTACKERS[attacker](known_world(), [payload])))


def test_an_id_a_turnover_a_lot_and_an_order_that_are_shown_are_found():
    ids = [f"e-{sha256_of((salt, f'probe {YEARS[100]}'))[:12]}" for salt in ("", "secret")]
    bare, salted = (guessed("hash", shown(json.dumps({"episode": one}))) for one in ids)
    assert bare == Guess(date=str(YEARS[103])) and salted is None
    # The true illiquidity of a name that trades a hundred millions a day.
    illiquid = float(np.log(0.3 / np.sqrt(252) * np.sqrt(2 / np.pi) / 1e8))
    row = {"stock_id": "asset_0001", "factors": {"ILLIQ": illiquid, "RV_60": 0.3}}
    assert guessed("factors", shown(observation={"candidates": [row]})).tickers[0] == "S2"
    found = guessed("oracle", shown(least_weight=80.0 * 100 / 1e6))
    assert found.tickers[0] == "S3" and found.date == str(YEARS[1])
    assert guessed("oracle", shown()) is None
    found = guessed("order", shown(equals=("asset_0007", "asset_0009", "asset_0001"), screened=5))
    assert found.tickers[0] == "S2"
    assert guessed("order", shown(equals=("asset_0007",), screened=5)) is None


def test_volumes_with_half_days_and_expiries_are_a_calendar():
    end = 700
    amounts = 1e6 * np.exp(known_calendar(YEARS)[0][end - 60 : end])
    bars = [
        [f"day_{k}", 1, 1, 1, 100 + k % 2, 1, amount] for k, amount in enumerate(amounts.tolist())
    ]
    text = json.dumps(
        {"columns": ["day", "open", "high", "low", "close", "volume", "amount"], "bars": bars}
    )
    assert guessed("calendar", shown(bars=(text,))) == Guess(date=str(YEARS[end]))


def test_an_alias_in_the_place_of_an_idiom_is_a_name():
    for title, symbol in (("Wall asset_0001 Rallies", "S0"), ("Buy it (asset_0001: XY)", "S1")):
        found = guessed("idioms", shown(bars=(json.dumps({"news": [{"title": title}]}),)))
        assert found == Guess(tickers=(symbol,))
        assert guessed("idioms", shown(bars=(title.replace("asset_0001", "[name]"),))) is None


def test_answers_are_written_where_they_can_be_and_silence_is_told(tmp_path, tell):
    asked = [
        "memory",
        "probe",
        "--probes",
        "4",
        "--window",
        "W1",
        "--attackers",
        "scripted/tiny-silent",
    ]
    assert (
        '"attacker": "match"'
        in tell(["memory", "probe", "--probes", "4", "--window", "W1", "--json"]).out
    )
    said = tell([*asked, "--answers", str(tmp_path / "new" / "answers.jsonl")]).err
    assert "identified no stock and no day in 4 answers: it holds no JSON object" in said
    assert "answers are not stored: use --recordings FOLDER to avoid repeated questions" in said
    assert (tmp_path / "new" / "answers.jsonl").read_text().count("\n") == 4 * (
        1 + len(payloads.PROGRAMS)
    )
    (tmp_path / "file").write_text("")
    said = tell([*asked, "--answers", str(tmp_path / "file" / "answers.jsonl")], 2).err
    assert "answers:" not in said and "1 of 4 answers" not in said


def test_who_was_not_reached_is_told_what_to_do(tmp_path):
    few = msgspec.structs.replace(CONFIG, probes=1, masks=("blinded",), hardenings=("plain",))
    with pytest.raises(
        ModelError, match="scripted/tiny-down could not be reached: 500: overloaded"
    ):
        probe_mask(
            planted.benchmark(), ("scripted/tiny-down",), dataset=planted.world(), config=few
        )
    poor = ModelReply(text="", error="the budget is spent", error_kind="over_budget")
    kept, lost = Asking(recordings=tmp_path), Asking()
    again = "a/b could not be reached: 500: overloaded (try again; answers are kept)"
    assert str(kept.unanswered("a/b", UNREACHED)) == again
    assert "stored only with recordings=FOLDER" in str(lost.unanswered("a/b", UNREACHED))
    more = "a/b was not queried: the budget is spent (give a larger max_usd="
    assert str(kept.unanswered("a/b", poor)).startswith(more)
