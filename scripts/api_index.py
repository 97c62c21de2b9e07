"""Write docs/reference/api-index.md: every public name of the package and its rooms, from the code itself."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api-index.md"
ROOMS = (
    *("account", "agents", "assay", "benchmarks", "code", "data", "factors", "llm", "masking", "metrics", "play"),
    *("report", "runs", "sandbox", "testing"),
)
HEAD = """# API index

What `import tradeassay` offers, with the first line of its help, and the names that its rooms export. Everything
else is internal and may change. `scripts/api_index.py` writes this page from the code.

"""


def said(thing: object) -> str:
    """Return the first sentence of an object's help, as Markdown."""
    first = (inspect.getdoc(thing) or "").split("\n\n")[0]
    first = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(first.split())).replace("``", "`")
    return first.split(". ")[0].rstrip(".:")


def render() -> str:
    """Return the page."""
    package = importlib.import_module("tradeassay")
    rows = [f"- `{name}`: {said(getattr(package, name))}" for name in sorted(package.__all__) if name[0] != "_"]
    parts = [HEAD + "\n".join(rows), ""]
    for room in ROOMS:
        module = importlib.import_module(f"tradeassay.{room}")
        # Without a list, what a room offers is what it imports from its own files.
        own = [name for name, one in vars(module).items() if name != "annotations" and not inspect.ismodule(one)]
        names = [name for name in sorted(getattr(module, "__all__", own)) if name[0] != "_"]
        if names:
            parts += [f"**`tradeassay.{room}`**: " + ", ".join(f"`{name}`" for name in names) + ".", ""]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render())
