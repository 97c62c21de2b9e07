"""The probe: the same pairs under every mask, shown to every attacker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from tradeassay.assay.probe.payloads import Probe, ProbePayload, draw_probes, make_payloads, require_masks
from tradeassay.assay.probe.probe_result import ALWAYS, PROGRAMS, ProbeAnswer, ProbeConfig, ProbeReport, ProbeRow
from tradeassay.assay.probe.programs import AttackerAnswer, Guess, PriceArchive, interrogate, make_program
from tradeassay.assay.probe.score import hits, make_row, random_baseline
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.drive import adrive
from tradeassay.core.errors import ModelError
from tradeassay.data import Snapshot, load_dataset
from tradeassay.llm import (
    Access,
    Budget,
    CassetteStore,
    Model,
    ModelParams,
    QuestionPlace,
    check_model,
    load_prices,
    open_model,
)
from tradeassay.masking import Level
from tradeassay.play import Asked
from tradeassay.play.episode import NOBODY, addressed
from tradeassay.runs.spec.models import Asking


def probe_mask(
    benchmark: str | Benchmark = "ktdfin-v1",
    attackers: Sequence[str] = (),
    *,
    dataset: str | Snapshot | None = None,
    config: ProbeConfig | None = None,
    asking: Asking | None = None,
    home: Path | None = None,
    listen: Callable[[str, int, int], None] | None = None,
) -> ProbeReport:
    """Try to tell stocks and days from what a mask shows.

    ``attackers`` are models (``scripted/...``, ``openai/...``) and programs (:data:`PROGRAMS`); ``match``, which
    needs no model but only the price archive, is always among them. Models' answers are recorded in the folder
    ``asking.cassettes``, and with ``asking.replay`` taken from there alone. ``listen`` is told after every answer
    of a model who answered, how many answers there are and how many there will be.
    Raises :class:`~tradeassay.core.errors.UserError` for an unknown attacker, a missing key, a benchmark without
    masks, or a cap on a model whose price is unknown, and :class:`ModelError` when a model is not reached.
    """
    config, asking = config or ProbeConfig(), asking or Asking()
    played = benchmarks.get(benchmark) if isinstance(benchmark, str) else benchmark
    require_masks(played)
    snapshot = dataset if isinstance(dataset, Snapshot) else load_dataset(dataset or played.dataset, home)
    names = tuple(dict.fromkeys((*attackers, ALWAYS)))
    access = Access(base_url=asking.base_url, prices=load_prices(asking.prices), home=home)
    if not asking.replay:
        for name in names:
            if "/" in name:
                check_model(name, access)
    archive = PriceArchive.of(snapshot)
    programs = {name: make_program(name, archive) for name in names if "/" not in name}
    probes = draw_probes(played, snapshot, config)
    sectors = {one.sector for one in archive.instruments if one.sector}
    boards = tuple(dict.fromkeys(probe.board for probe in probes))
    chance = random_baseline(probes, snapshot.sessions, len(sectors), len(boards))
    shown = {variant: make_payloads(played, snapshot, probes, variant, config) for variant in config.variants}
    models = [name for name in names if "/" in name]
    budget = Budget(asking.max_usd)
    progress = _Progress(len(models) * len(shown) * len(probes), listen)
    said = asyncio.run(_ask_all(models, shown, config, (asking, access, budget), progress)) if models else {}
    rows: list[ProbeRow] = []
    answers: list[ProbeAnswer] = []
    for variant, payloads in shown.items():
        for name in names:
            program = name in programs
            told = (
                [AttackerAnswer(one) for one in programs[name].guesses(payloads)]
                if program
                else said[name, variant]
            )
            guesses = [one.guess for one in told]
            kind: Literal["program", "model"] = "program" if program else "model"
            rows.append(make_row((name, kind), variant, probes, guesses, snapshot.sessions, chance, config.level))
            answers += [
                _answer(name, variant, probe, one, snapshot) for probe, one in zip(probes, told, strict=True)
            ]
    return ProbeReport(
        benchmark=played.id,
        dataset=snapshot.name,
        config=config,
        windows=tuple(dict.fromkeys(probe.window for probe in probes)),
        boards=boards,
        random=chance,
        rows=tuple(rows),
        usd=_spent(budget, models, asking.replay),
        notes=_notes(snapshot, models),
        answers=tuple(answers),
    )


def _answer(
    attacker: str, variant: tuple[Level, str], probe: Probe, answer: AttackerAnswer, snapshot: Snapshot
) -> ProbeAnswer:
    guess = answer.guess or Guess()
    return ProbeAnswer(
        attacker=attacker,
        mask=variant[0],
        hardening=variant[1],
        number=probe.number,
        symbol=probe.symbol,
        session=probe.session,
        tickers=guess.tickers,
        date=guess.date,
        sector=guess.sector,
        board=guess.board,
        hits=tuple(name for name, hit in hits(guess, probe, snapshot.sessions).items() if hit),
        said=answer.said,
        wrong=answer.wrong,
    )


class _Progress:
    """Counts answers, and tells whoever listens."""

    def __init__(self, whole: int, listen: Callable[[str, int, int], None] | None) -> None:
        self._whole, self._listen, self._done = whole, listen, 0

    def tell(self, attacker: str) -> None:
        self._done += 1
        if self._listen is not None:
            self._listen(attacker, self._done, self._whole)


Said = dict[tuple[str, tuple[Level, str]], list[AttackerAnswer]]


async def _ask_all(
    models: Sequence[str],
    shown: dict[tuple[Level, str], tuple[ProbePayload, ...]],
    config: ProbeConfig,
    how: tuple[Asking, Access, Budget],
    progress: _Progress,
) -> Said:
    asking, access, budget = how
    store = None if asking.cassettes is None else CassetteStore(asking.cassettes)
    found: Said = {}
    for name in models:
        async with open_model(
            name, ModelParams(max_tokens=1024), cassette=store, replay=asking.replay, budget=budget,
            connections=asking.concurrency, access=access,
        ) as model:  # fmt: skip
            for variant, payloads in shown.items():
                asked = (_ask(model, payload, variant, config, progress) for payload in payloads)
                found[name, variant] = list(await asyncio.gather(*asked))
    return found


async def _ask(
    model: Model, payload: ProbePayload, variant: tuple[Level, str], config: ProbeConfig, progress: _Progress
) -> AttackerAnswer:
    """Carry one interrogation between the generator and the model."""
    place = QuestionPlace(
        episode=f"probe-{variant[0]}-{variant[1]}", step=payload.number, sample=config.seed, index=0
    )

    async def answer(asked: Asked[AskModel]) -> ModelReply:
        reply = await model.ask(*asked)
        if reply.error_kind in NOBODY:
            # Nobody answered: a share of right answers would be about the line, not about the model.
            raise ModelError(f"{model.name} was not reached: {reply.error}", hint="try again; answers are kept")
        return reply

    found = await adrive(addressed(interrogate(payload), place), answer)
    progress.tell(model.name)
    return found


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
