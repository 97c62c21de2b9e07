"""How commands name a recorded run: a folder, or a slug below ``runs/``."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean

out_option = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("runs"), show_default=True,
    help="Folder that holds the runs.",
)  # fmt: skip
workers_option = click.option("--workers", type=click.IntRange(1), help="Processes to use. Default: the cores.")


def find_run(name: str, out: Path) -> Path:
    """Return the run's folder; raises :class:`UserError` with near names when there is none."""
    for folder in (Path(name), out / name):
        if (folder / "manifest.json").is_file():
            return folder
    known = sorted(path.parent.name for path in out.glob("*/manifest.json"))
    if known:
        mend = did_you_mean(name, known, f"runs in {out}: {', '.join(known)}")
    else:
        mend = f"there are no runs in {out}; start one with: tradeassay demo"
    raise UserError(f"no recorded run '{name}'", mend=mend)
