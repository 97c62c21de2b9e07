"""Draw the picture of the README: a famous portfolio and the demo's model, each with its verdict.

    tradeassay demo --offline && python scripts/verdict_picture.py runs/demo-models docs/images/verdicts.png

Sentences, bars and intervals are those of the assay that ``tradeassay demo`` writes; nothing is typed here but the
headings. Needs Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

import arch.data.nasdaq
import arch.data.sp500
import pandas as pd
from markupsafe import Markup

from tradeassay.assay.verdict import AgentAssay, VerdictConfig, assay
from tradeassay.report.charts import waterfall_svg
from tradeassay.runs import Run

WIDTH, HEIGHT = 1280, 520
_PAGE = Markup("""<!doctype html><html data-theme="light"><meta charset="utf-8"><style>{css}
body{{margin:0;padding:22px;width:{width}px;box-sizing:border-box;background:#fff}}
main{{display:grid;grid-template-columns:1fr 1fr;gap:22px;align-items:stretch;max-width:none;padding:0;margin:0}}
section{{border:1px solid #d8dee4;border-radius:14px;padding:20px 22px;display:flex;flex-direction:column}}
h2{{font-size:17px;color:#0f6cbd;margin:0 0 6px}}
.verdict-line{{font-size:19px;font-weight:700;line-height:1.35;margin:0;flex:1}}
figure{{margin:14px 0 0}} footer{{font-size:13px;color:#57606a;margin-top:8px;border:0;padding:0}}
</style><main>{cards}</main></html>""")
_CARD = Markup(
    "<section><h2>{heading}</h2><p class=verdict-line>{said}</p><figure>{drawn}</figure>"
    "<footer>{foot}</footer></section>"
)


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the demo's run of a model")
    parser.add_argument("picture", type=Path)
    asked = parser.parse_args()
    famous, model = _famous(), _model(asked.run)
    days = f"{famous.sessions:,} sessions, against the S&P 500 (prices of both)"
    played = f"KTD-Fin, {model.sessions} sessions of a synthetic market; recorded answers, played again"
    cards = [
        _card("A famous portfolio", famous, days),
        _card("A language model that trades", model, played),
    ]
    css = resources.files("tradeassay.report").joinpath("templates/page.css").read_text(encoding="utf-8")
    page = _PAGE.format(css=Markup(css), width=WIDTH, cards=Markup("").join(cards))
    _photograph(page, asked.picture)


def _famous() -> AgentAssay:
    """Return the verdict on the Nasdaq, from prices that come with the package arch, as the demo does."""
    from tradeassay.api import assay as assay_frame

    prices = {"return": arch.data.nasdaq.load()["Adj Close"], "market": arch.data.sp500.load()["Adj Close"]}
    frame = pd.DataFrame(prices).pct_change().dropna()
    return assay_frame(frame, against="market", title="The Nasdaq, 1999 to 2018,").agents[0]


def _model(folder: Path) -> AgentAssay:
    """Return the verdict on the model of the demo where it saw names and dates."""
    run = Run.load(folder)
    models = {episode.label for episode in run.episodes if episode.by_model}
    found = assay(run, VerdictConfig(portfolios=1_000), agents=sorted(models))
    return next(one for one in found.agents if one.by_model and one.mask == "bright")


def _card(heading: str, one: AgentAssay, foot: str) -> Markup:
    return _CARD.format(heading=heading, said=one.verdict.sentence, drawn=waterfall_svg(one), foot=f"{foot}.")


def _photograph(page: str, picture: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("no Chromium here (apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(page, encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}"]
        size = f"--window-size={WIDTH},{HEIGHT}"
        shot = f"--screenshot={picture.resolve()}"
        subprocess.run([chromium, *flags, size, shot, source.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    main()
