"""A return taken apart step by step, few enough steps to be read."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.assay.verdict.record import AgentFindings

_SMALL = 0.1
"""Style factors below this share of the largest part are merged into one step."""


class WaterfallStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step; the relative ones sum to the total, which comes last."""

    label: str
    value: float
    kind: Literal["relative", "total"] = "relative"


def waterfall(one: AgentFindings) -> tuple[WaterfallStep, ...]:
    """Return the steps from zero to the return; empty where the return was not taken apart."""
    if not one.parts or one.total.value is None:
        return ()
    if any(one.parts[name].value is None for name in ("common", "selection") if name in one.parts):
        return ()
    value = {name: measure.value or 0.0 for name, measure in one.parts.items()}
    known = {name for name, measure in one.parts.items() if measure.value is not None}
    largest = max(abs(value[name]) for name in ("common", "style", "selection", "trading"))
    factors = {name: part for name, part in value.items() if name.startswith("style.")}
    large = [name for name, part in factors.items() if abs(part) >= max(_SMALL * largest, 0.001)]
    large = sorted(large, key=lambda name: -abs(factors[name]))[:3]
    rest = value["style"] - sum(factors[name] for name in large)
    style = (WaterfallStep(label="Other style" if large else "Style", value=rest),) if "style" in known else ()
    trading = (WaterfallStep(label="Trading", value=value["trading"]),) if "trading" in known else ()
    return (
        WaterfallStep(label="Market", value=value["common"]),
        *(WaterfallStep(label=name.removeprefix("style."), value=factors[name]) for name in large),
        *style,
        WaterfallStep(label="Selection", value=value["selection"]),
        *trading,
        WaterfallStep(label="Return", value=one.total.value, kind="total"),
    )
