"""The page of a run of programs: one file, no request leaves it, and nothing in it can run but its own scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tradeassay.core.secrets import clean_bytes
from tradeassay.report.code_view import CodeView, code_view
from tradeassay.report.page import page_environment, script_source, template_text

if TYPE_CHECKING:
    from tradeassay.runs import CodeRun

SYSTRADE = "systrade-v1"


def render_code_html(view: CodeView) -> str:
    """Return the page. Every text of a model is escaped."""
    from markupsafe import Markup

    from tradeassay.report.code_rates import STAGE_TITLES

    scripts = {"theme": template_text("theme.js"), "page": template_text("code.js")}
    return (
        page_environment()
        .get_template("code_page.html.j2")
        .render(
            view=view,
            stages=STAGE_TITLES,
            style=Markup(template_text("page.css") + template_text("code.css")),
            scripts={name: Markup(text) for name, text in scripts.items()},
            allowed=" ".join(script_source(text) for text in scripts.values()),
        )
    )


def write_code_html(run: CodeRun, path: Path | None = None) -> Path:
    """Write the page of a finished run and return its path (default: ``report.html`` in the run's folder)."""
    if run.benchmark == SYSTRADE:
        from tradeassay.report.systrade_page import write_systrade_html

        return write_systrade_html(run, path)
    place = path or run.folder / "report.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    # Text of a model may hold lone surrogates, which no encoding takes.
    text = render_code_html(code_view(run)).encode("utf-8", "replace")
    place.write_bytes(clean_bytes(text))
    return place
