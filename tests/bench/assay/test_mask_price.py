"""The mask's price: who loses information is cleared of memory, who remembers is not."""

import json
import shutil

import mask_price_runs as runs
import msgspec
import pytest
from mask_price_runs import JUDGED, READS, REAL, REMEMBERS, UNREAD, home, played, whole

import tradeassay as ta
from tradeassay.cli import main
from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.verdict.record import VerdictConfig
from tradeassay_bench.examine import assay
from tradeassay_bench.examine.assay_file import (
    PRICE_STATED,
    check_assay,
    record_assay,
    recorded_assay,
)
from tradeassay_bench.runs import Run
from tradeassay_bench.runs.verify.report import VerifyReport

CONFIG = VerdictConfig(portfolios=0, draws=100)
LOOSE = VerdictConfig(portfolios=0, draws=100, least=20)
SPLIT = {"lost-information", "memory"}


def bright(judged, model):
    """Return a model's unmasked account."""
    return next(
        one for one in judged.agents if one.agent.endswith(f": {model}") and one.mask == "bright"
    )


@pytest.fixture(scope="module")
def alone():
    return assay(whole(JUDGED), CONFIG)


@pytest.fixture(scope="module")
def priced():
    return assay(whole(JUDGED), CONFIG, mask_price=[whole(UNREAD)])


def test_who_remembers_is_found_and_who_loses_information_is_cleared(alone, priced):
    for model, kind in ((REMEMBERS, "memory"), (READS, "not-distinguishable-from-luck")):
        before, after = bright(alone, model), bright(priced, model)
        assert before.verdict.kind == "memory"
        limit = "what the mask took may be memory, or information that it destroyed"
        assert any(one.startswith(limit) for one in before.verdict.limits)
        assert not SPLIT & {one.quantity for one in before.statements}
        assert after.verdict.kind == kind
        assert not any(one.startswith(limit) for one in after.verdict.limits)
        gap, lost, memory = (after.statement(name) for name in ("mask-gap", *sorted(SPLIT)))
        assert gap.value - lost.value == pytest.approx(memory.value)
        assert max(gap.high - gap.low, lost.high - lost.low) < memory.high - memory.low
        assert lost.low > 0.0 if model == READS else lost.low < 0.0
        # Nothing else changes.
        stated = {one.quantity: one.value for one in before.statements}
        assert stated.items() <= {one.quantity: one.value for one in after.statements}.items()
    assert "is lost information" in bright(priced, REMEMBERS).verdict.sentence
    assumed = bright(priced, READS).statement("memory").assumptions
    assert "price-unread is generated, as its builder states" in assumed


def test_the_price_is_stated_on_every_surface(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TRADEASSAY_HOME", str(home()))
    judged, unread = (str(whole(world).folder) for world in (JUDGED, UNREAD))
    page = tmp_path / "page.html"
    command = ["assay", judged, "--mask-price", unread, "--portfolios", "0"]
    assert main([*command, "-o", str(page)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert main([*command, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    by_python = ta.assay(judged, mask_price=unread, portfolios=0)
    for model in runs.MODELS:
        claim = bright(by_python, model).statement("memory").claim
        assert "names and dates are worth" in claim and claim in shown
        (in_json,) = (
            {one["quantity"]: one for one in account["statements"]}
            for account in made["agents"]
            if account["agent"].endswith(f": {model}") and account["mask"] == "bright"
        )
        assert in_json["memory"]["claim"] == claim
        assert in_json["lost-information"]["versus"] == "blinded"
        assert "price-unread" in in_json["lost-information"]["claim"]
    text = page.read_text()
    assert "Lost information per year" in text and "Memory per year" in text


def test_a_recorded_price_is_the_runners_word(priced, tmp_path):
    folder = tmp_path / "judged"
    shutil.copytree(whole(JUDGED).folder, folder)
    copy = Run.load(folder, home=home())
    record_assay(copy, priced)
    assert recorded_assay(copy) == priced
    empty = VerifyReport(folder=str(folder), episodes=0, steps=0, claims=(), violations=())
    (claim,) = check_assay(copy, empty).claims
    assert (claim.outcome, claim.why) == ("cannot be checked", PRICE_STATED)
    content = json.loads((folder / "assay.json").read_bytes())
    account = next(one for one in content["assay"]["agents"] if one["memory"] and one["mask"])
    account["memory"]["price"]["lost"]["alpha"]["value"] = 9.0
    (folder / "assay.json").write_text(json.dumps(content))
    assert recorded_assay(copy) is None
    (claim,) = check_assay(copy, empty).claims
    assert claim.outcome == "contradicted" and "lies outside its interval" in claim.why


# Uses that are wrong or hostile ------------------------------------------------------------------


def short(name, world=UNREAD, **changes):
    """Return a run of four sessions."""
    return played(name, world, **{"days": 4, **changes})


REFUSED = {
    "a real world": (
        lambda: short("real", REAL),
        "plays price-real, which is not synthetic: a model may have read it",
    ),
    "the judged world": (
        lambda: whole(JUDGED),
        "uses price-judged, the data set of the judged run",
    ),
    "another model": (
        lambda: short("other", models=["sensible"]),
        f"no 'scripted/{REMEMBERS}: {REMEMBERS}' in ",
    ),
    "another model of the same label": (
        lambda: short("label", models=["sensible", READS], labels={"sensible": REMEMBERS}),
        f"no 'scripted/{REMEMBERS}: {REMEMBERS}' in ",
    ),
    "rules": (lambda: short("rules", models=["cash"]), f"no 'scripted/{REMEMBERS}: "),
    "another mask": (
        lambda: short("mask", mask=("bright", "stock-blind")),
        "was not played under 'blinded'",
    ),
    "another conversation": (
        lambda: short("asked", max_positions=(12,)),
        "run with different options in .*: max_positions is 12 there and 20 here",
    ),
    "no unmasked play": (
        lambda: short("masked", mask=("blinded",)),
        "was not played without a mask in",
    ),
}


@pytest.mark.parametrize("use", REFUSED)
def test_what_cannot_be_a_price_is_refused_in_one_line(use):
    made, words = REFUSED[use]
    with pytest.raises(TradeassayError, match=words) as refused:
        assay(whole(JUDGED), CONFIG, mask_price=[made()])
    assert "\n" not in str(refused.value)


def test_days_count_once_and_only_models_with_a_masked_twin_have_a_price():
    twice = [whole(UNREAD), whole(UNREAD)]
    with pytest.raises(UserError, match="of price-unread would count twice in the mask's price"):
        assay(whole(JUDGED), CONFIG, mask_price=twice)
    with pytest.raises(UserError, match="of price-unread would count twice"):
        assay(whole(JUDGED), CONFIG, mask_price=[whole(UNREAD), short("again")])
    with pytest.raises(UserError, match="no model that is judged played it with and without"):
        assay(short("rules", models=["cash"]), CONFIG, mask_price=[whole(UNREAD)])
    with pytest.raises(UserError, match="not synthetic"):
        assay(whole(UNREAD), CONFIG, mask_price=[short("real", REAL)])


def test_a_world_that_its_seed_does_not_give_is_refused():
    forged = Run.load(whole(UNREAD).folder, home=home())
    record = forged.manifest.datasets[UNREAD]
    datasets = {"synthetic/us:7": record}
    forged.manifest = msgspec.structs.replace(forged.manifest, datasets=datasets)
    with pytest.raises(
        UserError, match="contains a different synthetic/us:7 from the one that its seed generates"
    ):
        assay(whole(JUDGED), CONFIG, mask_price=[forged])


def test_what_is_given_as_a_price_must_be_a_run(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TRADEASSAY_HOME", str(home()))
    judged = str(whole(JUDGED).folder)
    table = tmp_path / "mine.csv"
    table.write_text("date,return\n2024-01-02,0.01\n")
    for words, told in (
        (["assay", judged, "--mask-price", "nowhere"], "no recorded run 'nowhere'"),
        (["assay", judged, "--mask-price", str(table)], "is a file, not a recorded run"),
        (["assay", str(table), "--mask-price", judged], "--mask-price is valid only with a run"),
    ):
        assert main(words) == 2
        assert told in capsys.readouterr().err
    with pytest.raises(UserError, match="'mask_price' is valid only with a run, not with a table"):
        ta.assay(str(table), mask_price=judged)
    with pytest.raises(UserError, match="expected a run as mask_price, got 7"):
        ta.assay(judged, mask_price=7)


def unpriced(other, config=CONFIG):
    """Return a model's account where the price is None, and the reason."""
    one = bright(assay(whole(JUDGED), config, mask_price=[other]), REMEMBERS)
    lost, memory = one.statement("lost-information"), one.statement("memory")
    assert lost.value is None and memory.value is None and lost.reason == memory.reason
    return one, lost.reason


def test_a_price_that_is_not_measured_is_none_with_a_reason_and_clears_nobody():
    with runs.under_mask(acts=False):
        idle = short("idle")
    with runs.under_mask(answers=False):
        mute = short("mute")
    for other, reason in (
        (idle, "in price-unread the masked run held something on 0 of 4 sessions"),
        (mute, "in price-unread the masked run had no usable answer on 75% of its sessions"),
        (short("short"), "record too short: 4 sessions in price-unread"),
        (short("single", days=1), "record too short: 1 sessions"),
    ):
        one, told = unpriced(other)
        assert reason in told
        assert one.verdict.kind == "memory"
        assert any(f"is not measured ({told})" in limit for limit in one.verdict.limits)
    watched = msgspec.structs.replace(CONFIG, watched=True)
    assert "however often" in unpriced(whole(UNREAD), watched)[1]


def test_a_shorter_world_gives_a_wider_interval():
    brief = bright(assay(whole(JUDGED), LOOSE, mask_price=[short("thirty", days=30)]), READS)
    full = bright(assay(whole(JUDGED), LOOSE, mask_price=[whole(UNREAD)]), READS)
    width = [
        one.statement("lost-information").high - one.statement("lost-information").low
        for one in (brief, full)
    ]
    assert width[0] > width[1]


def test_the_name_under_which_an_agent_played_does_not_matter():
    renamed = short("renamed", labels={REMEMBERS: "one", READS: "two"})
    one = bright(assay(whole(JUDGED), CONFIG, mask_price=[renamed]), READS)
    assert one.statement("lost-information").reason.endswith("4 sessions in price-unread")
