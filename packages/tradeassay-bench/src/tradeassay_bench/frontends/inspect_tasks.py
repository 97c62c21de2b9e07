"""Run the conversations of a benchmark in Inspect: ``inspect eval tradeassay/ktdfin``.

The second task is ``tradeassay/stockbench``. Market, protocol and rules are the same as in
:mod:`tradeassay_bench.runs`. Inspect provides the model, its connections and its log. A sample is
an episode. Its journal is in the sample's store under ``tradeassay:events``. Under a mask the log
must not reveal the hidden facts. The journal and the secret are then in a folder
``runs/inspect-...``, and the log contains the folder's name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from weakref import WeakSet

import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelAPI, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.core.run_secret import draw_secret
from tradeassay_bench.frontends.prepared import PreparedEpisode, earned, plots_of, spec_for
from tradeassay_bench.llm import ModelParams, load_prices
from tradeassay_bench.llm.model import QuestionPlace
from tradeassay_bench.llm.via_inspect.provider import InspectProvider
from tradeassay_bench.llm.via_inspect.wire import keep_raw_responses
from tradeassay_bench.play import AddressedQuestion, NoAnswer
from tradeassay_bench.play.dialogue_log import Spending
from tradeassay_bench.play.episode import UNAVAILABLE
from tradeassay_bench.play.journal import encode_line
from tradeassay_bench.runs.play.episodes import model_episode
from tradeassay_bench.runs.spec.episode import params_for, protocol_config
from tradeassay_bench.runs.spec.run_spec import ParamValue

EVENTS = "tradeassay:events"
SPENDING = "tradeassay:spending"
FAILURE = "tradeassay:failure"
SESSIONS = "tradeassay:sessions"
PLAYED = "tradeassay:played"
RETURN = "tradeassay:return"

_WRAPPED: WeakSet[ModelAPI] = WeakSet()
_NOWHERE = QuestionPlace(episode="", step=0, sample=0, index=0)


def play_episodes(
    plots: Mapping[str, PreparedEpisode], days: int | None, kept: Path | None
) -> Solver:
    """Return the solver of some episodes.

    The solver itself has no arguments, because Inspect would log them.
    """

    @solver(name="play_episode")
    def play_episode() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            plot = plots[str(state.sample_id)]
            asker = Asker(get_model())
            journal, sessions, failure = await _play(plot, asker, days)
            lines = [encode_line(record).decode() for record in journal]
            if kept is None:
                state.store.set(EVENTS, lines)
            else:
                kept.mkdir(parents=True, exist_ok=True)
                (kept / "secret").write_text(plot.secret or "")
                (kept / f"{state.sample_id}.jsonl").write_text(
                    "".join(f"{line}\n" for line in lines)
                )
            state.store.set(SESSIONS, sessions)
            state.store.set(PLAYED, [record.decision.status for record in journal])
            state.store.set(RETURN, earned(journal))
            state.store.set(SPENDING, msgspec.to_builtins(asker.spending))
            state.store.set(FAILURE, failure)
            state.messages += asker.conversation()
            state.output.completion = (
                failure or f"{len(journal)} sessions played; {asker.spending.words()}"
            )
            return state

        return solve

    return play_episode()


@scorer(metrics={"cumulative_return": [mean(), stderr()], "failed_days": [mean()]})
def outcome_scorer() -> Scorer:
    """Score an episode by its return and by its share of days without a usable answer.

    An episode that was interrupted, or had no usable answer on any day, has a reason instead of a
    return. Days that were not reached count as failed.
    """

    async def score(state: TaskState, target: Target) -> Score:
        played: list[str] = state.store.get(PLAYED, [])
        sessions = int(state.store.get(SESSIONS, len(played)))
        failure = state.store.get(FAILURE)
        failed = played.count("failed") + sessions - len(played)
        if failure is None and failed == sessions:
            failure = f"no usable answer in any of {len(played)} sessions"
        spending: dict[str, float] = state.store.get(SPENDING, {})
        return Score(
            value={
                "cumulative_return": math.nan if failure is not None else state.store.get(RETURN),
                "failed_days": failed / sessions,
            },
            explanation=failure or f"{len(played)} sessions, {failed} without a usable answer",
            metadata={"failed": failure is not None, "spending": spending},
        )

    return score


async def _play(
    plot: PreparedEpisode, asker: Asker, days: int | None
) -> tuple[list[StepRecord], int, str | None]:
    """Return the journal, the number of sessions, and the reason of an interruption or None."""
    play = model_episode(plot.snapshot, plot.benchmark, plot.episode, plot.secret)
    play.open()
    sessions = min(len(play.market.sessions), days or len(play.market.sessions))
    journal: list[StepRecord] = []
    try:
        async for record in play.arecords(asker.answer):
            journal.append(record)
            if len(journal) == days:
                break
    except NoAnswer as error:
        return journal, sessions, f"{error.message} in session {len(journal) + 1} of {sessions}"
    return journal, len(journal), None


class Asker:
    """Query the model under evaluation. Inspect's own retries, limits and settings apply."""

    def __init__(self, model: Model) -> None:
        self.spending = Spending()
        self._provider = InspectProvider(str(model), model, None, load_prices().of(str(model)))
        self._asked: tuple[Message, ...] = ()
        self._talk: list[ChatMessage] = []
        if model.api not in _WRAPPED:
            keep_raw_responses(model.api)
            _WRAPPED.add(model.api)

    async def answer(self, asked: AddressedQuestion[AskModel]) -> ModelReply:
        """Answer one question.

        Raises :class:`NoAnswer` if the model can no longer be reached, and Inspect's own exception
        at a limit of the evaluation.
        """
        reply = await self.reply(asked.request, asked.place)
        if reply.error_kind in UNAVAILABLE:
            raise NoAnswer(f"{reply.error_kind}: {reply.error}")
        return reply

    async def reply(self, request: AskModel, place: QuestionPlace = _NOWHERE) -> ModelReply:
        """Return the reply to one request, which is an error if the model cannot be reached.

        Raises Inspect's own exception at a limit of the evaluation.
        """
        if request.messages[: len(self._asked)] != self._asked:  # a new conversation starts
            self._talk += self._provider.exchange
        self._asked = request.messages
        reply = (await self._provider.attempt(request, place)).reply
        self.spending = self.spending.plus(reply.usage)
        return reply

    def conversation(self) -> list[ChatMessage]:
        return [*self._talk, *self._provider.exchange]


__all__ = ["ktdfin", "stockbench"]


def generate_config(params: ModelParams) -> GenerateConfig:
    return GenerateConfig(
        temperature=params.temperature,
        max_tokens=params.max_tokens,
        attempt_timeout=round(params.timeout_s),
    )


@task
def ktdfin(
    mask: str = "blinded",
    mode: str = "open-research",
    benchmark: str = "ktdfin-v1",
    window: str | None = None,
    dataset: str | None = None,
    seeds: int = 1,
    days: int | None = None,
    settings: dict[str, ParamValue] | None = None,
) -> Task:
    """KTD-Fin: a model trades while a mask hides names, dates or both.

    Args:
        mask: How much is hidden: bright, stock-blind, date-blind or blinded.
        mode: The tools of the model: memory-only, fixed-candidate or open-research.
        benchmark: A benchmark of the family, e.g. ktdfin-us-v1.
        window: Named sessions, e.g. W4. Default: all sessions of the benchmark.
        dataset: A data set other than the benchmark's own.
        seeds: Number of episodes, each with other aliases.
        days: Stop after this many sessions.
        settings: Other settings of the conversation.
    """
    changed: dict[str, ParamValue] = {"mask": mask, "mode": mode, **(settings or {})}
    return _task(days, seeds, benchmark, changed, window=window, dataset=dataset)


@task
def stockbench(
    benchmark: str = "stockbench-v1",
    dataset: str | None = None,
    seeds: int = 1,
    days: int | None = None,
    settings: dict[str, ParamValue] | None = None,
) -> Task:
    """StockBench: four stages a day over a small universe of US stocks.

    Args:
        benchmark: A benchmark of the family, e.g. stockbench-paper-v1.
        dataset: A data set other than the benchmark's own.
        seeds: Number of repetitions.
        days: Stop after this many sessions.
        settings: Inputs, prompt and other settings of the conversation.
    """
    return _task(days, seeds, benchmark, settings or {}, dataset=dataset)


def _task(
    days: int | None,
    seeds: int,
    benchmark: str,
    settings: Mapping[str, ParamValue],
    *,
    dataset: str | None,
    window: str | None = None,
) -> Task:
    if seeds < 1 or (days is not None and days < 1):
        raise UserError("seeds and days must be at least 1", hint="give a positive number")
    secret = draw_secret()
    plots = plots_of(
        spec_for(benchmark, settings, window=window, dataset=dataset, seeds=seeds, secret=secret)
    )
    first = plots[0]
    params = params_for(first.episode, first.benchmark)
    masked = getattr(protocol_config(first.benchmark), "mask", "bright") != "bright"
    named = {f"episode-{plot.episode.seed}" if masked else plot.episode.key: plot for plot in plots}
    kept, about = None, {"benchmark": benchmark, "secret": secret}
    if masked:
        # The id names the market and its years, and the secret reveals the aliases, so the log gets
        # neither.
        kept = Path("runs", f"inspect-{sha256_of(secret)[:12]}")
        about = {"benchmark": first.benchmark.protocol, "kept": kept.name}
    played, samples = f"the first {days} sessions" if days is not None else "all sessions", []
    for name, plot in named.items():
        market = plot.benchmark.market
        title = f"{plot.benchmark.title}: {played} from {market.first} to {market.last}."
        shown = f"{plot.benchmark.protocol}: {played}." if masked else title
        samples.append(
            Sample(id=name, input=shown, metadata={"episode": name, "seed": plot.episode.seed})
        )
    return Task(
        dataset=MemoryDataset(samples, name=about["benchmark"]),
        solver=play_episodes(named, days, kept),
        scorer=outcome_scorer(),
        # Defaults of the benchmark. The command line takes precedence.
        config=generate_config(params),
        metadata={**about, "settings": dict(first.benchmark.protocol_params)},
        # A failing episode must not end the others. The scorer counts the days that were not
        # played.
        fail_on_error=False,
    )
