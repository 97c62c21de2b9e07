"""The leak test: plant facts after the clock, rewrite the future, and see whether the past moves."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from tradeassay.agents import AgentClass, ModelConfig, converses, make_agent, model_params
from tradeassay.agents.registry import Value, make_config
from tradeassay.assay.leaks.futures import STYLES, Cut, OtherFuture, Phase, Style, present_channels, rewrite
from tradeassay.assay.leaks.playing import FutureReplay, ModelSubject, Moved, PlayedDay, RuleSubject, TestedAgent
from tradeassay.assay.leaks.records import CHANNELS, Channel, LeakFinding, LeakTestConfig, LeakTestReport
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.agent import Agent
from tradeassay.core.errors import UserError
from tradeassay.data import Panel, Snapshot, load_dataset, open_snapshot, write_snapshot
from tradeassay.data.store.read import read_panel
from tradeassay.metrics import rate_measure
from tradeassay.runs.conversation import protocol_config
from tradeassay.runs.episode import EpisodeSpec
from tradeassay.runs.spec import AgentSpec, Window, safe_name

_PHASES: dict[str, Phase] = {"pre_open": "pre_open", "at_open": "open", "close": "close"}


def leak_test(
    agent: str | type[AgentClass] | Callable[[], Agent],
    benchmark: str | Benchmark,
    dataset: str | Snapshot | None = None,
    *,
    params: Mapping[str, Value] | None = None,
    window: Window | None = None,
    config: LeakTestConfig | None = None,
    home: Path | None = None,
) -> LeakTestReport:
    """Test whether an agent's decisions depend on what lies after its clock, and say through which channel.

    ``agent`` is a registered name, a model's name (``scripted/sensible``), an agent class, or anything that makes
    an agent when it is called. The window starts as the benchmark's does, or at ``window``. A model is asked for
    ``config.sessions`` days, once; everything else is free.
    Raises :class:`UserError` for an unknown name, and for a window of fewer than two sessions.
    """
    config = config or LeakTestConfig()
    played = benchmarks.get(benchmark) if isinstance(benchmark, str) else benchmark
    snapshot = dataset if isinstance(dataset, Snapshot) else load_dataset(dataset or played.dataset, home)
    played = _window(played, snapshot, window, config.sessions)
    subject = _subject(agent, params or {}, played, snapshot, config.seed)
    with tempfile.TemporaryDirectory(prefix="tradeassay-leaks-") as folder:
        return _Trial(subject, played, snapshot, config, Path(folder)).report()


class _Trial:
    """One agent under examination."""

    def __init__(
        self, subject: TestedAgent, benchmark: Benchmark, snapshot: Snapshot, config: LeakTestConfig, folder: Path
    ) -> None:
        self.subject, self.benchmark, self.snapshot, self.config = subject, benchmark, snapshot, config
        self.folder = folder
        self.panel = read_panel(snapshot.folder)
        self.start = snapshot.rows(benchmark.market.first, benchmark.market.last).start
        self.findings: list[LeakFinding] = []
        self.moved: dict[Channel, int] = dict.fromkeys(CHANNELS, 0)
        self.futures = 0

    def report(self) -> LeakTestReport:
        """Carry the test out."""
        days = self.subject.play(self.snapshot)
        repeatable = self.subject.replay(self.snapshot, len(days) - 1, days).moved is None
        self._look_for_late(days)
        cuts = self._cuts(days)
        channels = present_channels(self.panel, cuts[0])
        present = [channel for channel, why in channels.items() if why is None]
        for cut in cuts:
            for style in STYLES:
                self._try(cut, style, present, days, repeatable)
        return LeakTestReport(
            agent=self.subject.name,
            benchmark=self.benchmark.id,
            dataset=self.snapshot.name,
            sessions=len(days),
            decisions_with_orders=sum(bool(day.decision.orders) for day in days),
            cuts=tuple(str(self.panel.sessions[cut.row]) for cut in cuts),
            futures=self.futures,
            repeatable=repeatable,
            findings=tuple(self.findings),
            moved={
                channel: rate_measure(self.moved[channel], self.futures, nothing="no future was tried")
                for channel in present
            }
            if repeatable
            else {},
            untested={channel: why for channel, why in channels.items() if why is not None},
            withheld=sum(stamp.through != "prompt" for day in days for stamp in day.late),
            notes=self._notes(days, repeatable),
        )

    def _cuts(self, days: Sequence[PlayedDay]) -> tuple[Cut, ...]:
        """Choose moments at which the agent did something, then others, where less could move."""
        active = [day.step for day in days if day.decision.orders]
        chosen = _spread(active, self.config.cuts)
        idle = [day.step for day in days if day.step not in chosen]
        steps = sorted({*chosen, *_spread(idle, self.config.cuts - len(chosen))})
        phase = _PHASES[self.benchmark.market.decide]
        return tuple(Cut(self.start + step, step, phase) for step in steps)

    def _try(
        self, cut: Cut, style: Style, present: Sequence[Channel], days: tuple[PlayedDay, ...], repeatable: bool
    ) -> None:
        """Rewrite everything after a moment; where that moves something, rewrite channel by channel."""
        self.futures += 1
        future, replay = self._play(cut, style, present, days)
        seen = self._look_for_canaries(future, replay, cut)
        if not repeatable or replay.moved is None:
            return
        blamed = False
        for channel in present:
            moved = self._play(cut, style, (channel,), days)[1].moved
            if moved is not None:
                blamed = True
                self.moved[channel] += 1
                self._note(moved, channel, cut)
        if not blamed and not seen:
            self._note(replay.moved, None, cut)

    def _play(
        self, cut: Cut, style: Style, channels: Collection[Channel], days: tuple[PlayedDay, ...]
    ) -> tuple[OtherFuture, FutureReplay]:
        future = rewrite(self.panel, cut, channels, style, self.config.seed)
        place = self.folder / f"{cut.step}-{style}-{safe_name('+'.join(channels))}"
        return future, self.subject.replay(_stored(future.panel, place), cut.step, days)

    def _look_for_canaries(self, future: OtherFuture, replay: FutureReplay, cut: Cut) -> bool:
        found = False
        for day in replay.days:
            words = day.words
            for token, channel in future.canaries.items():
                if token in words:
                    found = True
                    through = _where_said(day, token)
                    self._add(
                        LeakFinding(
                            kind="canary",
                            channel=channel,
                            through=through,
                            session=day.session,
                            step=day.step,
                            cut=str(self.panel.sessions[cut.row]),
                            detail=f"a fact planted after the clock was repeated: {_around(words, token)}",
                        )
                    )
        return found

    def _look_for_late(self, days: Sequence[PlayedDay]) -> None:
        for day in days:
            for stamp in day.late:
                shown = "shown" if stamp.through == "prompt" else "withheld"
                self._add(
                    LeakFinding(
                        kind="time stamp",
                        channel=None,
                        through=stamp.through,
                        session=day.session,
                        step=day.step,
                        cut=None,
                        detail=f"{stamp.field or 'a value'} is {stamp.stamp}, after the clock; it was {shown}",
                    )
                )

    def _note(self, moved: Moved, channel: Channel | None, cut: Cut) -> None:
        self._add(
            LeakFinding(
                kind="counterfactual",
                channel=channel,
                through=moved.through,
                session=moved.session,
                step=moved.step,
                cut=str(self.panel.sessions[cut.row]),
                detail=moved.detail,
            )
        )

    def _add(self, finding: LeakFinding) -> None:
        """Keep the first finding of a kind, channel and place: the others say nothing new."""
        key = (finding.kind, finding.channel, finding.through)
        if all((one.kind, one.channel, one.through) != key for one in self.findings):
            self.findings.append(finding)

    def _notes(self, days: Sequence[PlayedDay], repeatable: bool) -> tuple[str, ...]:
        notes = []
        if not repeatable:
            notes.append("the agent answers differently to the same questions: futures cannot be compared")
        failed = sum(day.decision.status == "failed" for day in days)
        if failed:
            notes.append(f"on {failed} of {len(days)} days no usable answer came: nothing could move there")
        return tuple(notes)


def _subject(
    agent: str | type[AgentClass] | Callable[[], Agent],
    params: Mapping[str, Value],
    benchmark: Benchmark,
    snapshot: Snapshot,
    seed: int,
) -> TestedAgent:
    name = agent if isinstance(agent, str) else getattr(agent, "__name__", type(agent).__name__)
    by_model = isinstance(agent, str) and "/" in agent
    episode = EpisodeSpec(
        key="leak-test",
        cell="leak-test",
        benchmark=benchmark.id,
        dataset=snapshot.name,
        agent=AgentSpec(name="model" if by_model else safe_name(name), params={} if by_model else dict(params)),
        seed=seed,
    )
    if isinstance(agent, str) and "/" not in agent:
        if converses(agent):
            raise UserError("a model is named by its own name", mend="e.g. scripted/sensible or openai/gpt-4.1")
        return RuleSubject(name, lambda: make_agent(agent, params), benchmark, episode)
    if isinstance(agent, str):
        settings = make_config("model", ModelConfig, {"model": agent, **params})
        assert isinstance(settings, ModelConfig)
        return ModelSubject(agent, model_params(settings, protocol_config(benchmark)), benchmark, episode)
    config = getattr(agent, "Config", None)
    if config is not None:
        taking: Callable[..., Agent] = agent
        return RuleSubject(name, lambda: taking(make_config(name, config, params)), benchmark, episode)
    return RuleSubject(name, agent, benchmark, episode)


def _window(benchmark: Benchmark, snapshot: Snapshot, window: Window | None, sessions: int) -> Benchmark:
    market = benchmark.market
    first, last = (market.first, market.last) if window is None else (window.first, window.last)
    rows = snapshot.rows(first, last)[:sessions]
    if len(rows) < 2:
        raise UserError(
            "a leak test needs two sessions: one to decide in, one to rewrite", mend="widen the window"
        )
    days = snapshot.sessions
    market = msgspec.structs.replace(market, first=str(days[rows[0]]), last=str(days[rows[-1]]))
    return msgspec.structs.replace(benchmark, market=market)


def _stored(panel: Panel, folder: Path) -> Snapshot:
    write_snapshot(panel, folder, allow_faults=True)
    return open_snapshot(folder)


def _spread(steps: Sequence[int], count: int) -> list[int]:
    """Return some of the steps, spread over all of them, the last one among them."""
    count = min(count, len(steps))
    return [steps[(k + 1) * len(steps) // count - 1] for k in range(count)]


def _where_said(day: PlayedDay, token: str) -> str:
    for one in day.asked:
        names = {call.id: call.name for message in one.request.messages for call in message.calls}
        for message in one.request.messages:
            if token in message.text and message.role != "assistant":
                return f"tool {names.get(message.call_id or '', '?')}" if message.role == "tool" else "prompt"
    return "decision"


def _around(words: str, token: str) -> str:
    at = words.index(token)
    return " ".join(words[max(0, at - 40) : at + len(token) + 40].split())
