"""A StockBench day in words and plain tables, as a model reads it.

Everything is rendered from the payload that agents get as data: the text cannot say anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tradeassay.benchmarks.error_messages import cell, table
from tradeassay.benchmarks.stockbench.prompts import PROMPTS
from tradeassay.benchmarks.stockbench.stockbench_config import StockbenchConfig

# Forms, not examples: they are no JSON and name nothing, so that nothing is traded by copying them.
PICK_FORM = '{"analyse": ["<symbol>", "<symbol>"], "reason": "<why these>"}'
NOTES_FORM = '{"notes": {"<symbol>": "<what you make of it>"}}'
DECISION_FORM = (
    '{"decisions": {"<symbol>": {"action": "<action>", "target_cash_amount": <amount>, "reasons": ["<why>"], '
    '"confidence": <confidence>}}}'
)
Rows = Sequence[Mapping[str, Any]]


def overview_in_words(payload: str, config: StockbenchConfig) -> str:
    seen = msgspec.json.decode(payload)
    return PROMPTS.fill(
        "overview",
        session=seen["session"],
        cash=f"{seen['cash']:.2f}",
        nav=f"{seen['nav']:.2f}",
        rows=_rows(seen["symbols"]),
        history=_history(seen.get("history", ())),
        news=_news(seen["symbols"], config),
        max_names=seen["max_names"],
        form=PICK_FORM,
    )


def analysis_in_words(payload: str, config: StockbenchConfig) -> str:
    rows = msgspec.json.decode(payload)["symbols"]
    shown = {"rows": _rows(rows), "fundamentals": _fundamentals(rows), "news": _news(rows, config)}
    return PROMPTS.fill("analysis", form=NOTES_FORM, **shown)


def decision_in_words(payload: str, config: StockbenchConfig) -> str:
    """Return the third question; its last words are the form of the answer."""
    seen = msgspec.json.decode(payload)
    held = [row["symbol"] for row in seen["symbols"] if row["position"] is not None]
    only = (
        f"Only what you hold can be sold: {', '.join(held)}."
        if held
        else "You hold nothing, so nothing can be sold."
    )
    return PROMPTS.fill(
        "decision",
        cash=f"{seen['cash']:.2f}",
        rows=_rows(seen["symbols"]),
        held=only,
        tolerance=f"{config.tolerance * 100:g}",
        money=_money(seen["buying_power"], config),
        kept=" Where a decision breaks one of these rules, it is left out and the others stand."
        if config.keeps_sound_decisions
        else "",
        format=PROMPTS.fill(f"format.{config.prompt}"),
        form=DECISION_FORM,
    )


def _money(buying_power: float, config: StockbenchConfig) -> str:
    if config.spends_cash_only:
        return (
            f"Each purchase must fit the cash that you have now, {buying_power:.2f} at most; what sales of the "
            "same day bring does not count."
        )
    return (
        f"All purchases together must fit your cash, which can buy {buying_power:.2f}, plus what your sales bring."
    )


def _rows(rows: Rows) -> str:
    columns = ("symbol", "open", "closes before", "shares held", "worth", "days held", "can be bought")
    return table(columns, map(_row, rows))


def _row(row: Mapping[str, Any]) -> Sequence[object]:
    held = row["position"] or {"shares": 0, "value": 0, "holding_days": 0}
    closes = " ".join(map(cell, row["closes"])) or None
    return (
        row["symbol"],
        row["open"],
        closes,
        held["shares"],
        held["value"],
        held["holding_days"],
        bool(row["buyable"]),
    )


def _history(days: Rows) -> str:
    lines = []
    for day in days:
        if not day["answered"]:
            said = "no usable answer, everything was held"
        else:
            said = "; ".join(map(_did, day["actions"])) or "held everything"
        lines.append(f"{day['session']}: {said}")
    return "\nWhat you decided on the last days:\n" + "\n".join(lines) + "\n" if lines else ""


def _did(action: Mapping[str, Any]) -> str:
    unit = " shares" if action["unit"] == "shares" else ""
    target = "" if action["action"] == "close" else f" to {cell(action['target'])}{unit}"
    traded = action["traded"]
    done = f"{'bought' if traded > 0 else 'sold'} {cell(abs(traded))} shares" if traded else "nothing was traded"
    return f"{action['symbol']} {action['action']}{target} ({done})"


def _news(rows: Rows, config: StockbenchConfig) -> str:
    lines = [
        f"{row['symbol']}, {item['published'][:16]}: {item['title']}"
        + (f" {item['text']}" if item["text"] else "")
        for row in rows
        for item in row.get("news", ())
    ]
    return "\n" + PROMPTS.fill("news", days=config.news_days, lines="\n".join(lines)) + "\n" if lines else ""


def _fundamentals(rows: Rows) -> str:
    known = [row for row in rows if "fundamentals" in row]
    if not known:
        return ""
    columns = tuple(known[0]["fundamentals"])
    body = table(("symbol", *columns), ((row["symbol"], *row["fundamentals"].values()) for row in known))
    return "\n" + PROMPTS.fill("fundamentals", rows=body) + "\n"
