"""Run the leak test: replace all data after the clock at every session and compare the decisions.

The test needs one pass per kind of future, however long the window is. If a decision changes, one
pass per channel finds the channel.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from tradeassay.core.errors import UserError
from tradeassay_bench.agents import (
    AgentClass,
    ModelConfig,
    check_agent,
    converses,
    files_open,
    is_own_file,
    make_agent,
    make_conversing,
    model_params,
    own_agent,
)
from tradeassay_bench.agents.registry import Opening, Value, make_config
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.core.agent import Agent, CostlyAgent
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.executors import HERE, Spread
from tradeassay_bench.data import (
    Panel,
    Snapshot,
    SplicedSnapshot,
    load_dataset,
    open_snapshot,
    write_snapshot,
)
from tradeassay_bench.data.store.read import read_panel
from tradeassay_bench.examine.leaks.futures import STYLES, Cut, Style, present_channels, rewrite
from tradeassay_bench.examine.leaks.leak_result import (
    ASKED,
    CHANNELS,
    Channel,
    Kind,
    LeakFinding,
    LeakTestConfig,
    LeakTestReport,
    moved_share,
)
from tradeassay_bench.examine.leaks.playing import (
    ModelSubject,
    Moved,
    PlayedDay,
    RuleSubject,
    Sweep,
    through_of,
)
from tradeassay_bench.llm import check_model, open_model
from tradeassay_bench.play.market import MOMENTS
from tradeassay_bench.runs.play.trading import modules_of
from tradeassay_bench.runs.spec.episode import EpisodeSpec, protocol_config
from tradeassay_bench.runs.spec.run_spec import AgentSpec, Window, safe_name

if TYPE_CHECKING:
    from tradeassay_bench.runs import Run

Subject = RuleSubject | ModelSubject


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
    """Test whether an agent's decisions depend on data after its clock. Return the report.

    ``agent`` is a registered name, a model's name (``scripted/sensible``), a class in a file
    (``./mine.py:Mine``), an agent class, or a function that makes an agent. ``window`` defaults to
    the window of the benchmark suite. An agent that uses a model is queried in one pass only, for
    ``config.sessions`` days (default: :data:`~tradeassay_bench.examine.leaks.leak_result.ASKED`).
    All further passes replay its answers. Raises :class:`UserError` for an unknown name, and for a
    window of fewer than two sessions.
    """
    config = config or LeakTestConfig()
    played = benchmarks.get(benchmark) if isinstance(benchmark, str) else benchmark
    snapshot = (
        dataset if isinstance(dataset, Snapshot) else load_dataset(dataset or played.dataset, home)
    )
    params = dict(params or {})
    name = agent if isinstance(agent, str) else getattr(agent, "__name__", type(agent).__name__)
    if isinstance(agent, str) and is_own_file(agent):
        name = agent.rpartition(":")[2]
        agent, params = own_agent(agent, params)
        check_agent(agent, params)
    conversing = isinstance(agent, str) and ("/" in agent or converses(agent))
    sessions = config.sessions or (ASKED if conversing else None)
    cut, whole = _window(played, snapshot, window, sessions)
    episode = EpisodeSpec(
        key="leak-test",
        setting="leak-test",
        benchmark=cut.id,
        dataset=snapshot.name,
        agent=AgentSpec(
            name="model" if "/" in name else safe_name(name), params={} if "/" in name else params
        ),
        seed=config.seed,
    )
    subject = _subject(name, agent, params, cut, episode)
    with StoredFutures() as futures:
        return _Trial(subject, cut, snapshot, config, futures, whole).report()


class StoredFutures:
    """Writes the alternative futures of one market at a time, and shares them between agents."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="tradeassay-leaks-")
        self._of: Snapshot | None = None
        self._panel: Panel | None = None
        self._made: dict[object, tuple[dict[str, Channel], Snapshot]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._forget()
        self._place.cleanup()

    def panel(self, snapshot: Snapshot) -> Panel:
        """Return the true panel of a market. The futures of a different market are deleted."""
        if self._panel is None or self._of is None or self._of.sha256 != snapshot.sha256:
            self._forget()
            self._of, self._panel = snapshot, read_panel(snapshot.folder)
        return self._panel

    def future(
        self,
        snapshot: Snapshot,
        cut: Cut,
        channels: Collection[Channel],
        style: Style,
        seed: int,
        until: int,
    ) -> tuple[dict[str, Channel], Snapshot]:
        """Return the words planted in an alternative future, and the snapshot of that future."""
        panel, key = self.panel(snapshot), (cut, tuple(channels), style, seed, until)
        if key not in self._made:
            other, canaries = rewrite(panel, cut, channels, style, seed, until=until)
            place = Path(self._place.name) / str(len(self._made))
            write_snapshot(other, place, allow_faults=True)
            self._made[key] = canaries, open_snapshot(place)
        return self._made[key]

    def _forget(self) -> None:
        self._of = None
        self._panel = None
        self._made.clear()
        for place in Path(self._place.name).iterdir():
            shutil.rmtree(place, ignore_errors=True)


class _Trial:
    """Runs the leak test of one agent and collects its findings."""

    def __init__(
        self,
        subject: Subject,
        benchmark: Benchmark,
        snapshot: Snapshot,
        config: LeakTestConfig,
        futures: StoredFutures,
        whole: bool,
    ) -> None:
        self.subject, self.benchmark, self.snapshot, self.config = (
            subject,
            benchmark,
            snapshot,
            config,
        )
        self.futures, self.whole = futures, whole
        self.rows = snapshot.rows(benchmark.market.first, benchmark.market.last)
        self.findings: list[LeakFinding] = []
        self.moved: dict[Channel, set[int]] = {channel: set() for channel in CHANNELS}
        self.repeats: bool | None = None

    def report(self) -> LeakTestReport:
        """Return the report of the whole test."""
        days = self.subject.play(self.snapshot)
        for day in days:
            for stamp in day.late:
                handling = "shown" if stamp.through == "prompt" else "withheld"
                detail = (
                    f"{stamp.field or 'a value'} is {stamp.stamp}, after the clock; it was "
                    f"{handling}"
                )
                self._add("time stamp", None, stamp.through, day, detail)
        cut = Cut(self.rows[0], MOMENTS[self.benchmark.market.decide])
        channels = present_channels(self.futures.panel(self.snapshot), cut)
        present = [channel for channel, why in channels.items() if why is None]
        for style in STYLES:
            self._try(cut, style, present, days)
        repeatable = self.repeats is not False  # None if no alternative future changed a decision
        notes = []
        if not repeatable:
            notes.append(
                "the agent answers differently to the same questions: futures cannot be compared"
            )
        if failed := sum(day.decision.status == "failed" for day in days):
            notes.append(
                f"on {failed} of {len(days)} days no usable answer came: nothing could move there"
            )
        withheld = 0
        for day in days:
            withheld += sum(stamp.through != "prompt" for stamp in day.late)
        return LeakTestReport(
            agent=self.subject.name,
            benchmark=self.benchmark.id,
            dataset=self.snapshot.name,
            sessions=len(days),
            decisions_with_orders=sum(bool(day.decision.orders) for day in days),
            futures=len(STYLES),
            repeatable=repeatable,
            whole=self.whole,
            findings=tuple(self.findings),
            moved={channel: moved_share(len(self.moved[channel]), len(days)) for channel in present}
            if repeatable
            else {},
            untested={channel: why for channel, why in channels.items() if why is not None},
            withheld=withheld,
            notes=tuple(notes),
            files_open=self.subject.own_code,
        )

    def _try(
        self, cut: Cut, style: Style, present: Sequence[Channel], days: tuple[PlayedDay, ...]
    ) -> None:
        """Run a pass with an alternative future in all channels.

        If a decision or message changes, run one pass per channel.
        """
        canaries, (seen, moved) = self._sweep(cut, style, present, days)
        repeated_fact = False
        for day in seen:
            words = day.words
            for token in canaries:
                if (at := words.find(token)) < 0:
                    continue
                repeated_fact = True
                around = " ".join(words[max(0, at - 40) : at + len(token) + 40].split())
                detail = f"a fact planted after the clock was repeated: {around}"
                places = []
                for question in day.asked:
                    for message in question.request.messages:
                        if token in message.text and message.role != "assistant":
                            places.append(through_of(message, question.request))
                through = places[0] if places else "decision"
                self._add("canary", canaries[token], through, day, detail)
        if not moved:
            return
        if self.repeats is None:
            same = SplicedSnapshot(self.snapshot, self.snapshot, bars=False, noisy=False)
            self.repeats = not self.subject.sweep(same, days)[1]
        if not self.repeats:
            return
        blamed = False
        for channel in present:
            _, (_, moved_alone) = self._sweep(cut, style, (channel,), days)
            if moved_alone:
                blamed = True
                self.moved[channel] |= {day.step for day in moved_alone}
                self._add(
                    "counterfactual",
                    channel,
                    moved_alone[0].through,
                    moved_alone[0],
                    moved_alone[0].detail,
                    len(moved_alone),
                )
        if not blamed and not repeated_fact:
            self._add(
                "counterfactual", None, moved[0].through, moved[0], moved[0].detail, len(moved)
            )

    def _sweep(
        self, cut: Cut, style: Style, channels: Collection[Channel], days: tuple[PlayedDay, ...]
    ) -> tuple[dict[str, Channel], Sweep]:
        canaries, future = self.futures.future(
            self.snapshot, cut, channels, style, self.config.seed, self.rows[-1]
        )
        spliced = SplicedSnapshot(
            self.snapshot,
            future,
            bars="bars" in channels,
            noisy=style == "noisy",
            seed=self.config.seed,
        )
        return canaries, self.subject.sweep(spliced, days)

    def _add(
        self,
        kind: Kind,
        channel: Channel | None,
        through: str,
        on: PlayedDay | Moved,
        detail: str,
        days: int = 1,
    ) -> None:
        """Add the first finding of a kind, channel and place, with its number of days."""
        for at, one in enumerate(self.findings):
            if (one.kind, one.channel, one.through) == (kind, channel, through):
                seen = max(one.days, days) if kind == "counterfactual" else one.days + 1
                self.findings[at] = msgspec.structs.replace(one, days=seen)
                return
        finding = LeakFinding(
            kind=kind,
            channel=channel,
            through=through,
            session=on.session,
            step=on.step,
            detail=detail,
            days=days,
        )
        self.findings.append(finding)


def _subject(
    name: str,
    agent: str | type[AgentClass] | Callable[[], Agent],
    params: Mapping[str, Value],
    benchmark: Benchmark,
    episode: EpisodeSpec,
) -> Subject:
    """Return the agent under test: a rule that answers directly, or an agent that queries a
    model.
    """
    if isinstance(agent, str) and "/" not in agent:
        if agent == "model":
            raise UserError(
                "a model must be given by its own name",
                hint="e.g. scripted/sensible or openai/gpt-4.1",
            )
        if converses(agent):
            opening = Opening(
                benchmark=benchmark.id, label=name, settings=protocol_config(benchmark)
            )
            opened = partial(make_conversing(agent, params).open, opening)
            subject: Subject = ModelSubject(name, opened, benchmark, episode)
        else:
            subject = RuleSubject(name, lambda: make_agent(agent, params), benchmark, episode)
        subject.own_code = files_open(agent, params)
        return subject
    if isinstance(agent, str):
        settings = make_config("model", ModelConfig, {"model": agent, **params})
        assert isinstance(settings, ModelConfig)
        model_settings = model_params(settings, protocol_config(benchmark))
        check_model(agent)  # An unavailable model would look like a model that never trades.
        return ModelSubject(agent, partial(open_model, agent, model_settings), benchmark, episode)
    config = getattr(agent, "Config", None)
    if config is None:
        return RuleSubject(name, agent, benchmark, episode)
    agent_class: Callable[..., Agent] = agent
    # Each run gets a new config, because an agent may modify its config.
    return RuleSubject(
        name, lambda: agent_class(make_config(name, config, params)), benchmark, episode
    )


def _window(
    benchmark: Benchmark, snapshot: Snapshot, window: Window | None, sessions: int | None
) -> tuple[Benchmark, bool]:
    """Return the benchmark limited to the tested sessions, and whether these are all sessions."""
    market = benchmark.market
    first, last = (market.first, market.last) if window is None else (window.first, window.last)
    every = snapshot.rows(first, last)
    rows = every[:sessions]
    if len(rows) < 2:
        hint = "widen the window"
        raise UserError(
            "a leak test needs two sessions: one to decide in, one to rewrite", hint=hint
        )
    days = snapshot.sessions
    market = msgspec.structs.replace(market, first=str(days[rows[0]]), last=str(days[rows[-1]]))
    return msgspec.structs.replace(benchmark, market=market), len(rows) == len(every)


# -- every agent of a run --------------------------------------------------------------------------


def leak_tests(
    run: Run,
    *,
    agents: Sequence[str] = (),
    config: LeakTestConfig | None = None,
    say: Callable[[str], None] | None = None,
    spread: Spread = HERE,
) -> dict[str, LeakTestReport]:
    """Return the leak tests of a run's agents by label.

    Each agent is tested in the first setting in which it can run again. ``agents`` selects agents;
    if empty, all agents are tested. Rules run again. Models are not queried: their recorded answers
    are replayed. Agents that connect over a network, and agents that cannot run again, are left
    out.
    """
    say = say or (lambda _: None)
    labels = dict.fromkeys(
        episode.label for episode in run.episodes if not agents or episode.label in agents
    )
    waiting = {label: _testable(run, label) for label in labels}
    modules, own_script = modules_of(run.episodes)
    # Agents from the caller's own script are registered in this process only.
    spread = HERE if own_script else msgspec.structs.replace(spread, modules=modules)
    reports: dict[str, LeakTestReport] = {}
    with StoredFutures() as futures:
        # All agents of a market share its alternative futures. Each process writes its own copy.
        shared = futures if spread.executor == "inline" else None
        test = partial(_test_of_episode, run, config=config, futures=shared)
        while keys := {
            label: key
            for label, keys_left in waiting.items()
            if (key := next(keys_left, None)) is not None
        }:
            say(f"leak test of {', '.join(keys)} ...")
            for label, report in zip(keys, spread.map(test, [*keys.values()]), strict=True):
                if isinstance(report, LeakTestReport):
                    reports[label] = report
                else:
                    say(f"no leak test of {label}: {report}")
            # An agent that cannot run again in one setting may run again in another.
            waiting = {
                label: keys_left
                for label, keys_left in waiting.items()
                if label in keys and label not in reports
            }
    return {label: reports[label] for label in labels if label in reports}


def _test_of_episode(
    run: Run, key: str, config: LeakTestConfig | None, futures: StoredFutures | None
) -> LeakTestReport | str:
    """Return the leak test of a recorded episode over its sessions, or why it cannot run again.

    ``futures`` contains the alternative futures that are shared with other agents of the same
    market. A rule runs again. A model is not queried: its recorded answers are replayed, and its
    messages in alternative futures are compared with the true messages. Raises :class:`UserError`
    if the rules of the venue have changed.
    """
    run.manifest.refuse_other_venue(run.episode(key).benchmark)
    config = config or LeakTestConfig()
    episode = run.episode(key)
    agent = episode.agent
    try:
        snapshot = run.snapshot(key)  # raises if the data has changed
        cut, whole = _window(run.manifest.benchmark(episode), snapshot, None, config.sessions)
        if episode.by_model or converses(agent.name):
            answers = {(line.step, line.index): line.reply for line in run.dialogue(key)}
            subject: Subject = ModelSubject(
                episode.label, None, cut, episode, answers, run.manifest.secret
            )
        else:
            subject = RuleSubject(
                episode.label, lambda: make_agent(agent.name, agent.params), cut, episode
            )
        subject.own_code = files_open(agent.name, agent.params)
        with StoredFutures() if futures is None else nullcontext(futures) as shared:
            return _Trial(subject, cut, snapshot, config, shared, whole).report()
    except RunError as error:
        return str(error)


def _testable(run: Run, label: str) -> Iterator[str]:
    """Yield an agent's episodes that can run again free of charge and without an external
    service.
    """
    for episode in run.episodes:
        if episode.label != label or run.series(episode.key).failure is not None:
            continue
        name, answered = episode.agent.name, episode.by_model or converses(episode.agent.name)
        if answered or not isinstance(make_agent(name, episode.agent.params), CostlyAgent):
            yield episode.key
