"""Upper bound of the interest on cash during a record."""

from __future__ import annotations

import numpy as np

from tradeassay.verdict.record import VerdictConfig

_USUAL = 0.05
"""Highest annual yield of US bills in the years that are missing from :data:`_BILLS`."""
_MARGIN = 0.01
"""Annual yield of deposits and longer bills beyond the yield of one-month bills."""
_BILLS = {
    1968: 0.052,
    1969: 0.066,
    1970: 0.065,
    1973: 0.069,
    1974: 0.080,
    1975: 0.058,
    1976: 0.051,
    1977: 0.051,
    1978: 0.072,
    1979: 0.104,
    1980: 0.113,
    1981: 0.147,
    1982: 0.105,
    1983: 0.088,
    1984: 0.098,
    1985: 0.077,
    1986: 0.062,
    1987: 0.055,
    1988: 0.064,
    1989: 0.084,
    1990: 0.078,
    1991: 0.056,
    1995: 0.056,
    1996: 0.052,
    1997: 0.053,
    2000: 0.059,
}
"""Yield of one-month US bills in each year in which it exceeded 5 % (Kenneth French)."""


def most_interest(first: str | None, last: str | None, config: VerdictConfig) -> float:
    """Return the highest annual interest on cash between two ISO days, as a fraction.

    It is the mean yield of US bills in these years, but at least 5 %, plus one percentage point.
    Cash in another currency may earn more. A larger ``config.interest``, plus one percentage point,
    is therefore returned instead. Without valid days the yield is 5 %.
    """
    stated = config.interest + _MARGIN
    try:
        start = np.datetime64(first or "", "D").astype(int)
        end = np.datetime64(last or "", "D").astype(int)
    except ValueError:
        start, end = 0, -1
    if end < start:
        return max(_USUAL + _MARGIN, stated)
    paid = 0.0
    for year in range(1970 + start // 366, 1971 + end // 365):
        begins = np.datetime64(f"{year}-01-01", "D").astype(int)
        ends = np.datetime64(f"{year + 1}-01-01", "D").astype(int)
        days = max(0, min(end + 1, ends) - max(start, begins))
        paid += days * max(_USUAL, _BILLS.get(year, 0.0))
    return max(float(paid / (end + 1 - start)) + _MARGIN, stated)
