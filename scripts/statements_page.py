"""Write docs/reference/statements.md from the list of quantities."""

from __future__ import annotations

from pathlib import Path

from tradeassay.verdict import QUANTITIES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "statements.md"
HEAD = """# Statements

Every number about an account is a statement with one of these quantities: `result.agents[0].statement("alpha")`, or
`statements` in the JSON. Besides its claim, value and interval it has the benchmark (`versus`), the years (`horizon`),
the `tries`, its `assumptions`, and its `bearing` on skill. A value that could not be scored is null, with a `reason`.
*Yearly* is a share a year. `scripts/statements_page.py` writes this page.

"""


def render() -> str:
    """Return the page."""
    lines = []
    for name, quantity in QUANTITIES.items():
        unit = "yearly" if quantity.unit == "share a year" else quantity.unit
        lines.append(f"- `{name}` ({unit}): {quantity.definition}\n")
    return HEAD + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(render())
