"""Run the probe: the same pairs under every mask, shown to every attacker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.core.arrays import Days, Ints
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, above, not_scored
from tradeassay.core.registry import refuse_unknown
from tradeassay.metrics import rate_measure
from tradeassay.metrics.intervals import significant
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.benchmarks.ktdfin import Ktdfin
from tradeassay_bench.core.drive import adrive
from tradeassay_bench.data import Snapshot, load_dataset
from tradeassay_bench.examine.asking import Asker, AskOne
from tradeassay_bench.examine.probe.payloads import (
    METRICS,
    PROGRAMS,
    WITH_ARCHIVE,
    Probe,
    ProbeAnswer,
    ProbeBound,
    ProbeConfig,
    ProbePayload,
    ProbeReport,
    ProbeRow,
    draw_probes,
    make_payloads,
    windows_of,
)
from tradeassay_bench.examine.probe.programs import (
    ATTACKERS,
    AttackerAnswer,
    Guess,
    PriceArchive,
    interrogate,
)
from tradeassay_bench.llm import ModelParams, QuestionPlace
from tradeassay_bench.masking import Level
from tradeassay_bench.play.episode import addressed
from tradeassay_bench.runs.spec.episode import Asking, protocol_of


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
    """Try to recover stocks and days from masked payloads, and return the report.

    ``attackers`` are models (``scripted/...``, ``openai/...``). All programs (:data:`PROGRAMS`) are
    always added. Models' answers are recorded in the folder ``asking.recordings``. With
    ``asking.replay`` they are read from that folder only. ``listen`` is called after every answer
    of a model with the attacker, the number of answers and their total.

    Raises :class:`~tradeassay.core.errors.UserError` for an unknown attacker, a missing key, a
    benchmark without masks, or a cap on a model whose price is unknown, and
    :class:`~tradeassay_bench.core.errors.ModelError` if a model does not answer.
    """
    config, asker = config or ProbeConfig(), Asker(asking, home)
    played = benchmarks.get(benchmark) if isinstance(benchmark, str) else benchmark
    if not issubclass(protocol_of(played), Ktdfin):
        raise UserError(
            f"benchmark '{played.id}' has no masks",
            hint="choose a benchmark with masks, e.g. ktdfin-v1",
        )
    snapshot = (
        dataset if isinstance(dataset, Snapshot) else load_dataset(dataset or played.dataset, home)
    )
    names = tuple(dict.fromkeys((*attackers, *PROGRAMS)))
    models = [name for name in names if "/" in name]
    for name in names:
        if name in models:
            asker.check(name)
        else:
            refuse_unknown(
                name, ATTACKERS, f"no attacker '{name}'", f"programs: {', '.join(ATTACKERS)}"
            )
    archive = PriceArchive.of(snapshot)
    probes = draw_probes(played, snapshot, config)
    sectors = {one.sector for one in archive.instruments if one.sector}
    boards = tuple(dict.fromkeys(probe.board for probe in probes))
    inside: set[int] = set()
    for _, *days in windows_of(played, snapshot, config.windows):
        inside.update(snapshot.rows(*days))
    chance = random_baseline(probes, np.array(sorted(inside)), len(sectors), len(boards))
    shown = {
        variant: make_payloads(played, snapshot, probes, variant, config)
        for variant in config.variants
    }
    whole, done = len(models) * len(shown) * len(probes), 0

    def answered(attacker: str) -> None:
        nonlocal done
        done += 1
        if listen is not None:
            listen(attacker, done, whole)

    said = asyncio.run(_ask_all(models, shown, config, asker, answered)) if models else {}
    rows: list[ProbeRow] = []
    answers: list[ProbeAnswer] = []
    for (mask, hardening), payloads in shown.items():
        for name in names:
            if name in models:
                told = said[name, (mask, hardening)]
            else:
                told = [AttackerAnswer(one) for one in ATTACKERS[name](archive, payloads)]
            found = [
                hits(one.guess, probe, snapshot.sessions)
                for probe, one in zip(probes, told, strict=True)
            ]
            rows.append(
                make_row(name, (mask, hardening), probes, told, found, chance, config.level)
            )
            answers += [
                ProbeAnswer(
                    attacker=name,
                    mask=mask,
                    hardening=hardening,
                    number=probe.number,
                    symbol=probe.symbol,
                    session=probe.session,
                    **msgspec.structs.asdict(one.guess or Guess()),
                    hits=tuple(what for what, hit in right.items() if hit),
                    said=one.said,
                    wrong=one.wrong,
                )
                for probe, one, right in zip(probes, told, found, strict=True)
            ]
    notes = [f"match: {PROGRAMS['match']}; its archive contains every displayed series"]
    if snapshot.facts.kind == "synthetic":
        notes.append(
            "the data is synthetic: a model cannot have seen it, and its hits are chance or leaks"
        )
    if not models:
        notes.append("no model was asked")
    return ProbeReport(
        benchmark=played.id,
        dataset=snapshot.name,
        config=config,
        windows=tuple(dict.fromkeys(probe.window for probe in probes)),
        boards=boards,
        random=chance,
        rows=tuple(rows),
        usd=asker.usd if models else 0.0,
        notes=tuple(notes),
        answers=tuple(answers),
        bounds=tuple(bounds(rows, chance)),
    )


def bounds(rows: Sequence[ProbeRow], chance: dict[str, Measure]) -> Iterator[ProbeBound]:
    """Yield the best result of any attacker for every mask, without and with the price archive."""
    for mask, hardening in dict.fromkeys((row.mask, row.hardening) for row in rows):
        against = [row for row in rows if (row.mask, row.hardening) == (mask, hardening)]
        for archive in (False, True):
            allowed = [row for row in against if archive or row.attacker not in WITH_ARCHIVE]
            for metric in ("top_1", "top_5", "date_1", "date_7", "date_30"):
                best = max(allowed, key=lambda row: row.of_all[metric].value or 0.0)
                share = best.of_all[metric]
                yield ProbeBound(
                    mask=mask,
                    hardening=hardening,
                    metric=metric,
                    archive=archive,
                    attacker=best.attacker,
                    share=share,
                    times_chance=significant((share.value or 0.0) / (chance[metric].value or 1.0)),
                )


async def _ask_all(
    models: Sequence[str],
    shown: dict[tuple[Level, str], tuple[ProbePayload, ...]],
    config: ProbeConfig,
    asker: Asker,
    answered: Callable[[str], None],
) -> dict[tuple[str, tuple[Level, str]], list[AttackerAnswer]]:
    """Send the generators' questions to the models and return the answers.

    ``answered`` is called after every answer.
    """
    found = {}
    for name in models:
        async with asker.open(name, ModelParams(max_tokens=1024)) as ask:

            async def told(
                payload: ProbePayload, episode: str, name: str = name, ask: AskOne = ask
            ) -> AttackerAnswer:
                place = QuestionPlace(
                    episode=episode, step=payload.number, sample=config.seed, index=0
                )
                answer = await adrive(addressed(interrogate(payload), place), ask)
                answered(name)
                return answer

            for (mask, hardening), payloads in shown.items():
                asked = (told(payload, f"probe-{mask}-{hardening}") for payload in payloads)
                found[name, (mask, hardening)] = list(await asyncio.gather(*asked))
    return found


# Counting hits: seven questions and the joint one, each with Wilson's interval, compared with
# chance.

_TOLERANCES = (1, 7, 30)


def hits(guess: Guess | None, probe: Probe, sessions: Days) -> dict[str, bool | None]:
    """Return whether a guess is correct, for each question; None without an answer."""
    guess = guess or Guess()
    names = [_plain(ticker) for ticker in guess.tickers[:5]]
    truth = _plain(probe.symbol)
    stock = [truth in names[:count] if names else None for count in (1, 5)]
    away = None if guess.date is None else sessions_apart(guess.date, probe.row, sessions)
    days = [
        None if guess.date is None else (away is not None and away <= limit)
        for limit in _TOLERANCES
    ]
    both = None if stock[1] is None or days[1] is None else stock[1] and days[1]
    words = [
        None if said is None else true is not None and said.strip().casefold() == true.casefold()
        for said, true in ((guess.sector, probe.sector), (guess.board, probe.board))
    ]
    return dict(zip(METRICS, (*stock, *days, *words, both), strict=True))


def sessions_apart(guess: str, row: int, sessions: Days) -> int | None:
    """Return the distance of a guessed day from the session in ``row``, in sessions.

    Returns None if the guess is not a day.
    """
    try:
        day = np.datetime64(date.fromisoformat(guess), "D")
    except ValueError:
        return None
    after = int(np.searchsorted(sessions, day))
    # Outside the archive, five of seven days are sessions.
    if after == sessions.size:
        return sessions.size - 1 - row + round(int((day - sessions[-1]).astype(int)) * 5.0 / 7.0)
    before = round(int((sessions[0] - day).astype(int)) * 5.0 / 7.0) if day < sessions[0] else 0
    near = [after] if after == 0 or sessions[after] == day else [after - 1, after]
    return min(abs(place - row) for place in near) + before


def make_row(
    attacker: str,
    variant: tuple[str, str],
    probes: Sequence[Probe],
    told: Sequence[AttackerAnswer],
    found: Sequence[dict[str, bool | None]],
    chance: dict[str, Measure],
    level: float,
) -> ProbeRow:
    """Return the hit rates of an attacker against one mask.

    ``told`` contains the attacker's answers, ``found`` the result of :func:`hits` for each answer.
    """

    def rate(outcomes: Sequence[bool | None], nothing: str = "this was never answered") -> Measure:
        return rate_measure(sum(map(bool, outcomes)), len(outcomes), nothing=nothing, level=level)

    answered = [one.guess is not None and bool(one.guess.tickers or one.guess.date) for one in told]
    scored = [name for name in METRICS if chance[name].value is not None]
    of_all = {name: rate([one[name] for one in found]) for name in scored}
    none = {name: chance[name] for name in METRICS if name not in scored}
    strata: dict[str, list[bool | None]] = {}
    for kind in ("window", "board"):
        for one, probe in zip(found, probes, strict=True):
            strata.setdefault(f"{kind} {getattr(probe, kind)}", []).append(one["top_1"])
    return ProbeRow(
        attacker=attacker,
        kind="model" if "/" in attacker else "program",
        mask=variant[0],
        hardening=variant[1],
        probes=len(probes),
        response=rate(answered, "nothing was asked"),
        conditional={
            name: rate([one[name] for one in found if one[name] is not None]) for name in scored
        }
        | none,
        of_all=of_all | none,
        above_random={name: above(of_all[name], chance[name].value or 0.0) for name in scored},
        strata={name: rate(right) for name, right in strata.items()},
    )


def random_baseline(
    probes: Sequence[Probe], inside: Ints, sectors: int, boards: int
) -> dict[str, Measure]:
    """Return the result of blind guessing: a name, a day, a sector and a board.

    The name is drawn from the day's universe. The day is drawn from the windows, whose rows are
    ``inside`` and public. With fewer than two sectors or boards there is no choice, and the
    question is not scored.
    """
    rows = np.array([probe.row for probe in probes])
    names = np.array([probe.names for probe in probes], dtype=np.float64)
    near = {limit: (np.abs(rows[:, None] - inside) <= limit).mean(axis=1) for limit in _TOLERANCES}
    five = np.minimum(5.0, names) / names
    one_of = [np.full(rows.size, 1.0 / max(1, count)) for count in (sectors, boards)]
    values = (1.0 / names, five, near[1], near[7], near[30], *one_of, five * near[7])
    chance = {
        name: Measure(
            value=significant(float(np.mean(value))), n=len(probes), note="exact: chance alone"
        )
        for name, value in zip(METRICS, values, strict=True)
    }
    for name, count in (("sector", sectors), ("board", boards)):
        if count < 2:
            chance[name] = not_scored(
                f"the data has only one {name}" if count else f"the data has no {name}s"
            )
    return chance


def _plain(ticker: str) -> str:
    """Return a ticker in upper case, without the exchange of a Chinese code (600519.SH)."""
    plain = ticker.strip().upper().lstrip("$")
    digits = "".join(char for char in plain if char.isdigit())
    return digits if len(digits) == 6 and len(plain) in (8, 9) else plain
