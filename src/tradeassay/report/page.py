"""One self-contained HTML page: no request leaves it, and nothing in it can run but its own scripts."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tradeassay.core.errors import MissingExtra
from tradeassay.core.secrets import clean_text
from tradeassay.report.data import ReportData
from tradeassay.report.numbers import count, dollars, month_text, number, short
from tradeassay.report.view import TABLE, TILES, cell_views, compared, payload

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_TEMPLATES = "templates"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def render_html(data: ReportData) -> str:
    """Return the page of a report. Every text in ``data`` is escaped; the page works from a file, offline."""
    from markupsafe import Markup

    environment = page_environment()
    views = cell_views(data)
    scripts = {"theme": template_text("theme.js"), "plotly": plotly_js(), "page": template_text("page.js")}
    context: dict[str, Any] = {
        "data": data,
        "cells": views,
        "contrasts": compared(data, views),
        "table": TABLE,
        "tiles": TILES,
        "months": _MONTHS,
        "count": count,
        "dollars": dollars,
        "short": short,
        "percent": lambda value: number(value, unit="fraction"),
        "month_text": month_text,
        "style": Markup(template_text("page.css")),
        "scripts": {name: Markup(text) for name, text in scripts.items()},
        "allowed": " ".join(script_source(text) for text in scripts.values()),
        "payload": Markup(script_json(payload(views))),
    }
    return environment.get_template("page.html.j2").render(context)


def page_environment() -> Environment:
    """Return what fills our templates: everything is escaped, an unknown name is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tradeassay.report", _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    return environment


def write_page(data: ReportData, path: Path) -> Path:
    """Write the page to ``path`` (its folder is made) and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(clean_text(render_html(data)), encoding="utf-8")
    return path


def script_json(value: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = msgspec.json.encode(value).decode()
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@cache
def plotly_js() -> str:
    """Return plotly.js as the installed plotly package carries it; its Python side is not imported.

    Raises :class:`MissingExtra` when the package is not there or keeps its script elsewhere.
    """
    found = importlib.util.find_spec("plotly")
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        script = Path(place) / "package_data" / "plotly.min.js"
        if script.is_file():
            # The text must not end the element it stands in.
            return script.read_text(encoding="utf-8").replace("</script", "<\\/script")
    raise MissingExtra(
        "plotly.js, which draws the charts, was not found", mend="pip install --force-reinstall plotly"
    )


def _breakable(text: str) -> Markup:
    """Return a text, escaped, whose lines may break after a comma: compact JSON has no spaces to break at."""
    from markupsafe import Markup, escape

    return Markup(str(escape(text)).replace(",", ",<wbr>"))


@cache
def template_text(name: str) -> str:
    """Return a style sheet or script of ours."""
    return resources.files("tradeassay.report").joinpath(_TEMPLATES, name).read_text(encoding="utf-8")


def script_source(script: str) -> str:
    """Return a script's hash for the content security policy: a script that is not ours does not run."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
