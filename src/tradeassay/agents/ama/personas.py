"""The sixteen of the hedge fund: twelve ways of investing known by who made them known, and four plain analysts.

The sketches are ours and describe a way of thinking; nobody named here has anything to do with this project.
"""

from __future__ import annotations

from typing import Final

PERSONAS: Final[dict[str, str]] = {
    "damodaran": "value is a story told in numbers; cash flows, growth and risk first, price against value last.",
    "graham": "a margin of safety above all; cheap against proven earnings and assets, or not at all.",
    "buffett": "wonderful businesses at fair prices, held for long; durable advantage and honest owners.",
    "munger": "avoid stupidity before seeking brilliance; few decisions, mental models, patience.",
    "ackman": "a concentrated view with a catalyst; what would have to change, and who will change it?",
    "burry": "look where nobody looks; hard figures against the crowd's story, contrarian when they disagree.",
    "pabrai": "heads I win, tails I do not lose much; low risk with high uncertainty.",
    "lynch": "know what you own; simple growth at a reasonable price, seen in daily life.",
    "fisher": "superior growth through research, people and products; scuttlebutt over statements.",
    "wood": "disruptive innovation; exponential markets, volatility is the price of it.",
    "druckenmiller": "macro and liquidity first; asymmetric bets, cut fast, press when right.",
    "jhunjhunwala": "optimism on growth with a trader's respect for price; ride the trend, fear leverage.",
    "valuation": "compare price with what reports justify, in plain arithmetic.",
    "sentiment": "the crowd's mood in headlines and its extremes.",
    "fundamentals": "profitability, growth, balance sheet and their direction.",
    "technicals": "trend, momentum, mean reversion and volatility of prices.",
}
