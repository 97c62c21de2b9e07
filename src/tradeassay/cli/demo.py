"""The command ``demo``: accounts of known nature, a model's recorded answers, a famous index, one page. No key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, say

if TYPE_CHECKING:
    from tradeassay.assay.verdict import Assay
    from tradeassay.runs import Run

_TALKING = "ktdfin-v1"
_RECORDED = "recorded/qwen2.5-coder-1.5b"
_TITLE = "Is it skill?"


@click.command()
@opt.out
@opt.workers
@json_option
def demo(out: Path, workers: int | None, as_json: bool) -> None:
    """Judge six accounts of known nature, a recorded model and a famous index, and name a page to open.

    The six trade one synthetic market, the first of those of ``assay self-test``: what each truly is stands
    beside what is said of it, right or wrong. The model's answers are recorded ones
    (Qwen2.5-Coder-1.5B) where the recordings are installed, otherwise those of a program that answers like a
    language model. The index is the Nasdaq against the S&P 500. No model is asked.
    """
    import msgspec
    import pandas as pd

    from tradeassay.assay.judge import assay
    from tradeassay.assay.planted import answer_key
    from tradeassay.assay.verdict import OwnAccount, VerdictConfig
    from tradeassay.data.markets import MARKETS, read_market
    from tradeassay.report import write_html

    config = VerdictConfig(portfolios=1_000)
    planted = answer_key(config)
    if not as_json:
        _show_key(planted)
    played = _model_run(out, workers)
    labels = tuple(sorted({episode.label for episode in played.episodes if episode.by_model}))
    model = assay(played, config, agents=labels)
    # Of the model's accounts the one is shown where it saw names and dates.
    seen = next((one for one in model.agents if one.mask == "bright"), model.agents[0])
    returns = pd.Series(read_market("nasdaq", [MARKETS["nasdaq"].last]).returns, name="return")
    famous = assay(OwnAccount(returns=returns, against="sp500", title="The Nasdaq (1999 to 2018)"), config)
    titles = {seen.cell: "A language model, its recorded answers played again (KTD-Fin)"}
    titles |= {one.cell: "A famous index, against the S&P 500" for one in famous.agents}
    shown = msgspec.structs.replace(
        planted,
        title=_TITLE,
        agents=(*planted.agents, seen, *famous.agents),
        badges=model.badges,
        titles=planted.titles | titles,
        notes=famous.notes,
    )
    page = write_html(shown, out / "demo.html")
    if as_json:
        print_json({"assay": shown, "page": page, "run": played.folder})
        return
    for one in shown.agents[len(planted.agents) :]:
        click.echo(f"\n{shown.titles[one.cell]}:\n  {one.verdict.sentence}")
    say(f"\nopen this page: {page.resolve()}")
    say("your own result: tradeassay assay YOUR.csv    more: tradeassay start")


def _show_key(planted: Assay) -> None:
    """Print one line per account: what it truly is, what is said of it, and whether that is right."""
    from tradeassay.core.screen import StackedTable, stdout
    from tradeassay.report.numbers import difference

    right = sum(one.verdict.kind in planted.key[one.agent].deserves for one in planted.agents)
    many = len(planted.agents)
    click.echo(
        f"{_TITLE} {many} accounts of known nature on one synthetic market: {right} of {many} verdicts right."
    )
    rows = []
    for one in planted.agents:
        known = planted.key[one.agent]
        good = one.verdict.kind in known.deserves
        made = "none" if one.total.value is None else difference(one.total.value)
        rows.append((known.is_truly, made, one.verdict.label, "right" if good else "WRONG"))
    stdout().print(StackedTable(("it truly is", ">return", "verdict", ""), rows, ruled=False))


def _model_run(out: Path, workers: int | None) -> Run:
    """Play a real model's recorded answers again, with names shown and hidden, or a scripted model where no
    recording is installed."""
    import msgspec

    from tradeassay.api import make_spec
    from tradeassay.core.errors import TradeassayError
    from tradeassay.runs import Asking, Run, run
    from tradeassay.runs.store.archive import find_recording, open_recording, recorded_spec

    try:
        opened = open_recording(find_recording(_RECORDED, _TALKING))
        recorded: Any = recorded_spec(opened.folder)
        kept = {"mask": ("bright", "blinded"), "mode": "fixed-candidate"}
        kept["max_tokens"] = recorded.protocol["max_tokens"]
        spec = msgspec.structs.replace(recorded, slug="demo-model", protocol=kept)
        asking = Asking(replay=True, cassettes=opened.folder)
    except TradeassayError as error:
        say(f"a scripted model plays: {error}")
        spec = make_spec(_TALKING, agents=[], models=["scripted/sensible"], windows="W4", slug="demo-scripted")
        asking = Asking()
    done = run(spec, out / spec.slug, workers=workers, progress="none", asking=asking)
    assert isinstance(done, Run)
    return done
