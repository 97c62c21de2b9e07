"""Define the command ``demo``: a page about known accounts, a recorded model and a famous index.

The command needs no key.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, say
from tradeassay_bench.cli import _run_options as run_opt

if TYPE_CHECKING:
    from tradeassay.verdict import Assay
    from tradeassay_bench.runs import Run

_TALKING = "ktdfin-v1"
RECORDED = "recorded/qwen2.5-coder-1.5b"
_TITLE = "Is it skill?"


@click.command()
@run_opt.out
@opt.workers
@json_option
def demo(out: Path, workers: int | None, as_json: bool) -> None:
    """Judge six accounts of known nature, a recorded model and a famous index, and write a page.

    The six accounts trade one synthetic market, the first of ``assay self-test``. The page shows
    their true nature next to the verdict. If the recordings are installed, the model is
    Qwen2.5-Coder-1.5B with its recorded answers. Otherwise a script answers in place of a model.
    The index is the Nasdaq, compared with the S&P 500. No model is queried.
    """
    import msgspec
    import pandas as pd

    from tradeassay.reference import BENCHMARKS, read_benchmark
    from tradeassay.verdict import OwnAccount, VerdictConfig
    from tradeassay_bench.examine.judge import assay
    from tradeassay_bench.examine.planted import answer_key
    from tradeassay_bench.report import write_html

    config = VerdictConfig(portfolios=1_000)
    planted = answer_key(config)
    if not as_json:
        show_key(planted)
    played = model_run(out, workers)
    labels = tuple(sorted({episode.label for episode in played.episodes if episode.by_model}))
    model = assay(played, config, agents=labels)
    # Show the account in which the model saw names and dates.
    bright = next((agent for agent in model.agents if agent.mask == "bright"), model.agents[0])
    returns = pd.Series(
        read_benchmark("nasdaq", [BENCHMARKS["nasdaq"].last]).returns, name="return"
    )
    famous = assay(
        OwnAccount(returns=returns, benchmark="sp500", title="The Nasdaq (1999 to 2018)"), config
    )
    titles = {bright.setting: "A language model, replayed from its recorded answers (KTD-Fin)"}
    titles |= {
        agent.setting: "A famous index, compared with the S&P 500" for agent in famous.agents
    }
    judged = msgspec.structs.replace(
        planted,
        title=_TITLE,
        agents=(*planted.agents, bright, *famous.agents),
        badges=model.badges,
        titles=planted.titles | titles,
        notes=famous.notes,
    )
    page = write_html(judged, out / "demo.html")
    if as_json:
        print_json({"assay": judged, "page": page, "run": played.folder})
        return
    for agent in judged.agents[len(planted.agents) :]:
        click.echo(f"\n{judged.titles[agent.setting]}:\n  {agent.verdict.sentence}")
    say(f"\nopen this page: {page.resolve()}")
    say("for your own result: tradeassay assay YOUR.csv    more: tradeassay start")


def show_key(planted: Assay) -> None:
    """Print the true nature and the verdict of each account, and whether the verdict is right."""
    from tradeassay.core.screen import StackedTable, stdout
    from tradeassay.report.numbers import difference

    correct = 0
    rows = []
    for agent in planted.agents:
        truth = planted.key[agent.agent]
        is_right = agent.verdict.kind in truth.deserves
        correct += is_right
        total = "none" if agent.total.value is None else difference(agent.total.value)
        mark = "right" if is_right else "WRONG"
        rows.append((truth.is_truly, total, agent.verdict.label, mark))
    count = len(planted.agents)
    click.echo(
        f"{_TITLE} {count} accounts of known nature on one synthetic market: {correct} of {count} "
        "verdicts right."
    )
    stdout().print(StackedTable(("it truly is", ">return", "verdict", ""), rows, ruled=False))


def model_run(out: Path, workers: int | None) -> Run:
    """Return a run with a real model's recorded answers, with names shown and hidden.

    If no recording is installed, the run uses a scripted model.
    """
    import msgspec

    from tradeassay.core.errors import TradeassayError
    from tradeassay_bench.api import make_spec
    from tradeassay_bench.runs import Asking, Run, run
    from tradeassay_bench.runs.store.archive import find_recording, open_recording, recorded_spec

    try:
        opened = open_recording(find_recording(RECORDED, _TALKING))
        recorded: Any = recorded_spec(opened.folder)
        settings = {"mask": ("bright", "blinded"), "mode": "fixed-candidate"}
        settings["max_tokens"] = recorded.protocol["max_tokens"]
        spec = msgspec.structs.replace(recorded, name="demo-model", protocol=settings)
        asking = Asking(replay=True, recordings=opened.folder)
    except TradeassayError as error:
        say(f"using a scripted model: {error}")
        spec = make_spec(
            _TALKING, agents=[], models=["scripted/sensible"], windows="W4", name="demo-scripted"
        )
        asking = Asking()
    played = run(spec, out / spec.name, workers=workers, progress="none", asking=asking)
    assert isinstance(played, Run)
    return played
