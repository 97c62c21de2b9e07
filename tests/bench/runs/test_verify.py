"""Verify: an honest run passes, and every way of tampering with it is found and named."""

import hashlib
import json
import shutil
from typing import Any

import pytest
import runs_world as world

from tradeassay_bench.core.events import STEP_DECODER
from tradeassay_bench.data import load_dataset
from tradeassay_bench.play.journal import encode_line
from tradeassay_bench.runs import AgentSpec, run
from tradeassay_bench.runs.verify.report import verify

Lines = list[dict[str, Any]]
KEY = "tiny-ashare-v1__tiny-ashare__equal-weight__s0"
BUSY = "tiny-ashare-v1__tiny-ashare__test-provoker__s0"


@pytest.fixture(scope="module")
def honest(home, tmp_path_factory):
    spec = world.tiny_spec("honest", agents=(AgentSpec(name="test-provoker"),), seeds=(0,))
    return run(spec, tmp_path_factory.mktemp("honest") / "r", executor="inline", home=home)


@pytest.fixture
def folder(honest, tmp_path):
    return shutil.copytree(honest.folder, tmp_path / "r")


def tamper(folder, key, change):
    """Change a journal and cover the tracks: canonical form, hash and number of steps are put
    right.
    """
    path = folder / "episodes" / key / "events.jsonl"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(lines)
    raw = [encode_line(STEP_DECODER.decode(json.dumps(line).encode())) for line in lines]
    path.write_bytes(b"\n".join(raw) + b"\n")
    outcome_path = path.with_name("outcome.json")
    outcome = json.loads(outcome_path.read_bytes())
    outcome |= {"events_sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "steps": len(lines)}
    outcome_path.write_text(json.dumps(outcome))


def checks(report, episode=None):
    return {
        violation.check for violation in report.violations if episode in (None, violation.episode)
    }


def fills(lines):
    return [
        (line, event) for line in lines for event in line["events"] if event["type"] == "filled"
    ]


def reprice(event, **changes):
    """Change a fill and keep its cash consistent with it."""
    event |= changes
    event["cash"] = -event["quantity"] * event["price"] - event["fee"] - event["tax"]


def test_an_honest_run_passes(honest, home):
    report = verify(honest.folder, home=home, workers=2)
    assert report.violations == ()
    assert report.ok
    assert report.steps == 200
    assert "verified: 4 episodes, 200 steps" in report.summary()
    assert {claim.outcome for claim in report.claims} == {"re-derived"} and report.exit_code == 0
    reasons = honest.scores.episode(BUSY).rejections
    assert {"lot", "insufficient_shares"} <= set(reasons)


def test_the_run_under_test_is_worth_testing(honest):
    kinds = {
        event["type"]
        for key in (BUSY, BUSY.replace("ashare", "us"))
        for line in (honest.folder / "episodes" / key / "events.jsonl").read_bytes().splitlines()
        for event in json.loads(line)["opening"] + json.loads(line)["events"]
    }
    assert {"filled", "rejected", "trimmed", "rested", "expired", "dividend", "split"} <= kinds


@pytest.mark.journey
@pytest.mark.parametrize("venue", ["us-fractional", "us-margin", "ashare-qlib", "crypto"])
def test_the_second_opinion_knows_every_venue(play, home, venue):
    done = play("test-provoker", benchmarks=(f"tiny-{venue}-v1",), seeds=(0, 1, 2))
    report = verify(done.folder, home=home, workers=1)
    assert [str(violation) for violation in report.violations] == []
    assert len(done.frames().trades) > 50


def first_fill(change):
    return lambda lines: change(fills(lines)[0][1])


def without(kind):
    """Leave out all that happened of a kind before the sessions opened."""
    return lambda lines: [
        line.update(opening=[event for event in line["opening"] if event["type"] != kind])
        for line in lines
    ]


def wrong_mark(lines):
    mark = lines[-1]["events"][-1]
    symbol = next(iter(mark["marks"]))
    mark["marks"][symbol] *= 1.01


def another_dividend(lines):
    for event in [
        event for line in lines for event in line["opening"] if event["type"] == "dividend"
    ]:
        event |= {"per_share": event["per_share"] * 10, "cash": event["cash"] * 10}


OTHER_SIDE = {"side": "SELL", "unit": "shares", "amount": 100.0}
TAMPERED = {
    "free lunch": (
        "fills",
        first_fill(
            lambda one: reprice(one, price=one["price"] * 0.5, reference=one["price"] * 0.5)
        ),
    ),
    "no fee": ("fees", first_fill(lambda one: reprice(one, fee=0.0))),
    "more shares": ("cash", first_fill(lambda one: one.update(quantity=one["quantity"] + 100))),
    "odd lot": ("lots", first_fill(lambda one: reprice(one, quantity=one["quantity"] - 30))),
    "richer at the end": (
        "nav",
        lambda lines: lines[-1]["events"][-1].update(nav=lines[-1]["events"][-1]["nav"] + 1000.0),
    ),
    "wrong mark": ("nav", wrong_mark),
    "lost day": ("sessions", lambda lines: lines.pop(20)),
    "swapped days": ("sessions", lambda lines: lines.insert(20, lines.pop(21))),
    "invented day": (
        "sessions",
        lambda lines: lines.append({**lines[-1], "step": lines[-1]["step"] + 1}),
    ),
    "another date": ("sessions", lambda lines: lines[7].update(session="2024-01-06")),
    "decided later": (
        "sessions",
        lambda lines: lines[7].update(decided_at=lines[7]["decided_at"] + 10**13),
    ),
    "no dividend": ("actions", without("dividend")),
    "another dividend": ("actions", another_dividend),
    "no split": ("actions", without("split")),
    "no payout": ("actions", without("delisted")),
    "larger deposit": (
        "cash",
        lambda lines: lines[0]["opening"][0].update(cash=lines[0]["opening"][0]["cash"] * 2),
    ),
    "dropped order": ("orders", lambda lines: lines[0]["events"].pop(0)),
    "order never placed": ("orders", lambda lines: lines[0]["decision"]["orders"].pop()),
    "other side": ("orders", lambda lines: lines[0]["decision"]["orders"][0].update(OTHER_SIDE)),
    "out of nowhere": (
        "cash",
        lambda lines: lines[3]["events"].insert(0, {"type": "interest", "cash": 5000.0}),
    ),
    "two marks": ("nav", lambda lines: lines[3]["events"].append(lines[3]["events"][-1])),
}


@pytest.mark.parametrize(("found", "change"), TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_journal_is_found_by_name(folder, home, change, found):
    tamper(folder, KEY, change)
    report = verify(folder, home=home, workers=1)
    assert found in checks(report, KEY)
    assert {"replay", "scores"} & checks(report), (
        "a changed journal cannot be scored to the same bytes"
    )
    assert not report.ok
    assert checks(report, BUSY) == set(), "the other episodes are untouched"


def insert_fill(folder, step, symbol, quantity, price, at=0):
    """Add an order and its fill with the venue's own costs: only the rule in question is broken."""

    def change(lines):
        line = lines[step]
        orders = line["decision"].setdefault("orders", [])
        side = "BUY" if quantity > 0 else "SELL"
        orders.append({"symbol": symbol, "amount": abs(quantity), "side": side})
        value = abs(quantity) * price
        tax = 0.0 if quantity > 0 else value * 10e-4
        event = {
            "type": "filled",
            "order_id": f"{step}.{len(orders) - 1}",
            "symbol": symbol,
            "quantity": quantity,
        }
        event |= {
            "fee": max(value * 5e-4, 5.0 - tax),
            "tax": tax,
            "cash": 0.0,
            "price": price,
            "reference": price,
        }
        reprice(event)
        line["events"].insert(at, event)

    tamper(folder, KEY, change)


def opens(home, symbol):
    snapshot = load_dataset("tiny-ashare", home)
    view = snapshot.at(len(snapshot.sessions) - 1, "close")
    return view.bars("open", adjust="none")[world.WARM :, view.column(symbol)]


@pytest.mark.parametrize(
    ("step", "symbol", "quantity", "price", "found"),
    [
        (24, "S3", 100.0, 35.0, {"suspension"}),
        (10, "S4", 100.0, None, {"limits"}),
        (5, "S7", 100_000.0, None, {"volume", "cash"}),
        (40, "S1", 100.0, 25.0, {"suspension", "universe"}),
    ],
    ids=["while suspended", "at the limit", "more than the volume allows", "outside the universe"],
)
def test_a_purchase_that_could_not_be_made(folder, home, step, symbol, quantity, price, found):
    insert_fill(folder, step, symbol, quantity, price or float(opens(home, symbol)[step]))
    report = verify(folder, home=home, workers=1)
    assert found <= checks(report, KEY)
    assert step in {one.step for one in report.violations if one.check in found}


def test_a_sale_of_what_was_bought_the_same_day(folder, home):
    price = float(opens(home, "S6")[0])
    lines = (folder / "episodes" / KEY / "events.jsonl").read_bytes().splitlines()
    bought = next(
        event["quantity"]
        for event in json.loads(lines[0])["events"]
        if event["type"] == "filled" and event["symbol"] == "S6"
    )
    insert_fill(folder, 0, "S6", -bought, price, at=-1)
    assert "t_plus_1" in checks(verify(folder, home=home, workers=1), KEY)


def test_files_that_do_not_fit_together(folder, home):
    events = folder / "episodes" / KEY / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-20])
    assert "journal" in checks(verify(folder, home=home, workers=1), KEY)
    events.write_bytes(b"{}\n")
    assert "journal" in checks(verify(folder, home=home, workers=1), KEY)
    events.unlink()
    assert "outcome" in checks(verify(folder, home=home, workers=1), KEY)


def test_a_line_in_another_form_is_found(folder, home):
    events = folder / "episodes" / KEY / "events.jsonl"
    events.write_bytes(events.read_bytes().replace(b'{"step":4,', b'{ "step":4,'))
    report = verify(folder, home=home, workers=1)
    assert [v.step for v in report.violations if "not written as" in v.what] == [4]


def test_a_failure_turned_into_a_success_is_found(play, home):
    done = play("test-never-answers")
    assert verify(done.folder, home=home, workers=1).ok
    (key,) = done.failed
    path = done.folder / "episodes" / key / "outcome.json"
    outcome = json.loads(path.read_bytes()) | {"status": "done", "error": None}
    path.write_text(json.dumps(outcome))
    assert "outcome" in checks(verify(done.folder, home=home, workers=1), key)


@pytest.mark.parametrize(
    ("found", "change"),
    [
        ("spec", lambda manifest: manifest["spec"].update(seeds=[7])),
        (
            "benchmark",
            lambda manifest: manifest["benchmarks"]["tiny-us-v1"]["config"]["market"].update(
                cash=5.0
            ),
        ),
    ],
)
def test_a_changed_spec_or_benchmark_is_found(folder, home, found, change):
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert found in checks(verify(folder, home=home, workers=1))


def test_changed_data_is_found_and_missing_data_is_said(folder, tmp_path):
    other = tmp_path / "home"
    world.write_world(other, seed=1)
    assert checks(verify(folder, home=other, workers=1)) == {"data"}
    report = verify(folder, home=tmp_path / "empty")
    assert (report.violations, report.exit_code) == ((), 3)
    assert report.summary().endswith("see data, decisions, account, money, scores.")
