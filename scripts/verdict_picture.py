"""Draw the picture of the README: three verdicts, each with the true nature of the account.

    python scripts/verdict_picture.py docs/images/verdicts.png

Sentences, bars and intervals come from ``tradeassay demo``. Only the headings are written here.
Needs Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from markupsafe import Markup

from tradeassay.report.charts import waterfall_svg
from tradeassay.verdict import VerdictConfig
from tradeassay_bench.examine.planted import answer_key

WIDTH, HEIGHT = 1280, 600
CARDS = {"reads-news": "Found", "best-of-50": "Not called skill", "remembers": "Caught"}
_PAGE = Markup("""<!doctype html><html data-theme="light"><meta charset="utf-8"><style>{css}
body{{margin:0;padding:20px;width:{width}px;box-sizing:border-box;background:#fff}}
main{{display:grid;grid-template-columns:1fr 1fr 1fr;gap:18px;align-items:stretch}}
main{{max-width:none;padding:0;margin:0}}
section{{border:1px solid #d8dee4;border-radius:14px;padding:18px 20px;display:flex;flex-direction:column}}
h2{{font-size:22px;color:#0f6cbd;margin:0 0 6px}}
.verdict-line{{font-size:16px;font-weight:700;line-height:1.35;margin:0;flex:1}}
figure{{margin:12px 0 0}} footer{{font-size:14px;color:#24292f;margin-top:8px;border:0;padding:0}}
</style><main>{cards}</main></html>""")
_CARD = Markup(
    "<section><h2>{heading}</h2><p class=verdict-line>{said}</p><figure>{drawn}</figure>"
    "<footer>What it truly is: {truth}. The verdict is <b>{right}</b>.</footer></section>"
)


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("picture", type=Path)
    asked = parser.parse_args()
    planted = answer_key(VerdictConfig(portfolios=1_000))
    cards = []
    for name, heading in CARDS.items():
        one, known = planted.agent(name), planted.key[name]
        right = "right" if one.verdict.kind in known.deserves else "wrong"
        said, drawn = one.verdict.sentence, waterfall_svg(one)
        cards.append(
            _CARD.format(heading=heading, said=said, drawn=drawn, truth=known.is_truly, right=right)
        )
    css = (
        resources.files("tradeassay.report")
        .joinpath("templates/page.css")
        .read_text(encoding="utf-8")
    )
    _photograph(
        _PAGE.format(css=Markup(css), width=WIDTH, cards=Markup("").join(cards)), asked.picture
    )


def _photograph(page: str, picture: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("no Chromium here (apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(page, encoding="utf-8")
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}",
        ]
        size = f"--window-size={WIDTH},{HEIGHT}"
        shot = f"--screenshot={picture.resolve()}"
        subprocess.run(
            [chromium, *flags, size, shot, source.as_uri()], check=True, capture_output=True
        )


if __name__ == "__main__":
    main()
