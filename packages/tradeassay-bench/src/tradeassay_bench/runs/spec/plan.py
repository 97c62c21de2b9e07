"""Estimate a run before it starts: episodes, sessions, decisions, seconds, disk, calls and dollars.

The estimate is based on measurements. The first sessions of every agent run in memory, and nothing
is written except a data set that must be generated. Agents whose answers have a cost are not
queried.

To measure the prompts, a model's conversation runs for a few days with a scripted model that always
answers in the right format. The length and the speed of a real model's answers are assumptions,
unless there are earlier runs of the same conversation with the same model.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import msgspec

from tradeassay.core.arguments import path_from
from tradeassay.core.errors import UNDECODABLE
from tradeassay.metrics import Design, PowerSummary, power_summary
from tradeassay_bench.agents import check_agent, make_agent
from tradeassay_bench.agents.model import NAME as MODEL
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.core.agent import CostlyAgent
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.drive import fault_of
from tradeassay_bench.core.executors.task import cores, one_thread
from tradeassay_bench.data import Snapshot
from tradeassay_bench.llm import estimate_request, load_prices, parse_name, scripted_models
from tradeassay_bench.llm.budget import estimate_reply
from tradeassay_bench.llm.tables import Tokens, own_file, price_line
from tradeassay_bench.play import AddressedQuestion
from tradeassay_bench.play.dialogue_log import Spending, total
from tradeassay_bench.play.journal import encode_line
from tradeassay_bench.runs.play.episodes import model_episode, steps
from tradeassay_bench.runs.play.trading import prepare_tasks
from tradeassay_bench.runs.spec.episode import (
    Asking,
    EpisodeSpec,
    asking_or_default,
    expand,
    model_config,
    params_for,
    refuse_bad_models,
)
from tradeassay_bench.runs.spec.run_spec import RunSpec
from tradeassay_bench.runs.store.folder import RunFolder, read_timing
from tradeassay_bench.runs.store.manifest import (
    describe,
    played_as,
    snapshot_for,
    windows_by_setting,
)
from tradeassay_bench.runs.store.outcome import Outcome

SAMPLE = 12
"""The number of sessions for measuring an agent. The first session is a warm-up, not timed."""
_SCORING = 0.35
"""The assumed time to score one episode with a thousand resamples, in seconds."""
_START = 1.5
"""The assumed time to start the worker processes, in seconds."""


SAMPLE_DAYS = 20
"""The number of days of a conversation that are run.

The first days are the longest, because the agent buys its positions then. The estimate is
therefore high.
"""
OUTPUT_PER_CALL = 400
"""The assumed number of tokens per answer of a real model, unless its own limit is lower."""
SECONDS_PER_CALL = 2.0
"""The assumed latency of a real model, in seconds per call."""
TOKENS_PER_SECOND = 60.0
"""The assumed speed of a real model, in output tokens per second."""


class PlannedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """The estimate for one agent in one setting, over all seeds.

    ``seconds`` is processor time, and ``bytes`` is the size of the journals. Both are None if the
    agent was not measured, and ``note`` states the reason. For a model there are also calls,
    tokens, dollars (None if the price is unknown), and the hours of its episodes at the allowed
    concurrency. ``source`` states the basis of these numbers.
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
    setting: str = msgspec.field(name="cell", default="")
    model: str | None = None
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    hours: float | None = None
    source: str | None = None

    def words(self) -> str:
        """Return the calls, tokens, dollars and hours of a model as text."""
        money = "price unknown" if self.usd is None else f"${self.usd:,.2f}"
        tokens = f"{self.input_tokens:,} tokens in, {self.output_tokens:,} out"
        source = "" if self.source is None else f" ({self.source})"
        return (
            f"{self.model_calls:,} calls, {tokens}, {money}, about {self.hours or 0.0:,.2f} "
            f"h{source}"
        )


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated size, duration and cost of a run.

    ``seconds`` is wall time on ``workers`` processes. ``usd`` is None if a model's price is
    unknown. ``power_summary`` states for every setting the smallest skill that its sessions and
    seeds can detect. It assumes that sessions are independent and that half of the variance is
    common to all seeds.
    """

    name: str
    agents: tuple[PlannedAgent, ...] = msgspec.field(name="cells")
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
        """Return the rows of the plan for a terminal, each with a title and a text."""
        models: list[tuple[str, str]] = []
        if self.model_calls:
            spent = math.fsum(row.usd or 0.0 for row in self.agents)
            unpriced = sorted(
                {str(row.model) for row in self.agents if row.model_calls and row.usd is None}
            )
            money = f"${spent:,.2f}" + (
                f", and the price of {', '.join(unpriced)} is unknown" if unpriced else ""
            )
            models = [
                ("tokens", f"about {self.input_tokens:,} in, {self.output_tokens:,} out"),
                ("dollars", money),
                *((f"for the price, into {own_file()}", price_line(name)) for name in unpriced),
                ("hours of asking", f"about {self.hours:,.2f}"),
                *(
                    (f"{row.setting}, {row.agent}", row.words())
                    for row in self.agents
                    if row.model_calls
                ),
            ]
        return [
            ("episodes", f"{self.episodes:,}"),
            ("sessions", f"{self.sessions:,}"),
            ("decisions", f"{self.decisions:,}"),
            ("calls to a model", f"{self.model_calls:,}"),
            *models,
            ("time", f"about {self.seconds:,.0f} s on {self.workers} workers"),
            ("disk", f"about {self.bytes / 1e6:,.1f} MB"),
            *(
                (f"{row.setting or row.benchmark}, {row.agent}", row.note)
                for row in self.agents
                if row.note
            ),
            *(
                (f"{setting}, power", summary.sentence)
                for setting, summary in self.power_summary.items()
            ),
        ]


def plan(
    spec: RunSpec,
    *,
    workers: int | None = None,
    home: Path | str | None = None,
    asking: Asking | None = None,
    runs: Path | None = None,
) -> Plan:
    """Return the estimated size, duration and cost of a run.

    ``home`` is the root of the data store. ``runs`` is a folder of earlier runs, whose calls,
    tokens and times replace assumptions about models. Raises
    :class:`~tradeassay.core.errors.UserError` for a spec that cannot run.
    """
    asking = asking_or_default(asking)
    groups: dict[tuple[str, str], list[EpisodeSpec]] = {}
    expanded = expand(spec)
    refuse_bad_models(expanded, msgspec.structs.replace(asking, replay=True))
    for episode in expanded:
        check_agent(episode.agent.name, episode.agent.params)
        groups.setdefault((episode.setting, episode.label), []).append(episode)
    where = None if home is None else str(path_from("home", home))
    with one_thread():
        agents = tuple(
            _planned_agent(spec, episodes, where, asking, runs) for episodes in groups.values()
        )
    count = workers or cores()
    episodes = sum(row.episodes for row in agents)
    playing = sum(row.seconds or 0.0 for row in agents)
    scoring = episodes * _SCORING * spec.bootstrap.draws / 1000
    talking = [row for row in agents if row.model is not None]
    # All models share the allowed concurrency. The run takes at least as long as its slowest model.
    work = sum((row.hours or 0.0) * min(asking.concurrency, row.episodes) for row in talking)
    places = min(asking.concurrency, sum(row.episodes for row in talking))
    hours = max([work / places if places else 0.0, *(row.hours or 0.0 for row in talking)])
    power: dict[str, PowerSummary] = {}
    for name in dict.fromkeys(row.setting for row in agents):
        compared = [row for row in agents if row.setting == name and not row.baseline]
        if compared:
            design = Design(
                sessions=compared[0].sessions,
                seeds=max(row.episodes for row in compared),
                level=spec.bootstrap.level,
                comparisons=len(compared),
                periods_per_year=benchmarks.get(compared[0].benchmark).periods_per_year,
            )
            power[name] = power_summary(design)
    return Plan(
        name=spec.name,
        agents=agents,
        episodes=episodes,
        sessions=sum(row.sessions * row.episodes for row in agents),
        decisions=sum(row.decisions for row in agents),
        workers=count,
        seconds=round(
            (playing + scoring) / count + (_START if count > 1 else 0.0) + hours * 3600, 2
        ),
        bytes=sum(row.bytes or 0 for row in agents),
        model_calls=sum(row.model_calls for row in talking),
        input_tokens=sum(row.input_tokens for row in talking),
        output_tokens=sum(row.output_tokens for row in talking),
        usd=None
        if any(row.usd is None for row in talking)
        else math.fsum(row.usd or 0.0 for row in talking),
        hours=round(hours, 4),
        power_summary=power,
    )


def _planned_agent(
    spec: RunSpec, episodes: list[EpisodeSpec], home: str | None, asking: Asking, runs: Path | None
) -> PlannedAgent:
    """Run the first sessions of an agent and return its part of the plan.

    ``episodes`` contains the agent's episodes in one setting, one per seed.
    """
    first = episodes[0]
    plain = played_as(benchmarks.get(first.benchmark), first, spec)
    task = prepare_tasks(episodes, {first.benchmark: plain}, home)[first.dataset]
    entry = describe(task)
    named = windows_by_setting((first,), {first.dataset: entry}).get(first.setting)
    benchmark = played_as(plain, first, spec, named)
    snapshot = snapshot_for(first.dataset, home, entry.sha256)
    sessions = len(snapshot.rows(benchmark.market.first, benchmark.market.last))
    row = PlannedAgent(
        benchmark=first.benchmark,
        dataset=first.dataset,
        agent=first.label,
        baseline=any(episode.baseline for episode in episodes),
        episodes=len(episodes),
        sessions=sessions,
        decisions=sessions * len(episodes),
        seconds=None,
        bytes=None,
        setting=first.setting,
    )
    if first.by_model and first.agent.name != MODEL:
        return msgspec.structs.replace(
            row, note="not measured: the duration of an external agent is unknown"
        )
    agent = None if first.by_model else make_agent(first.agent.name, first.agent.params)
    if isinstance(agent, CostlyAgent):
        return msgspec.structs.replace(row, note="not measured: its answers have a cost")
    try:
        if agent is None:
            return measure_conversation(row, first, benchmark, snapshot, asking, runs)
        size, count, began = 0, 0, time.perf_counter()
        for record in islice(steps(snapshot, benchmark, first, agent), SAMPLE):
            began = began if count else time.perf_counter()
            size, count = size + len(encode_line(record)) + 1, count + 1
    except Exception as error:  # In the run, this exception would make the agent's episodes fail.
        return msgspec.structs.replace(row, note=f"would fail: {fault_of(error)!s}")
    seconds_per_day = (time.perf_counter() - began) / (count - 1) if count > 1 else 0.0
    seconds, written = (
        round(seconds_per_day * row.decisions, 3),
        round(size / count * row.decisions),
    )
    return msgspec.structs.replace(row, seconds=seconds, bytes=written)


def measured_before(
    folder: Path, episode: EpisodeSpec
) -> tuple[int, int, Spending, float | None] | None:
    """Return the cost of an episode's conversation with its model in earlier runs.

    ``folder`` contains the runs. The result is the number of runs, the number of days, the total
    spending, and the seconds per day (None if no live answers were timed). It is None if no run
    contains the conversation with the model.
    """
    spent, seconds, timed, days, runs = Spending(), 0.0, 0, 0, 0
    wanted = (episode.benchmark, episode.model, episode.protocol)
    for manifest in sorted(folder.glob("*/manifest.json")):
        place = RunFolder(manifest.parent)
        try:
            played = msgspec.json.decode(manifest.read_bytes(), type=_Episodes).episodes
        except (OSError, *UNDECODABLE):  # a file of a different program
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
    if not days:
        return None
    return runs, days, spent, seconds / timed if timed else None


def measure_conversation(
    row: PlannedAgent,
    episode: EpisodeSpec,
    benchmark: Benchmark,
    snapshot: Snapshot,
    asking: Asking,
    runs: Path | None,
) -> PlannedAgent:
    """Run a few days of a conversation in memory and return ``row`` with the estimated cost.

    ``benchmark`` is the benchmark with the options of the episode. Measurements from the runs in
    the folder ``runs`` replace assumptions.
    """
    began, play = time.perf_counter(), model_episode(snapshot, benchmark, episode)
    play.open()
    scripted = scripted_models.get("sensible")()
    totals = Counter[str]()

    def answer(question: AddressedQuestion[AskModel]) -> ModelReply:
        request = question.request
        reply = scripted.answer(request)
        totals.update(calls=1, input=estimate_request(request), output=estimate_reply(reply))
        # Every answer, and the new part of every question, is written to two files: the recording
        # and the dialogue.
        written_characters = len(reply.text) + sum(len(call.arguments) for call in reply.calls)
        totals["characters"] += 2 * (
            written_characters + (len(request.messages[-1].text) if request.messages else 0)
        )
        return reply

    records = list(islice(play.records(answer), SAMPLE_DAYS))
    days, size = len(records), sum(len(encode_line(record)) + 1 for record in records)
    before = None if runs is None else measured_before(runs, episode)
    name = model_config(episode).model
    live = parse_name(name).route != "scripted"
    calls, written, output = totals["calls"] / days, totals["input"] / days, totals["output"] / days
    seconds, source = None, "prompts measured, answers assumed"
    if before is not None:
        count, measured_days, spent, seconds = before
        calls, written, output = (
            spent.calls / measured_days,
            spent.input_tokens / measured_days,
            spent.output_tokens / measured_days,
        )
        speed = "" if seconds is not None or not live else "; their speed is assumed"
        source = f"as in {measured_days:,} days of {count} earlier run(s){speed}"
    elif live:
        output = max(
            output, calls * min(OUTPUT_PER_CALL, params_for(episode, benchmark).max_tokens)
        )
    if seconds is None or not live:
        seconds = calls * SECONDS_PER_CALL + output / TOKENS_PER_SECOND if live else 0.0
    price = load_prices(asking.prices).of(name)
    # A price that depends on the request's size is looked up per request, then scaled.
    per_call = (
        Tokens(plain=round(written / calls), output=round(output / calls)) if calls else Tokens()
    )
    usd = None if price is None else price.usd(per_call)
    playing = (time.perf_counter() - began) / min(SAMPLE_DAYS, row.sessions)
    concurrency = min(asking.concurrency, row.episodes)
    return msgspec.structs.replace(
        row,
        model=name,
        model_calls=round(calls * row.decisions),
        input_tokens=round(written * row.decisions),
        output_tokens=round(output * row.decisions),
        usd=None if usd is None else round(usd * calls * row.decisions, 4),
        source=source,
        hours=round(seconds * row.decisions / concurrency / 3600, 4),
        seconds=round(playing * row.decisions, 3),
        bytes=round((size + totals["characters"]) / days * row.decisions),
    )


class _Episodes(msgspec.Struct):
    """The fields of an earlier run's manifest that this module reads."""

    episodes: tuple[EpisodeSpec, ...] = ()
