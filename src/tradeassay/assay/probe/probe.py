"""The probe: the same pairs under every mask, shown to every attacker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tradeassay.assay.probe.payloads import ProbePayload, draw_probes, make_payloads, require_masks
from tradeassay.assay.probe.programs import Guess, PriceArchive, interrogate, make_program
from tradeassay.assay.probe.records import ALWAYS, PROGRAMS, ProbeConfig, ProbeReport, ProbeRow
from tradeassay.assay.probe.score import make_row, random_baseline
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.drive import adrive
from tradeassay.data import Snapshot, load_dataset
from tradeassay.llm import Budget, CassetteStore, Model, ModelParams, QuestionPlace, open_model
from tradeassay.masking import Level
from tradeassay.play.episode import addressed

_AT_ONCE = 8


def probe_mask(
    benchmark: str | Benchmark = "ktdfin-v1",
    attackers: Sequence[str] = (),
    *,
    dataset: str | Snapshot | None = None,
    config: ProbeConfig | None = None,
    max_usd: float | None = None,
    cassettes: Path | None = None,
    replay: bool = False,
    home: Path | None = None,
) -> ProbeReport:
    """Try to tell stocks and days from what a mask shows.

    ``attackers`` are models (``scripted/...``, ``openai/...``) and programs (:data:`PROGRAMS`); ``match``, which
    needs no model but only the price archive, is always among them. Models' answers are recorded in the folder
    ``cassettes``, and with ``replay`` taken from there alone; ``max_usd`` caps what all of them spend.
    Raises :class:`~tradeassay.core.errors.UserError` for an unknown attacker, a benchmark without masks, or a cap
    on a model whose price is unknown.
    """
    config = config or ProbeConfig()
    played = benchmarks.get(benchmark) if isinstance(benchmark, str) else benchmark
    require_masks(played)
    snapshot = dataset if isinstance(dataset, Snapshot) else load_dataset(dataset or played.dataset, home)
    names = tuple(dict.fromkeys((*attackers, ALWAYS)))
    archive = PriceArchive.of(snapshot)
    programs = {name: make_program(name, archive) for name in names if "/" not in name}
    probes = draw_probes(played, snapshot, config)
    sectors = {one.sector for one in archive.instruments if one.sector}
    boards = tuple(dict.fromkeys(probe.board for probe in probes))
    chance = random_baseline(probes, snapshot.sessions, len(sectors), len(boards))
    shown = {variant: make_payloads(played, snapshot, probes, variant, config) for variant in config.variants}
    models = [name for name in names if "/" in name]
    budget = Budget(max_usd)
    said = asyncio.run(_ask_all(models, shown, config, budget, cassettes, replay)) if models else {}
    rows: list[ProbeRow] = []
    for variant, payloads in shown.items():
        for name in names:
            guesses = programs[name].guesses(payloads) if name in programs else said[name, variant]
            kind = "program" if name in programs else "model"
            rows.append(
                make_row((name, kind), variant, probes, guesses, snapshot.sessions, chance, config.level)  # type: ignore[arg-type]  # one of two words
            )
    return ProbeReport(
        benchmark=played.id,
        dataset=snapshot.name,
        config=config,
        windows=tuple(dict.fromkeys(probe.window for probe in probes)),
        boards=boards,
        random=chance,
        rows=tuple(rows),
        usd=_spent(budget, models, replay),
        notes=_notes(snapshot, models),
    )


Said = dict[tuple[str, tuple[Level, str]], list[Guess | None]]


async def _ask_all(
    models: Sequence[str],
    shown: dict[tuple[Level, str], tuple[ProbePayload, ...]],
    config: ProbeConfig,
    budget: Budget,
    cassettes: Path | None,
    replay: bool,
) -> Said:
    store = None if cassettes is None else CassetteStore(cassettes)
    found: Said = {}
    for name in models:
        async with open_model(
            name, ModelParams(max_tokens=1024), cassette=store, replay=replay, budget=budget, connections=_AT_ONCE
        ) as model:
            for variant, payloads in shown.items():
                asked = (_ask(model, payload, variant, config) for payload in payloads)
                found[name, variant] = list(await asyncio.gather(*asked))
    return found


async def _ask(
    model: Model, payload: ProbePayload, variant: tuple[Level, str], config: ProbeConfig
) -> Guess | None:
    """Carry one interrogation between the generator and the model."""
    place = QuestionPlace(
        episode=f"probe-{variant[0]}-{variant[1]}", step=payload.number, sample=config.seed, index=0
    )
    return await adrive(addressed(interrogate(payload), place), lambda asked: model.ask(*asked))


def _spent(budget: Budget, models: Sequence[str], replay: bool) -> float | None:
    if not models or replay:
        return 0.0
    return None if budget.unpriced_calls else budget.spent_usd


def _notes(snapshot: Snapshot, models: Sequence[str]) -> tuple[str, ...]:
    notes = [f"{ALWAYS}: {PROGRAMS[ALWAYS]}; its archive holds every series that is shown"]
    if snapshot.facts.kind == "synthetic":
        notes.append("the data is synthetic: a model cannot have seen it, and its hits are chance or leaks")
    if not models:
        notes.append("no model was asked")
    return tuple(notes)
