"""The tables of the page on model prices. Run this file to bring the page up to date."""

from __future__ import annotations

import re
from pathlib import Path

from tradeassay.llm import load_cutoffs, load_prices

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "model-prices.md"


def price_table() -> str:
    rows = [
        "| model | input | cache read | cache write | output | holds up to (input tokens) | as of |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for name, price in load_prices().prices.items():
        numbers = [price.input, price.cache_read, price.cache_write, price.output]
        shown = ["" if number is None else f"{number:g}" for number in numbers]
        limit = "" if price.input_limit is None else f"{price.input_limit:,}"
        rows.append(f"| `{name}` | {' | '.join(shown)} | {limit} | {price.as_of} |")
    return "\n".join(rows)


def cutoff_table() -> str:
    rows = ["| model | last day | as of |", "|---|---|---|"]
    rows += [f"| `{name}` | {entry.last_day} | {entry.as_of} |" for name, entry in load_cutoffs().cutoffs.items()]
    return "\n".join(rows)


def source_list() -> str:
    tables = (*load_prices().prices.values(), *load_cutoffs().cutoffs.values())
    sources = dict.fromkeys(entry.source for entry in tables)
    return "\n".join(f"- {source}" for source in sources)


def render(text: str) -> str:
    for mark, table in (("prices", price_table()), ("cutoffs", cutoff_table()), ("sources", source_list())):
        text = re.sub(
            f"<!-- {mark} -->.*?<!-- /{mark} -->", f"<!-- {mark} -->\n{table}\n<!-- /{mark} -->", text, flags=re.S
        )
    return text


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text()))
