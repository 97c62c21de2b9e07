"""The pages of SysTradeBench: one scorecard per item, one page per run. No request leaves them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradeassay.core.secrets import clean_bytes
from tradeassay.report.page import page_environment, script_source, template_text
from tradeassay.report.systrade_card import CardView, card_view
from tradeassay.report.systrade_view import RunView, run_view

if TYPE_CHECKING:
    from tradeassay.benchmarks.systrade.examine import SubmissionCheck
    from tradeassay.runs import CodeRun

CARDS = "cards"


def render_card(view: CardView) -> str:
    """Return the page of one scorecard."""
    return _render("systrade_card.html.j2", view)


def render_run(view: RunView) -> str:
    """Return the page of a run."""
    return _render("systrade_page.html.j2", view)


def write_check_html(check: SubmissionCheck, path: Path) -> Path:
    """Write the scorecard of a submission that no model was asked for, and return its path."""
    badges = (("plain", check.scorecard.data), ("plain", "no model was asked"))
    view = card_view(check.scorecard, check.trail, check.submission, badges=badges)
    return _write(path, render_card(view))


def write_systrade_html(run: CodeRun, path: Path | None = None) -> Path:
    """Write the page of a finished run and, beside it, a scorecard for every item; return the page's path."""
    place = path or run.folder / "report.html"
    view = run_view(run)
    for key, record in run.records().items():
        one = next((i for i in reversed(record.iterations) if i.scored is not None and not i.set_aside), None)
        if one is None:
            continue
        card = card_view(
            one.scored.scorecard,
            one.scored.trail,
            one.submission,
            drift=one.scored.drift,
            reviews=one.reviews,
            badges=(*view.badges, ("plain", f"iteration {one.number}")),
            back=f"../{place.name}",
        )
        _write(place.parent / CARDS / f"{key}.html", render_card(card))
    return _write(place, render_run(view))


def _render(template: str, view: Any) -> str:
    from markupsafe import Markup

    scripts = {"theme": template_text("theme.js"), "page": template_text("systrade.js")}
    return (
        page_environment()
        .get_template(template)
        .render(
            view=view,
            style=Markup(template_text("page.css") + template_text("systrade.css")),
            scripts={name: Markup(text) for name, text in scripts.items()},
            allowed=" ".join(script_source(text) for text in scripts.values()),
        )
    )


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Text of a model may hold lone surrogates, which no encoding takes.
    path.write_bytes(clean_bytes(text.encode("utf-8", "replace")))
    return path
