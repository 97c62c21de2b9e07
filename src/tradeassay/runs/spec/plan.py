"""What a run would take, before it is started: episodes, sessions, decisions, seconds, disk, calls, dollars.

The estimate is measured: the first sessions of every agent are played in memory, and nothing is written except a
data set that has to be generated. Agents whose answers cost something are not asked. A model's conversation is
played for a few days with the scripted model that does everything right, and its prompts are measured; how much a
real model writes, and how fast, is assumed, unless earlier runs of the same conversation with the same model say
so."""

from __future__ import annotations

import time
from collections import Counter
from itertools import islice
from pathlib import Path

import msgspec

from tradeassay.agents import check_agent, make_agent
from tradeassay.agents.model import NAME as MODEL
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.agent import CostlyAgent
from tradeassay.core.arguments import path_from
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.drive import fault_of
from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.executors.task import cores, one_thread
from tradeassay.core.measure import plain_sum
from tradeassay.data import Snapshot
from tradeassay.llm import estimate_request, load_prices, parse_name, scripted_models
from tradeassay.llm.budget import estimate_reply
from tradeassay.llm.tables import Tokens, own_file, price_line
from tradeassay.metrics import Design, PowerSummary, power_summary
from tradeassay.play import Asked
from tradeassay.play.dialogue_log import Spending, total
from tradeassay.play.journal import encode_line
from tradeassay.runs.play.episodes import conversation, steps
from tradeassay.runs.play.trading import prepare_tasks
from tradeassay.runs.spec.episode import (
    Asking,
    EpisodeSpec,
    asking_of,
    expand,
    model_config,
    params_for,
    refuse_bad_models,
)
from tradeassay.runs.spec.run_spec import RunSpec
from tradeassay.runs.store.folder import RunFolder, read_timing
from tradeassay.runs.store.manifest import describe, played_as, snapshot_for, windows_by_cell
from tradeassay.runs.store.outcome import Outcome

SAMPLE = 12
"""Sessions played to measure an agent; the first is a warm-up and not timed."""
_SCORING = 0.35
"""Seconds to score one episode with a thousand resamples."""
_START = 1.5
"""Seconds to start worker processes."""


SAMPLE_DAYS = 20
"""Days of a conversation that are measured; the first days, when everything is bought, are the longest."""
OUTPUT_PER_CALL = 400
"""Tokens a real model is assumed to write per answer, at least; its own limit if that is lower."""
SECONDS_PER_CALL = 2.0
TOKENS_PER_SECOND = 60.0
"""How fast a real model is assumed to answer."""


class PlannedCell(msgspec.Struct, frozen=True, kw_only=True):
    """One agent on one benchmark and data set, over all seeds. ``seconds`` is processor time, ``bytes`` the size
    of the journals; both None where the agent was not asked, and ``note`` says why. For a model there are its
    calls, tokens, dollars (None: price unknown) and the hours that its episodes take at the allowed concurrency.
    """

    benchmark: str
    dataset: str
    agent: str
    baseline: bool
    episodes: int
    sessions: int
    decisions: int
    seconds: float | None
    bytes: int | None
    note: str | None = None
    cell: str = ""
    model: str | None = None
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    hours: float | None = None
    source: str | None = None

    def words(self) -> str:
        money = "price unknown" if self.usd is None else f"${self.usd:,.2f}"
        tokens = f"{self.input_tokens:,} tokens in, {self.output_tokens:,} out"
        known = "" if self.source is None else f" ({self.source})"
        return f"{self.model_calls:,} calls, {tokens}, {money}, about {self.hours or 0.0:,.2f} h{known}"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A run's size. ``seconds`` is wall time on ``workers``; ``usd`` is None when a model's price is unknown.
    ``power_summary`` says for every cell what its sessions and seeds can show, assuming that sessions are
    independent and half of the variance is common to all seeds."""

    slug: str
    cells: tuple[PlannedCell, ...]
    episodes: int
    sessions: int
    decisions: int
    workers: int
    seconds: float
    bytes: int
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    hours: float = 0.0
    power_summary: dict[str, PowerSummary] = {}

    def rows(self) -> list[tuple[str, str]]:
        models: list[tuple[str, str]] = []
        if self.model_calls:
            known = plain_sum(cell.usd or 0.0 for cell in self.cells)
            unknown = sorted({str(cell.model) for cell in self.cells if cell.model_calls and cell.usd is None})
            money = f"${known:,.2f}" + (f", and the price of {', '.join(unknown)} is unknown" if unknown else "")
            models = [
                ("tokens", f"about {self.input_tokens:,} in, {self.output_tokens:,} out"),
                ("dollars", money),
                *((f"for the price, into {own_file()}", price_line(name)) for name in unknown),
                ("hours of asking", f"about {self.hours:,.2f}"),
                *((f"{cell.cell}, {cell.agent}", cell.words()) for cell in self.cells if cell.model_calls),
            ]
        return [
            ("episodes", f"{self.episodes:,}"),
            ("sessions", f"{self.sessions:,}"),
            ("decisions", f"{self.decisions:,}"),
            ("calls to a model", f"{self.model_calls:,}"),
            *models,
            ("time", f"about {self.seconds:,.0f} s on {self.workers} workers"),
            ("disk", f"about {self.bytes / 1e6:,.1f} MB"),
            *((f"{cell.cell or cell.benchmark}, {cell.agent}", cell.note) for cell in self.cells if cell.note),
            *((f"{cell}, what it can show", seen.sentence) for cell, seen in self.power_summary.items()),
        ]


def plan(
    spec: RunSpec,
    *,
    workers: int | None = None,
    home: Path | str | None = None,
    asking: Asking | None = None,
    runs: Path | None = None,
) -> Plan:
    """Measure what a run would take; raises :class:`~tradeassay.core.errors.UserError` as :func:`run` would. What
    models took in earlier ``runs`` (a folder of them) goes before what would have to be assumed."""
    asking = asking_of(asking)
    groups: dict[tuple[str, str], list[EpisodeSpec]] = {}
    expanded = expand(spec)
    refuse_bad_models(expanded, msgspec.structs.replace(asking, replay=True))
    for episode in expanded:
        check_agent(episode.agent.name, episode.agent.params)
        groups.setdefault((episode.cell, episode.label), []).append(episode)
    where = None if home is None else str(path_from("home", home))
    with one_thread():
        cells = tuple(_cell(spec, episodes, where, asking, runs) for episodes in groups.values())
    count = workers or cores()
    episodes = sum(cell.episodes for cell in cells)
    playing = plain_sum(cell.seconds or 0.0 for cell in cells)
    scoring = episodes * _SCORING * spec.bootstrap.draws / 1000
    talking = [cell for cell in cells if cell.model is not None]
    # All models together share the allowed concurrency, and the slowest sets the least that they take.
    work = plain_sum((cell.hours or 0.0) * min(asking.concurrency, cell.episodes) for cell in talking)
    places = min(asking.concurrency, sum(cell.episodes for cell in talking))
    hours = max([work / places if places else 0.0, *(cell.hours or 0.0 for cell in talking)])
    found: dict[str, PowerSummary] = {}
    for name in dict.fromkeys(cell.cell for cell in cells):
        compared = [cell for cell in cells if cell.cell == name and not cell.baseline]
        if compared:
            design = Design(
                sessions=compared[0].sessions,
                seeds=max(cell.episodes for cell in compared),
                level=spec.bootstrap.level,
                comparisons=len(compared),
                periods_per_year=benchmarks.get(compared[0].benchmark).periods_per_year,
            )
            found[name] = power_summary(design)
    return Plan(
        slug=spec.slug,
        cells=cells,
        episodes=episodes,
        sessions=sum(cell.sessions * cell.episodes for cell in cells),
        decisions=sum(cell.decisions for cell in cells),
        workers=count,
        seconds=round((playing + scoring) / count + (_START if count > 1 else 0.0) + hours * 3600, 2),
        bytes=sum(cell.bytes or 0 for cell in cells),
        model_calls=sum(cell.model_calls for cell in talking),
        input_tokens=sum(cell.input_tokens for cell in talking),
        output_tokens=sum(cell.output_tokens for cell in talking),
        usd=None if any(cell.usd is None for cell in talking) else plain_sum(cell.usd or 0.0 for cell in talking),
        hours=round(hours, 4),
        power_summary=found,
    )


def _cell(
    spec: RunSpec, episodes: list[EpisodeSpec], home: str | None, asking: Asking, runs: Path | None
) -> PlannedCell:
    first = episodes[0]
    plain = played_as(benchmarks.get(first.benchmark), first, spec)
    task = prepare_tasks(episodes, {first.benchmark: plain}, home)[first.dataset]
    entry = describe(task)
    named = windows_by_cell((first,), {first.dataset: entry}).get(first.cell)
    benchmark = played_as(plain, first, spec, named)
    snapshot = snapshot_for(first.dataset, home, entry.sha256)
    sessions = len(snapshot.rows(benchmark.market.first, benchmark.market.last))
    cell = PlannedCell(
        benchmark=first.benchmark,
        dataset=first.dataset,
        agent=first.label,
        baseline=any(episode.baseline for episode in episodes),
        episodes=len(episodes),
        sessions=sessions,
        decisions=sessions * len(episodes),
        seconds=None,
        bytes=None,
        cell=first.cell,
    )
    if first.by_model and first.agent.name != MODEL:
        return msgspec.structs.replace(cell, note="not measured: a foreign agent takes what it takes")
    agent = None if first.by_model else make_agent(first.agent.name, first.agent.params)
    if isinstance(agent, CostlyAgent):
        return msgspec.structs.replace(cell, note="not measured: its answers cost something")
    try:
        if agent is None:
            return measure_conversation(cell, first, benchmark, snapshot, asking, runs)
        size, count, began = 0, 0, time.perf_counter()
        for record in islice(steps(snapshot, benchmark, first, agent), SAMPLE):
            began = began if count else time.perf_counter()
            size, count = size + len(encode_line(record)) + 1, count + 1
    except Exception as error:  # an exception here would only make the agent's episodes fail
        return msgspec.structs.replace(cell, note=f"would fail: {fault_of(error)!s}")
    a_day = (time.perf_counter() - began) / (count - 1) if count > 1 else 0.0
    taken, written = round(a_day * cell.decisions, 3), round(size / count * cell.decisions)
    return msgspec.structs.replace(cell, seconds=taken, bytes=written)


def measured_before(folder: Path, episode: EpisodeSpec) -> tuple[int, int, Spending, float | None] | None:
    """Return in how many runs of a folder this conversation with this model was played, for how many days, what
    they took in all, and the seconds of a day where live ones were timed; None if in no run."""
    spent, seconds, timed, days, runs = Spending(), 0.0, 0, 0, 0
    wanted = (episode.benchmark, episode.model, episode.protocol)
    for manifest in sorted(folder.glob("*/manifest.json")):
        place = RunFolder(manifest.parent)
        try:
            played = msgspec.json.decode(manifest.read_bytes(), type=_Episodes).episodes
        except (OSError, *UNDECODABLE):  # somebody else's file
            continue
        timing, earlier = read_timing(place.timing), days
        for other in played:
            if (other.benchmark, other.model, other.protocol) != wanted:
                continue
            try:
                ended = msgspec.json.decode(place.outcome(other.key).read_bytes(), type=Outcome)
            except (OSError, *UNDECODABLE):
                continue
            if ended.status != "done" or ended.spending is None or not ended.steps:
                continue
            spent, days = total((spent, ended.spending)), days + ended.steps
            if ended.answers == "live" and len(timing.starts) == 1 and other.key in timing.episodes:
                seconds, timed = seconds + timing.episodes[other.key], timed + ended.steps
        runs += days > earlier
    return (runs, days, spent, seconds / timed if timed else None) if days else None


def measure_conversation(
    cell: PlannedCell,
    episode: EpisodeSpec,
    benchmark: Benchmark,
    snapshot: Snapshot,
    asking: Asking,
    runs: Path | None,
) -> PlannedCell:
    """Play a few days in memory and return a cell with what its days take; ``benchmark`` is as the episode plays
    it. What the runs in the folder ``runs`` took goes before what would have to be assumed."""
    began, play = time.perf_counter(), conversation(snapshot, benchmark, episode)
    play.open()
    scripted = scripted_models.get("sensible")()
    asked = Counter[str]()

    def answer(question: Asked[AskModel]) -> ModelReply:
        request = question.request
        reply = scripted.answer(request)
        asked.update(calls=1, input=estimate_request(request), output=estimate_reply(reply))
        # Every answer is written twice (cassette and dialogue), a question only as far as it is new.
        said = len(reply.text) + sum(len(call.arguments) for call in reply.calls)
        asked["characters"] += 2 * (said + (len(request.messages[-1].text) if request.messages else 0))
        return reply

    records = list(islice(play.records(answer), SAMPLE_DAYS))
    days, size = len(records), sum(len(encode_line(record)) + 1 for record in records)
    before = None if runs is None else measured_before(runs, episode)
    name = model_config(episode).model
    live = parse_name(name).route != "scripted"
    calls, written, output = asked["calls"] / days, asked["input"] / days, asked["output"] / days
    seconds, source = None, "prompts measured, answers assumed"
    if before is not None:
        count, known, spent, seconds = before
        calls, written, output = spent.calls / known, spent.input_tokens / known, spent.output_tokens / known
        speed = "" if seconds is not None or not live else "; their speed is assumed"
        source = f"as in {known:,} days of {count} earlier run(s){speed}"
    elif live:
        output = max(output, calls * min(OUTPUT_PER_CALL, params_for(episode, benchmark).max_tokens))
    if seconds is None or not live:
        seconds = calls * SECONDS_PER_CALL + output / TOKENS_PER_SECOND if live else 0.0
    price = load_prices(asking.prices).of(name)
    # A price that depends on the request's size is looked up per request, then scaled.
    per_call = Tokens(plain=round(written / calls), output=round(output / calls)) if calls else Tokens()
    usd = None if price is None else price.usd(per_call)
    playing = (time.perf_counter() - began) / min(SAMPLE_DAYS, cell.sessions)
    at_once = min(asking.concurrency, cell.episodes)
    return msgspec.structs.replace(
        cell,
        model=name,
        model_calls=round(calls * cell.decisions),
        input_tokens=round(written * cell.decisions),
        output_tokens=round(output * cell.decisions),
        usd=None if usd is None else round(usd * calls * cell.decisions, 4),
        source=source,
        hours=round(seconds * cell.decisions / at_once / 3600, 4),
        seconds=round(playing * cell.decisions, 3),
        bytes=round((size + asked["characters"]) / days * cell.decisions),
    )


class _Episodes(msgspec.Struct):
    """What is read of an earlier run's manifest."""

    episodes: tuple[EpisodeSpec, ...] = ()
