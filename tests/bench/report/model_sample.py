"""A made-up report on models under two masks; with ``attack`` every text of others tries to run
a script.
"""

from functools import cache

import msgspec
import numpy as np
from report_sample import ATTACK, agent, bare_cell, weekdays

from tradeassay.core.measure import Badges, Measure
from tradeassay.metrics import Bin, Calibration, rate_measure
from tradeassay_bench.core.orders import Order
from tradeassay_bench.report import render_html
from tradeassay_bench.runs.score import Inference
from tradeassay_bench.runs.summary import ModelSummary, RunSummary, completed_run
from tradeassay_bench.runs.summary.rows import (
    CallNote,
    DecisionNote,
    ErrorRow,
    FormRate,
    OrderNote,
    ShownTurn,
)

PROMPT = 'It is day 7.\n\n```json\n{"kind":"observation","cash":1000.0,"positions":[]}\n```'


def decision(session, word=""):
    asked = (("system", word or "You manage a portfolio."), ("user", word or PROMPT))
    call = CallNote(
        name=word or "screen", arguments=word or "{}", result=word or '{"names":["S01"]}'
    )
    return DecisionNote(
        session=session,
        reason=word or "two names look cheap",
        failed=False,
        orders=(
            OrderNote(
                order=Order(symbol=word or "S01", amount=0.1, unit="target_weight", side="BUY"),
                tone="filled",
                fate="bought 10 at 99.5",
            ),
            OrderNote(
                order=Order(symbol="S02", amount=5, side="SELL", confidence=0.7, reason=word),
                tone="refused",
                fate=f"refused: lot ({word})",
            ),
        ),
        problems=(f"schema: {word or 'no JSON'}",),
        turns=(
            ShownTurn(purpose="research", attempt=1, asked=asked, said="", calls=(call,)),
            ShownTurn(
                purpose="submit",
                attempt=2,
                asked=(("assistant", word or "before"),),
                said=word or "Done.",
            ),
            ShownTurn(purpose="submit", attempt=3, asked=(), said="", error=f"timeout: {word}"),
        ),
        attempts=2,
        tokens=12_345,
        usd=None,
    )


def model(answers, *, usd, word=""):
    bins = (
        Bin(low=0.5, high=0.6, n=10, confidence=0.55, accuracy=0.5),
        Bin(low=0.7, high=0.8, n=90, confidence=0.74, accuracy=0.52),
        Bin(low=0.9, high=1.0, n=0, confidence=None, accuracy=None),
    )
    valid = rate_measure(90, 100, nothing="")
    return ModelSummary(
        model=word or f"{answers}/some-model",
        answers=answers,
        mask=word or None,
        cost=Inference(
            calls=500,
            decisions=100,
            input_tokens=2_400_000,
            output_tokens=90_000,
            usd=usd,
            calls_per_decision=5.0,
            tokens_per_decision=24_900.0,
            usd_per_decision=None if usd is None else usd / 100,
        ),
        net_return=Measure(value=None, reason="the price is unknown")
        if usd is None
        else Measure(value=0.05),
        sessions=100,
        errors=(
            ErrorRow(
                kind=word or "schema",
                answers=40,
                sessions=25,
                rate=rate_measure(25, 100, nothing=""),
            ),
            ErrorRow(kind="give_up", answers=3, sessions=3, rate=rate_measure(3, 100, nothing="")),
        ),
        rates=(
            FormRate(title="Valid tool calls", defined="Calls that were answered.", rate=valid),
        ),
        confidence=Calibration(
            bins=bins, ece=Measure(value=0.2, low=0.1, high=0.3), brier=Measure(value=0.26)
        ),
    )


def masked_cell(place, mask, *, n=120, attack=False):
    sessions = weekdays(n)
    market = np.random.default_rng(1).normal(0.0004, 0.009, n)
    word = ATTACK if attack else ""

    def trader(name, edge, seed, answers, usd):
        path = market + edge + np.random.default_rng(seed).normal(0, 0.002, n)
        plain = agent(name, [path], sessions, market, symbols=("S01", "S02"))
        assert plain.detail is not None
        detail = msgspec.structs.replace(
            plain.detail,
            decisions=tuple(decision(day, word) for day in reversed(sessions[-3:])),
            decisions_left_out=len(sessions) - 3,
        )
        return msgspec.structs.replace(
            plain, detail=detail, model=model(answers, usd=usd, word=word)
        )

    lost = -0.003 if mask == "blinded" else 0.0
    agents = (
        agent("equal-weight", [market], sessions, market, baseline=True, symbols=("S01",)),
        trader("rememberer", 0.001 + lost, 2, "live", None),
        trader(word or "honest", 0.0003, 3 + place, "scripted", 1.5),
    )
    return bare_cell(
        agents,
        sessions,
        id=f"cell-{mask}",
        title=f"KTD-Fin, {mask}",
        benchmark="ktdfin-v1",
        dataset="synthetic/ashare:7",
        badges=Badges(data="synthetic", convention="corrected", model="live"),
        options={"mask": mask},
    )


@cache
def model_report(*, attack=False):
    cells = (masked_cell(0, "blinded", attack=attack), masked_cell(1, "bright", attack=attack))
    return completed_run(RunSummary(title="masks", settings=cells, draws=200))


@cache
def model_page(*, attack=False):
    """Return the page of the report."""
    return render_html(model_report(attack=attack))
