"""The verdict page: one self-contained HTML file that a portfolio manager understands in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tradeassay.assay.verdict.record import Assay
from tradeassay.core.secrets import clean_text
from tradeassay.report.numbers import count
from tradeassay.report.page import page_environment, plotly_js, script_json, script_source, template_text
from tradeassay.report.verdict_view import payload, views
from tradeassay.report.view import badge_words


def render_verdicts(assay: Assay) -> str:
    """Return the page of an assay. Every text in it is escaped; the page works from a file, offline."""
    from markupsafe import Markup

    environment = page_environment()
    made = views(assay)
    scripts = {"theme": template_text("theme.js"), "plotly": plotly_js(), "page": template_text("verdict.js")}
    context: dict[str, Any] = {
        "assay": assay,
        "agents": made,
        "badges": {cell: badge_words(words) for cell, words in assay.badges.items()},
        "cells": list(dict.fromkeys(view.one.cell for view in made)),
        "count": count,
        "style": Markup(template_text("page.css") + template_text("verdict.css")),
        "scripts": {name: Markup(text) for name, text in scripts.items()},
        "allowed": " ".join(script_source(text) for text in scripts.values()),
        "payload": Markup(script_json(payload(made))),
    }
    return environment.get_template("verdict.html.j2").render(context)


def write_verdicts(assay: Assay, path: Path) -> Path:
    """Write the page to ``path`` (its folder is made) and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(clean_text(render_verdicts(assay)), encoding="utf-8")
    return path
