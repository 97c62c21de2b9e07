"""Read a recorded run from its folder, and determine the displayed names of its agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

import msgspec

from tradeassay.core.arguments import path_from
from tradeassay.core.measure import Badges
from tradeassay.core.our_code import is_ours
from tradeassay.core.registry import did_you_mean
from tradeassay.metrics import EpisodeSeries
from tradeassay_bench.account import Ledger
from tradeassay_bench.agents.model import NAME as MODEL
from tradeassay_bench.agents.own_file import NAME as OWN_FILE
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.benchmarks.code_protocol import CodeProtocol, find_protocol
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import Filled, Rejected, StepRecord
from tradeassay_bench.data import Snapshot
from tradeassay_bench.llm import parse_name
from tradeassay_bench.llm.recording import first_answer
from tradeassay_bench.play.dialogue_log import DialogueLine, read_dialogue
from tradeassay_bench.play.journal import read_records
from tradeassay_bench.runs.play.programs import CodeScoresFile, read_record
from tradeassay_bench.runs.score import Scores, read_scores, require_outcome, series_of
from tradeassay_bench.runs.spec.episode import EpisodeSpec
from tradeassay_bench.runs.spec.run_spec import AgentSpec, model_agent
from tradeassay_bench.runs.store.folder import DEFAULT_PARENT, RunFolder
from tradeassay_bench.runs.store.manifest import (
    AgentRecord,
    CodeManifest,
    Manifest,
    RunManifest,
    read_manifest,
    snapshot_for,
)
from tradeassay_bench.runs.store.outcome import Outcome, read_outcome

if TYPE_CHECKING:
    from tradeassay_bench.runs.store.frames import Frames

M = TypeVar("M", bound=Manifest)
_LIVELINESS = ("none", "scripted", "replayed program", "replayed", "program", "live")


class RecordedRun(Generic[M]):
    """A run on disk. There is a subclass for each kind of run.

    Reading does not change the run. Large files are read on demand.
    """

    def __init__(self, folder: Path, manifest: M, name: str) -> None:
        self._place = RunFolder(folder)
        self._by_key = {episode.key: episode for episode in manifest.episodes}
        self.folder, self.manifest, self.name = folder, manifest, name
        self.episodes: tuple[EpisodeSpec, ...] = manifest.episodes

    def __repr__(self) -> str:
        state = "complete" if self.complete else "unfinished"
        return (
            f"<{type(self).__name__} '{self.name}' {len(self.episodes)} episodes, {state}, in "
            f"{self.folder}>"
        )

    @property
    def complete(self) -> bool:
        """Return whether every episode has ended and the scores are written."""
        return self._place.scores.is_file() and all(
            self._place.outcome(episode.key).is_file() for episode in self.episodes
        )

    @property
    def failed(self) -> dict[str, str]:
        """Return the reason for every failed episode, by key."""
        return {
            episode.key: outcome.reason
            for episode, outcome in self.outcomes()
            if outcome.status == "failed"
        }

    def episode(self, key: str) -> EpisodeSpec:
        """Return one episode. Raises :class:`RunError` with similar keys if the key is unknown."""
        try:
            return self._by_key[key]
        except KeyError:
            hint = did_you_mean(key, self._by_key, "see run.episodes")
            raise RunError(f"no episode '{key}' in {self.folder}", hint=hint) from None

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome of an episode, or None if it has not ended."""
        return read_outcome(self._place.outcome(self.episode(key).key))

    def outcomes(self) -> Iterator[tuple[EpisodeSpec, Outcome]]:
        """Yield the episodes that have ended with their outcomes, in order."""
        for episode in self.episodes:
            outcome = read_outcome(self._place.outcome(episode.key))
            if outcome is not None:
                yield episode, outcome

    @cached_property
    def names(self) -> dict[str, str]:
        """Return the displayed name of every agent, by label."""
        return shown_names(self.manifest, self._place)

    def dialogue(self, key: str) -> Iterator[DialogueLine]:
        """Yield the questions to a model in an episode, with the answers; none without a model."""
        return read_dialogue(self._place.dialogue(self.episode(key).key))


class Run(RecordedRun[RunManifest]):
    """A trading run.

    ``home`` is the root of the data store. Data is needed only for index levels and prices.
    """

    def __init__(self, folder: Path, manifest: RunManifest, *, home: str | None = None) -> None:
        super().__init__(folder, manifest, manifest.spec.name)
        self.home, self.spec = home, manifest.spec
        self.series = lru_cache(maxsize=64)(self._series)

    def __reduce__(self) -> tuple[Callable[..., Run], tuple[str, str | None, int]]:
        """Pickle the run as a path.

        A process that unpickles the run opens the path once, and again if the scores have changed.
        """
        scores = self._place.scores
        written = scores.stat().st_mtime_ns if scores.is_file() else 0
        return _opened_again, (str(self.folder.absolute()), self.home, written)

    @classmethod
    def load(cls, folder: Path | str, *, home: Path | str | None = None) -> Self:
        """Open a run. Raises :class:`RunError` if ``folder`` does not contain a trading run."""
        path = Path(folder)
        manifest = read_manifest(path / "manifest.json")
        if not isinstance(manifest, RunManifest):
            hint = "'report' and 'compare' display it; load_run opens runs of either kind"
            raise RunError(f"{path} contains a run of programs", hint=hint)
        return cls(path, manifest, home=None if home is None else str(home))

    @property
    def scores(self) -> Scores:
        """Return all scores of the run. Raises :class:`RunError` while the run is unfinished."""
        return read_scores(self._place.scores, Scores)

    @property
    def shown_scores(self) -> Scores:
        """Return the scores with the agents' displayed names instead of their labels.

        Labels are not displayed unchanged, because the runner may choose any label.
        """
        rows = {
            part: tuple(msgspec.structs.replace(row, agent=self.names[row.agent]) for row in scored)
            for part, scored in (("agents", self.scores.agents), ("episodes", self.scores.episodes))
        }
        return msgspec.structs.replace(self.scores, **rows)

    def badges(self, key: str) -> Badges:
        """Return the caveats for the numbers of an episode."""
        episode, outcome = self.episode(key), self.outcome(key)
        badges = self.manifest.badges(episode)
        answers = "none" if outcome is None else outcome.answers
        if answers == "none":
            return badges
        if episode.by_model and not episode.model and answers != "scripted":
            return msgspec.structs.replace(
                badges, model="program" if answers == "live" else "replayed program"
            )
        return msgspec.structs.replace(badges, model=answers)

    def setting_badges(self, setting: str) -> Badges:
        """Return the caveats for a setting's table.

        The caveat about models is the strongest caveat of its agents: live answers before replayed
        answers, replayed before scripted. Raises :class:`RunError` for an unknown setting.
        """
        badges = [
            self.badges(episode.key) for episode in self.episodes if episode.setting == setting
        ]
        if not badges:
            raise RunError(
                f"no setting '{setting}' in {self.folder}", hint="see the settings of run.episodes"
            )
        liveliest = max(badges, key=lambda badge: _LIVELINESS.index(badge.model))
        return msgspec.structs.replace(
            liveliest, own_program=any(badge.own_program for badge in badges)
        )

    def journal(self, key: str) -> Path:
        """Return the path of an episode's journal, which has one line per session."""
        return self._place.events(self.episode(key).key)

    def records(self, key: str) -> Iterator[StepRecord]:
        """Yield the records of an episode's journal.

        Raises :class:`RunError` if the journal is missing or incomplete.
        """
        return read_records(self.journal(key))

    def snapshot(self, key: str) -> Snapshot:
        """Open the data of an episode. Raises :class:`RunError` if the data has changed."""
        episode = self.episode(key)
        return snapshot_for(
            episode.dataset, self.home, self.manifest.datasets[episode.dataset].sha256
        )

    def frames(self, kind: Literal["polars", "pandas"] = "pandas") -> Frames:
        """Return nav, trades, rejections, decisions, positions and scores as data frames.

        ``kind`` is the package of the data frames. Raises :class:`UserError` for an unknown kind.
        """
        from tradeassay.core.frames import make_frame
        from tradeassay_bench.runs.store.frames import SCHEMAS, Frames

        # Report an unknown kind or a missing package before reading the run.
        make_frame(kind, {}, ())
        rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in SCHEMAS}
        for episode in self.episodes:
            who = (
                episode.key,
                episode.benchmark,
                episode.dataset,
                self.names[episode.label],
                episode.seed,
            )
            for ledger, record in Ledger.steps(self.records(episode.key)):
                state, decision = ledger.state(), record.decision
                when = (*who, record.step, record.session)
                if record.step == 0:
                    rows["nav"].append((*who, -1, None, state.initial, state.initial, 0.0))
                rows["nav"].append((*when, state.nav, state.cash, state.nav - state.cash))
                counts = (len(decision.orders), len(decision.failures))
                rows["decisions"].append((*when, decision.status, *counts, decision.reason))
                for event in (*record.opening, *record.events):
                    if isinstance(event, Filled):
                        which = (
                            event.order_id,
                            event.symbol,
                            "BUY" if event.quantity > 0 else "SELL",
                        )
                        prices = (abs(event.quantity), event.price, event.reference)
                        money = (event.fee, event.tax, event.cash)
                        rows["trades"].append((*when, *which, *prices, *money, event.forced))
                    elif isinstance(event, Rejected):
                        why = (
                            event.order_id,
                            event.symbol,
                            event.reason,
                            event.detail,
                            event.quantity,
                        )
                        rows["rejections"].append((*when, *why))
                for symbol, held in state.positions.items():
                    worth = (held.quantity, held.cost, held.mark, held.value, state.weight(symbol))
                    rows["positions"].append((*when, symbol, *worth))
        for scored in self.scores.episodes:
            who = (
                scored.key,
                scored.benchmark,
                scored.dataset,
                self.names[scored.agent],
                scored.seed,
            )
            for name, measure in scored.measures.items():
                numbers = (
                    measure.value,
                    measure.low,
                    measure.high,
                    measure.level,
                    measure.n,
                    measure.reason,
                    measure.note,
                )
                rows["scores"].append((*who, scored.status, name, *numbers))
        return Frames(
            **{name: make_frame(kind, schema, rows[name]) for name, schema in SCHEMAS.items()}
        )

    def _series(self, key: str) -> EpisodeSeries:
        """Return the daily series of an episode.

        Raises :class:`RunError` if the episode has not ended.
        """
        episode, outcome = self.episode(key), require_outcome(self._place, self.episode(key))
        return series_of(
            self._place, episode, outcome, self.manifest.benchmark(episode), self.snapshot(key)
        )


class CodeRun(RecordedRun[CodeManifest]):
    """A run in which models write programs."""

    def __init__(self, folder: Path, manifest: CodeManifest) -> None:
        super().__init__(folder, manifest, folder.name)
        self.benchmark = manifest.benchmark

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Open a run. Raises :class:`RunError` if ``folder`` does not contain a run of programs."""
        path = Path(folder)
        manifest = read_manifest(path / "manifest.json")
        if not isinstance(manifest, CodeManifest):
            raise RunError(
                f"{path} contains a trading run", hint="load_run opens runs of either kind"
            )
        return cls(path, manifest)

    @cached_property
    def kind(self) -> type[CodeProtocol]:
        """Return the class of the benchmark's protocol.

        Raises :class:`UserError` if the benchmark is not installed here.
        """
        return find_protocol(self.benchmark)

    @cached_property
    def spec(self) -> Any:
        """Return the spec of the run, in the benchmark's own type."""
        return msgspec.json.decode(self.manifest.spec, type=self.kind.Spec)

    def record(self, key: str) -> Any | None:
        """Return the benchmark's record of an episode, or None if the episode has no record."""
        outcome = self.outcome(key)
        return None if outcome is None else read_record(self.kind, outcome)

    def records(self) -> dict[str, Any]:
        """Return the benchmark's records of all episodes with a record, by key."""
        return {
            episode.key: record
            for episode, outcome in self.outcomes()
            if (record := read_record(self.kind, outcome)) is not None
        }

    @property
    def scores(self) -> Any:
        """Return the scores of the run, in the type of the benchmark.

        Raises :class:`RunError` while the run is unfinished.
        """
        return msgspec.json.decode(
            read_scores(self._place.scores, CodeScoresFile).scores, type=self.kind.Scores
        )


@lru_cache(maxsize=4)
def _opened_again(folder: str, home: str | None, _written: int) -> Run:
    return Run.load(folder, home=home)


def folder_of(run: Run | CodeRun | Path | str) -> Path:
    """Return the folder of a run, given as an open run, a path, or a name below ``runs``."""
    if isinstance(run, Run | CodeRun):
        return run.folder
    path = path_from("a run", run, hint="give the run's folder, or an opened run")
    named = DEFAULT_PARENT / path
    if not (path / "manifest.json").is_file() and (named / "manifest.json").is_file():
        return named
    return path


def load_run(folder: Path | str, *, home: Path | str | None = None) -> Run | CodeRun:
    """Open a run of either kind. Raises :class:`RunError` if ``folder`` does not contain a run."""
    path = folder_of(folder)
    manifest = read_manifest(path / "manifest.json")
    if isinstance(manifest, RunManifest):
        return Run(path, manifest, home=None if home is None else str(home))
    return CodeRun(path, manifest)


# Displayed names of agents. The runner chooses labels freely, so a label proves nothing. A row has
# the name of a provider's model only if recorded calls show that this provider was queried. The
# label of any other agent is preceded by its kind: "program over HTTP: openai-gpt-5", "rule
# momentum-12-1: openai-gpt-5".

_KINDS = {
    "http": "program over HTTP",
    "pipe": "program on a pipe",
    "mcp": "client over MCP",
    "python": "Python class",
    OWN_FILE: "rule from a file",
    "factor-model": "trained factor model",
}
NEVER_ASKED = "no recorded call"
ELSEWHERE = "queried at another server"


def shown_names(manifest: Manifest, place: RunFolder) -> dict[str, str]:
    """Return the displayed names of a run's agents, by label.

    The recorded calls of models are read, to check that the stated provider was queried.
    """
    records = manifest.agents if isinstance(manifest, RunManifest) else {}
    players: dict[str, AgentSpec] = {}
    doubts: dict[str, str] = {}
    for episode in manifest.episodes:
        players.setdefault(episode.label, episode.agent)
        # The calls of all episodes must be recorded.
        if not episode.model or parse_name(episode.model).route != "inspect":
            continue
        if doubts.get(episode.label) == NEVER_ASKED:
            continue
        try:
            first = first_answer(place.models / f"{episode.key}.jsonl", episode.model)
        except RunError:
            first = None
        if first is None and place.outcome(episode.key).is_file():
            doubts[episode.label] = NEVER_ASKED
        elif first is not None and first.elsewhere is True:
            doubts[episode.label] = ELSEWHERE
    return {
        label: shown_name(agent, records.get(agent.name), doubts.get(label, ""))
        for label, agent in players.items()
    }


def shown_name(agent: AgentSpec, record: AgentRecord | None = None, doubt: str = "") -> str:
    """Return an agent's displayed name.

    ``record`` identifies the package of the agent's code. ``doubt`` is the reason why the answers
    may be from a different model; empty without doubt.
    """
    model = agent.params.get("model") if agent.name == MODEL else None
    plain = AgentSpec(name=agent.name, params=agent.params).title
    if isinstance(model, str):
        more = " ".join(
            f"{key}={value}" for key, value in sorted(agent.params.items()) if key != "model"
        )
        kind, own = " ".join(filter(None, (model, more))), "" if more else model_agent(model).title
    elif agent.name in _KINDS:
        kind, own = _KINDS[agent.name], plain
    elif record is not None and not is_ours(record.module):
        kind, own = f"rule of {record.module.partition('.')[0]}", ""
    else:
        kind, own = f"rule {plain}", plain
    if doubt:
        kind, own = f"{kind}, {doubt}", ""
    elif model and agent.label is None:
        return kind
    return agent.title if agent.title in (own, kind) else f"{kind}: {agent.title}"


def shown_title(benchmark: Benchmark, dataset: str) -> str:
    """Return a benchmark's displayed title.

    The registered title describes the registered data ("29 US stocks, real prices 2007-2009"). It
    is also used for different draws of the same synthetic world. For any other data set, the result
    names the data set and the benchmark's id. For a benchmark that is not registered here, the
    result is its id with its title in quotation marks.
    """
    if benchmark.id in benchmarks:
        registered = benchmarks.get(benchmark.id)
        world, colon, _ = registered.dataset.partition(":")
        if dataset == registered.dataset or (colon and dataset.startswith(world + colon)):
            return registered.title
        return f"{dataset} by the rules of {registered.id}"
    return f'{benchmark.id}, not registered here ("{benchmark.title}")'
