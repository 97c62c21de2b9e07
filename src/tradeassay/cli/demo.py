"""``tradeassay demo``."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli._finish import finish
from tradeassay.cli._output import say
from tradeassay.cli._run_folder import out_option, workers_option

_SYNTHETIC = ("daily-us-v1", "daily-ashare-v1", "daily-crypto-v1")
_REAL = "daily-us-real-v1"
_TALKING = "ktdfin-v1"
_MODELS = ("scripted/sensible", "scripted/broken-json")


@click.command()
@out_option
@workers_option
@click.option("--offline", is_flag=True, help="Do not ask the package index for the small real US panel.")
def demo(out: Path, workers: int | None, offline: bool) -> int:
    """Rules on three synthetic markets and, when it can be had, a small real one; then two scripted models.

    The models are programs that answer as a language model would, one well and one in broken JSON: no key.
    """
    from tradeassay.api import make_spec
    from tradeassay.runs import run

    names = _SYNTHETIC if offline or not _have_real_panel() else (*_SYNTHETIC, _REAL)
    spec = make_spec(benchmarks=names, slug="demo" if len(names) > len(_SYNTHETIC) else "demo-offline")
    finish(run(spec, out / spec.slug, workers=workers, progress="auto"))
    talk = make_spec(_TALKING, agents=["momentum-12-1"], models=_MODELS, windows="W4", slug="demo-models")
    finish(run(talk, out / talk.slug, workers=workers, progress="auto"))
    return 0


def _have_real_panel() -> bool:
    """Get the real panel unless it is in the store; False, with the reason said, when it cannot be had."""
    from tradeassay.benchmarks import benchmarks
    from tradeassay.core.errors import DataError, UserError
    from tradeassay.data import get_dataset, list_datasets

    name = benchmarks.get(_REAL).dataset
    if any(info.name == name and info.problem is None for info in list_datasets()):
        return True
    say(f"getting the real US panel '{name}' from the package index ...")
    try:
        get_dataset(name)
    except (DataError, UserError) as error:
        say(f"going on without it: {error.message}")
        return False
    return True
