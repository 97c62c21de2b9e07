"""A statement: one number about an account, its meaning, and its assumptions.

Every number on a page, in the terminal, in JSON, LaTeX, Python or on the site is the value of one
statement. All of them read the same list, so a quantity has the same value everywhere.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.metrics.catalogue import BY_ID

Unit = Literal["share", "share a year", "ratio", "number", "years", "money"]
Bearing = Literal["for", "against", "neither"]


class Quantity(msgspec.Struct, frozen=True):
    """A measured quantity: its title everywhere, its unit, and a definition of one sentence."""

    title: str
    unit: Unit
    definition: str

    @property
    def heading(self) -> str:
        """Return the title of a column or a tile. For an annual number it includes "per year"."""
        if self.unit != "share a year" or "year" in self.title or self.title == "Volatility":
            return self.title
        return f"{self.title} per year"


SCORED = {
    "return-per-year": "annualised_return",
    "sharpe": "sharpe",
    "sortino": "sortino",
    "volatility": "volatility",
    "calmar": "calmar",
    "max-drawdown": "max_drawdown",
}
"""Quantities that are measures of the catalogue, by id. They have the same titles and
definitions."""
_SCORED_UNITS: dict[str, Unit] = {
    "return-per-year": "share a year",
    "volatility": "share a year",
    "max-drawdown": "share",
}


def _scored(quantity: str) -> Quantity:
    info = BY_ID[SCORED[quantity]]
    return Quantity(info.title, _SCORED_UNITS.get(quantity, "ratio"), info.defined)


def _priced(prefix: str, of_claim: str, gap: str) -> dict[str, Quantity]:
    """Return the two quantities that sum to a gap under a mask: lost information and memory."""
    return {
        f"{prefix}lost-information": Quantity(
            f"Lost information{of_claim}", "share a year", f"{gap} in a world no model has read."
        ),
        f"{prefix}memory": Quantity(
            f"Memory{of_claim}", "share a year", f"{gap}, minus lost information."
        ),
    }


QUANTITIES: dict[str, Quantity] = {
    "return": Quantity(
        "Return", "share", "What the account made over the whole record, net of its costs."
    ),
    **{quantity: _scored(quantity) for quantity in SCORED},
    "benchmark-return": Quantity(
        "Benchmark's return", "share", "What the benchmark made over the same rows."
    ),
    "excess-return": Quantity(
        "Excess return", "share a year", "The return minus the benchmark's, mean of a year."
    ),
    "alpha": Quantity(
        "Alpha",
        "share a year",
        "What is left after market and style exposures, mean of a year, net of costs.",
    ),
    "alpha-before-costs": Quantity(
        "Alpha before costs", "share a year", "Alpha plus the costs of trading."
    ),
    "costs": Quantity(
        BY_ID["cost_rate"].title, "share a year", "What trading cost, mean of a year."
    ),
    "alpha-ratio": Quantity(
        "Alpha ratio", "ratio", "Alpha over its own volatility, both of a year."
    ),
    "information-ratio": Quantity(
        "Information ratio", "ratio", "Excess return over its volatility, both of a year."
    ),
    "likelihood-ratio": Quantity(
        "Likelihood ratio",
        "ratio",
        "How many times likelier the record is under skill than as luck's best of the tries.",
    ),
    "equal-tries": Quantity(
        "Equal tries", "number", "The number of tries of which luck's best looks the same."
    ),
    "market": Quantity("Market", "share", "The part of the return that the market brought."),
    "style": Quantity("Style", "share", "The part of the return that style exposures brought."),
    "selection": Quantity(
        "Selection",
        "share",
        "The part of the return that the names brought beyond market and style.",
    ),
    "unexplained": Quantity(
        "Unexplained",
        "share",
        "The part of the return that neither market nor style explains, of a table of returns.",
    ),
    "trading": Quantity("Trading", "share", "Costs, and what was earned or paid beyond holding."),
    "timing": Quantity(
        "Timing", "share a year", "What being invested when the market rose brought."
    ),
    "style-timing": Quantity(
        "Timing of styles", "share a year", "What leaning to styles when they paid brought."
    ),
    "beta": Quantity("Beta", "ratio", "How far the account moves when the benchmark moves by 1."),
    "explained": Quantity(
        "Explained variance", "share", "The share of the variance that the benchmark explains (R2)."
    ),
    "late-exposure": Quantity(
        "Late exposure", "share", "The share of the market exposure that comes in later rows."
    ),
    "alpha-first-half": Quantity(
        "Alpha, first half", "share a year", "Alpha in the first half of the record."
    ),
    "alpha-second-half": Quantity(
        "Alpha, second half", "share a year", "Alpha in the second half of the record."
    ),
    "alpha-latest-third": Quantity(
        "Alpha, latest third", "share a year", "Alpha in the latest third of the record."
    ),
    "alpha-without-best-days": Quantity(
        "Alpha without the five best rows",
        "share a year",
        "Alpha if the five rows with the largest alpha are left out.",
    ),
    "alpha-without-best-month": Quantity(
        "Alpha without the best month",
        "share a year",
        "Alpha if the calendar month with the largest alpha is left out.",
    ),
    "best-name-share": Quantity(
        "Share of the best name", "share", "What the best name brought, as a share of selection."
    ),
    "best-day-share": Quantity(
        "Share of the best row", "share", "What the best row brought, as a share of alpha."
    ),
    "worst-day": Quantity("Worst row", "share", "The lowest return of one row."),
    "loss-at-10": Quantity(
        "Implied return at -10 %",
        "share",
        "What the account would return on a day on which the market falls 10 %, from its record.",
    ),
    "loss-at-20": Quantity(
        "Implied return at -20 %",
        "share",
        "What the account would return on a day on which the market falls 20 %, from its record.",
    ),
    "autocorrelation": Quantity(
        "Autocorrelation", "ratio", "How far a return follows the return of the row before."
    ),
    "smoothed-sharpe": Quantity(
        "Sharpe ratio after unsmoothing",
        "ratio",
        "The yearly Sharpe ratio if the autocorrelation comes from smoothed prices.",
    ),
    "beats-random": Quantity(
        "Beats random portfolios",
        "share",
        "The share of random portfolios with the same trades that did worse.",
    ),
    "masked-alpha": Quantity(
        "Alpha under the mask",
        "share a year",
        "Alpha of the same agent where names or dates are hidden.",
    ),
    "alpha-unmasked": Quantity(
        "Alpha of the unmasked play",
        "share a year",
        "Alpha of the unmasked play alone, where the verdict rests on both plays together.",
    ),
    "alpha-of-both-plays": Quantity(
        "Alpha of both plays",
        "share a year",
        "Alpha of an account that holds the unmasked and the masked play in equal parts.",
    ),
    "mask-gap": Quantity(
        "Loss under the mask", "share a year", "Alpha minus alpha under the mask."
    ),
    **_priced("", "", "Loss under the mask"),
    "timing-mask-gap": Quantity(
        "Timing lost under the mask", "share a year", "Timing minus timing under the mask."
    ),
    **_priced("timing-", " on timing", "Timing lost under the mask"),
    "style-timing-mask-gap": Quantity(
        "Timing of styles lost under the mask",
        "share a year",
        "Timing of styles minus timing of styles under the mask.",
    ),
    **_priced("style-timing-", " on timing of styles", "Timing of styles lost"),
    "names-and-days-mask-gap": Quantity(
        "Names and days lost under the mask",
        "share a year",
        "Alpha and timing together minus the same under the mask.",
    ),
    **_priced("names-and-days-", " on names and days", "Names and days lost"),
    "recalled-alpha": Quantity(
        "Alpha that recall explains",
        "share a year",
        "The part of alpha that follows what the model recalls of the period.",
    ),
    "recalled-timing": Quantity(
        "Timing that recall explains",
        "share a year",
        "The part of timing that follows what the model recalls of the period.",
    ),
    "mirrored-orders": Quantity(
        "Orders when returns are mirrored",
        "ratio",
        "How alike orders stay when the returns that are shown are mirrored: +1 the same, -1 the "
        "opposite.",
    ),
    "familiarity": Quantity(
        "Right where questions are familiar",
        "share",
        "How much more often the model is right for one standard deviation of Min-K%.",
    ),
    "look-ahead-days": Quantity(
        "Days with look-ahead",
        "share",
        "The share of days up to which look-ahead could have been missed by the leak test.",
    ),
    "chance-to-show": Quantity(
        "Chance to show skill",
        "share",
        "The chance that a record of this length shows skill with an alpha ratio of 1.",
    ),
    "years-to-know": Quantity(
        "Years to know",
        "years",
        "How many more years would settle it, if alpha is as large as it looks.",
    ),
    "deflated-sharpe": Quantity(
        "Deflated Sharpe ratio",
        "share",
        "The chance that the alpha ratio is above that of luck's best of the tries.",
    ),
}


_UNSIGNED = (
    *("volatility", "explained", "late-exposure", "best-name-share", "best-day-share"),
    *("beats-random", "look-ahead-days", "chance-to-show", "deflated-sharpe"),
)
"""Shares that are displayed without a sign."""
_SIGNED = ("sharpe", "sortino", "calmar", "information-ratio", "alpha-ratio", "autocorrelation")
"""Ratios that are displayed with their sign."""


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence with its number.

    ``quantity`` is a key of :data:`QUANTITIES`. ``value`` is the number, None with a ``reason`` if
    it could not be scored. If there is an interval, it is from ``low`` to ``high`` at ``level``.
    ``versus`` names the benchmark of a comparison. The record covers ``horizon`` years. ``tries``
    is the number of tries in the correction. ``bearing`` is the evidence for or against skill.
    ``claim`` is the statement in words.
    """

    claim: str
    quantity: str
    value: float | None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    versus: str | None = None
    horizon: float
    tries: int = 1
    assumptions: tuple[str, ...] = ()
    bearing: Bearing = "neither"
    reason: str | None = None

    @property
    def unit(self) -> Unit:
        """Return the unit of the value."""
        return QUANTITIES[self.quantity].unit

    @property
    def title(self) -> str:
        """Return the name of the quantity, which is the same everywhere."""
        return QUANTITIES[self.quantity].title

    @property
    def form(self) -> str:
        """Return the format of the value, one of :data:`tradeassay.report.numbers.FORMS`."""
        if self.unit in ("share", "share a year"):
            return "share" if self.quantity in _UNSIGNED else "change"
        return "signed" if self.quantity in _SIGNED else "number"

    @property
    def measure(self) -> Measure:
        """Return the value as a measure with its interval."""
        level = 0.95 if self.level is None else self.level
        return Measure(
            value=self.value, low=self.low, high=self.high, level=level, reason=self.reason
        )
