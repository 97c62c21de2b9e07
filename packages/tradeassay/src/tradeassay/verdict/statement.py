"""Statements: the numbers about an account, with their meaning and assumptions.

Every number about an account in the terminal, on a page, on the site, in JSON, LaTeX or Python is
the value of one statement. All outputs use the same list, so a quantity has the same value
everywhere.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.metrics.catalogue import BY_ID

Unit = Literal["share", "share a year", "ratio", "number", "years", "money"]
Bearing = Literal["for", "against", "neither"]


class Quantity(msgspec.Struct, frozen=True):
    """A quantity: its displayed title, its unit, and a definition in one sentence."""

    title: str
    unit: Unit
    definition: str

    @property
    def heading(self) -> str:
        """Return the title of a column. For an annual number it includes "per year"."""
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
"""Quantities that are also performance measures, with the id of the measure in the catalogue.

They have the titles and definitions of the catalogue.
"""
_SCORED_UNITS: dict[str, Unit] = {
    "return-per-year": "share a year",
    "volatility": "share a year",
    "max-drawdown": "share",
}


def _scored(quantity: str) -> Quantity:
    """Return a quantity with the title and definition of its measure in the catalogue."""
    info = BY_ID[SCORED[quantity]]
    return Quantity(info.title, _SCORED_UNITS.get(quantity, "ratio"), info.defined)


def _priced(prefix: str, of_claim: str, gap: str) -> dict[str, Quantity]:
    """Return the two quantities into which a loss under a mask is split, by name."""
    return {
        f"{prefix}lost-information": Quantity(
            f"Lost information{of_claim}",
            "share a year",
            f"{gap} in a world that no model has read.",
        ),
        f"{prefix}memory": Quantity(
            f"Memory{of_claim}", "share a year", f"{gap}, minus lost information."
        ),
    }


QUANTITIES: dict[str, Quantity] = {
    "return": Quantity(
        "Return", "share", "The account's return over the whole record, net of its costs."
    ),
    **{quantity: _scored(quantity) for quantity in SCORED},
    "benchmark-return": Quantity(
        "Benchmark's return", "share", "The benchmark's return over the same rows."
    ),
    "excess-return": Quantity(
        "Excess return", "share a year", "The mean annual return minus the benchmark's."
    ),
    "alpha": Quantity(
        "Alpha",
        "share a year",
        "The mean annual return beyond market and style exposures, net of costs.",
    ),
    "alpha-before-costs": Quantity(
        "Alpha before costs", "share a year", "Alpha plus the costs of trading."
    ),
    "costs": Quantity(BY_ID["cost_rate"].title, "share a year", "The mean annual cost of trading."),
    "alpha-ratio": Quantity(
        "Alpha ratio", "ratio", "Annual alpha divided by the volatility of alpha."
    ),
    "information-ratio": Quantity(
        "Information ratio", "ratio", "Annual excess return divided by its volatility."
    ),
    "likelihood-ratio": Quantity(
        "Likelihood ratio",
        "ratio",
        "How many times likelier the record is under skill than as luck's best of the tries.",
    ),
    "equal-tries": Quantity(
        "Equal tries", "number", "The number of tries for which luck's best looks the same."
    ),
    "market": Quantity("Market", "share", "The part of the return from market exposure."),
    "style": Quantity("Style", "share", "The part of the return from style exposures."),
    "selection": Quantity(
        "Selection",
        "share",
        "The part of the return from the choice of names, beyond market and style.",
    ),
    "unexplained": Quantity(
        "Unexplained",
        "share",
        "The part of the return in a table of returns that market and style do not explain.",
    ),
    "trading": Quantity(
        "Trading",
        "share",
        "The part of the return from trading: costs, and fills at other prices than the close.",
    ),
    "timing": Quantity(
        "Timing", "share a year", "The return from being invested more when the market rose."
    ),
    "style-timing": Quantity(
        "Timing of styles",
        "share a year",
        "The return from larger style exposures when the styles paid.",
    ),
    "beta": Quantity("Beta", "ratio", "The account's move when the benchmark moves by 1."),
    "explained": Quantity(
        "Explained variance", "share", "The share of the variance that the benchmark explains (R2)."
    ),
    "late-exposure": Quantity(
        "Late exposure",
        "share",
        "The share of the market exposure that appears only in later rows.",
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
        "Share of the best name", "share", "The share of selection from the best name."
    ),
    "best-day-share": Quantity(
        "Share of the best row", "share", "The share of alpha from the best row."
    ),
    "worst-day": Quantity("Worst row", "share", "The lowest return of one row."),
    "loss-at-10": Quantity(
        "Implied return at -10 %",
        "share",
        "The account's return on a day on which the market falls 10 %, estimated from its record.",
    ),
    "loss-at-20": Quantity(
        "Implied return at -20 %",
        "share",
        "The account's return on a day on which the market falls 20 %, estimated from its record.",
    ),
    "autocorrelation": Quantity(
        "Autocorrelation",
        "ratio",
        "The correlation of a return with the return of the previous row.",
    ),
    "smoothed-sharpe": Quantity(
        "Sharpe ratio after unsmoothing",
        "ratio",
        "The annual Sharpe ratio if smoothed prices cause the autocorrelation.",
    ),
    "beats-random": Quantity(
        "Beats random portfolios",
        "share",
        "The share of random portfolios with the same trades that did worse.",
    ),
    "masked-alpha": Quantity(
        "Alpha under the mask",
        "share a year",
        "Alpha of the same agent if names or dates are hidden.",
    ),
    "alpha-unmasked": Quantity(
        "Alpha of the unmasked play",
        "share a year",
        "Alpha of the unmasked run alone, if the verdict uses both runs together.",
    ),
    "alpha-of-both-plays": Quantity(
        "Alpha of both plays",
        "share a year",
        "Alpha of an account that holds the unmasked and the masked run in equal parts.",
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
        "The part of alpha that the model's recall of the period explains.",
    ),
    "recalled-timing": Quantity(
        "Timing that recall explains",
        "share a year",
        "The part of timing that the model's recall of the period explains.",
    ),
    "mirrored-orders": Quantity(
        "Orders when returns are mirrored",
        "ratio",
        "The similarity of orders when the displayed returns are mirrored: +1 for the same orders, "
        "-1 for opposite orders.",
    ),
    "familiarity": Quantity(
        "Right where questions are familiar",
        "share",
        "The gain in the model's accuracy for one standard deviation of familiarity (Min-K%).",
    ),
    "look-ahead-days": Quantity(
        "Days with look-ahead",
        "share",
        "The largest share of days with look-ahead that the leak test could have missed.",
    ),
    "chance-to-show": Quantity(
        "Chance to show skill",
        "share",
        "The probability that a record of this length detects an alpha ratio of 1.",
    ),
    "years-to-know": Quantity(
        "Years to know",
        "years",
        "The number of further years that settle the question, if alpha is as large as measured.",
    ),
    "deflated-sharpe": Quantity(
        "Deflated Sharpe ratio",
        "share",
        "The probability that the alpha ratio is above the expected best ratio of luck's tries.",
    ),
}


_UNSIGNED = (
    *("volatility", "explained", "late-exposure", "best-name-share", "best-day-share"),
    *("beats-random", "look-ahead-days", "chance-to-show", "deflated-sharpe"),
)
"""Quantities that are displayed without a sign, as shares."""
_SIGNED = ("sharpe", "sortino", "calmar", "information-ratio", "alpha-ratio", "autocorrelation")
"""Ratios that are displayed with a plus or minus sign."""


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One number about an account, and a sentence about it.

    ``claim`` is the sentence. ``quantity`` is a key of :data:`QUANTITIES`. ``value`` is the number,
    or None with a ``reason`` if it was not scored. ``low``, ``high`` and ``level`` describe the
    interval, if any. ``versus`` names the benchmark of a comparison. ``horizon`` is the length of
    the record in years. ``tries`` is the number of tries for which results are corrected.
    ``bearing`` says whether the statement is evidence for skill, against skill, or neither.
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
        """Return the displayed title of the quantity."""
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
