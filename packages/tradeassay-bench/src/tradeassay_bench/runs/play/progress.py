"""Report the progress of a run to a listener: a bar, plain lines, or a caller's function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TextIO

import msgspec

from tradeassay.core.errors import UserError
from tradeassay_bench.core.dialogue import Usage
from tradeassay_bench.play.dialogue_log import Spending
from tradeassay_bench.runs.store.outcome import Outcome, Played, Status

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress, Task, TaskID

Phase = Literal["data", "play", "score"]
_PHASES: dict[Phase, tuple[str, str]] = {
    "data": ("preparing data", "data sets"),
    "play": ("playing", "episodes"),
    "score": ("scoring", "agents"),
}
"""The verb and the plural noun that describe each phase."""


class PhaseStarted(msgspec.Struct, frozen=True, kw_only=True, tag="phase"):
    """The event that a phase of the run begins.

    ``total`` is the number of items (data sets, episodes or agents). ``sessions`` is the number of
    sessions in all episodes together; 0 if unknown.
    """

    phase: Phase
    total: int
    sessions: int = 0


class Advanced(msgspec.Struct, frozen=True, kw_only=True, tag="advanced"):
    """The event that an episode has completed ``sessions`` more sessions."""

    key: str
    sessions: int


class AskStarted(msgspec.Struct, frozen=True, kw_only=True, tag="asked"):
    """The event that a model is queried, with the episode, the session and the purpose."""

    key: str
    agent: str
    session: str
    purpose: str
    attempt: int = 1


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag="answered"):
    """The event that a query has ended, with its cost. ``error_kind`` is None if it succeeded."""

    key: str
    usage: Usage
    error_kind: str | None = None


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The event that an item of the current phase is done, or that an episode has failed.

    ``error`` is the reason for a failure. ``words`` is the result of an episode of programs.
    """

    key: str
    status: Status = "done"
    error: str | None = None
    words: str = ""


class RunEnded(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """The last event of a run.

    ``complete`` is False if the run was stopped. ``hint`` states how to continue the run.
    """

    complete: bool
    hint: str | None = None


_FEWEST_SESSIONS = 3
"""The minimum number of sessions for computing a speed."""
_REMEMBERED = 360
"""The maximum number of earlier lines that are stored, to compute the recent speed."""
_MOST_SHOWN = 3
"""The maximum number of displayed open questions."""
ProgressEvent = PhaseStarted | Advanced | AskStarted | Answered | Finished | RunEnded
Listener = Callable[[ProgressEvent], None]
ProgressChoice = Listener | Literal["auto", "bar", "lines", "none"]
CountListener = Callable[[str, int, int | None], None]
"""A function that is called with the kind of item, the number done, and the total if it is known.
"""


@dataclass(eq=False)
class RunWatch:
    """Notifies the listener of the events of a run, and measures episodes and phases in seconds."""

    listen: Listener
    episode_seconds: dict[str, float] = field(default_factory=dict)
    phase_seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: Phase, *, total: int, sessions: int = 0) -> Iterator[None]:
        """Notify the listener of the start of a phase, and record its duration."""
        began = time.perf_counter()
        self.listen(PhaseStarted(phase=name, total=total, sessions=sessions))
        try:
            yield
        finally:
            self.phase_seconds[name] = time.perf_counter() - began

    def tick(self, key: str, sessions: int) -> None:
        """Notify the listener of completed sessions."""
        self.listen(Advanced(key=key, sessions=sessions))

    def played(self, key: str, played: Played) -> None:
        """Record the wall time of an episode, and notify the listener if it has ended."""
        self.episode_seconds[key] = played.seconds
        if played.outcome is not None:
            self.finished(key, played.outcome)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Notify the listener of an outcome."""
        words = "" if isinstance(outcome.program, msgspec.UnsetType) else outcome.words
        self.listen(Finished(key=key, status=outcome.status, error=outcome.error, words=words))


class PacedCount:
    """Reports "12 of 40 episodes" to ``say`` once per ``interval`` seconds.

    Work that takes less than ``interval`` seconds is not reported.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        interval: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._interval, self._clock = say, interval, clock
        self._spoke = clock()

    def __call__(self, what: str, done: int, total: int | None = None) -> None:
        now = self._clock()
        if now - self._spoke >= self._interval:
            self._spoke = now
            self._say(f"{done} {what}" if total is None else f"{done} of {total} {what}")


def listener(choice: ProgressChoice, stream: TextIO | None = None) -> Listener:
    """Return the listener for a choice. A function is returned unchanged.

    ``auto`` is a bar if ``stream`` (default stderr) is a terminal, else plain lines. Raises
    :class:`UserError` for an unknown choice.
    """
    if callable(choice):
        return choice
    stream = stream or sys.stderr
    if choice == "none":
        return lambda event: None
    if choice not in ("auto", "bar", "lines"):
        raise UserError(
            f"progress cannot be {choice!r}", hint="use auto, bar, lines, none, or a function"
        )
    if choice == "bar" or (choice == "auto" and stream.isatty()):
        return BarListener(stream)
    return LineListener(stream)


@dataclass(eq=False)
class _Counts:
    """The state of a listener: the phase, the numbers of finished items, and the open questions."""

    phase: PhaseStarted = field(default_factory=lambda: PhaseStarted(phase="data", total=0))
    done: int = 0
    sessions: int = 0
    failed: int = 0
    spending: Spending = field(default_factory=Spending)
    _asking: dict[str, str] = field(default_factory=dict)

    def add(self, event: ProgressEvent) -> None:
        """Update the state with an event."""
        if isinstance(event, PhaseStarted):
            self.phase, self.done, self.sessions = event, 0, 0
        elif isinstance(event, Advanced):
            self.sessions += event.sessions
        elif isinstance(event, Finished):
            self.done += 1
            self.failed += event.status == "failed"
            self._asking.pop(event.key, None)
        elif isinstance(event, AskStarted):
            self._asking[event.key] = f"{event.agent} {event.session} {event.purpose}"
        elif isinstance(event, Answered):
            self.spending = self.spending.plus(event.usage)

    def ending(self, event: RunEnded) -> Iterator[str]:
        """Yield the last lines of the output: the cost of all queries, and the hint."""
        if self.spending.calls:
            yield f"asked: {self.spending.words()}"
        if event.hint:
            yield event.hint

    def who(self) -> str:
        """Return the open questions as text: agent, session and purpose of each."""
        shown = list(self._asking.values())[:_MOST_SHOWN]
        more = len(self._asking) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


class LineListener:
    """A listener that prints lines: for every phase, for every failure, and at intervals.

    ``interval`` is the minimum time between two lines about progress, in seconds.
    """

    def __init__(
        self, stream: TextIO, *, interval: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream, self._interval, self._clock = stream, interval, clock
        self._counts = _Counts()
        self._spoke = clock()
        self._pace = [(self._spoke, 0)]

    def __call__(self, event: ProgressEvent) -> None:
        counts = self._counts
        counts.add(event)
        said: list[str] = []
        if isinstance(event, PhaseStarted):
            self._spoke = self._clock()
            self._pace = [(self._spoke, 0)]
            doing, things = _PHASES[event.phase]
            if event.total:
                said.append(
                    f"{doing}: {event.total} {things.removesuffix('s' if event.total == 1 else '')}"
                )
        elif isinstance(event, Finished):
            if event.status == "failed":
                said.append(f"failed: {event.key}: {event.error}")
            elif event.words:
                said.append(f"{counts.done} of {counts.phase.total}: {event.key}: {event.words}")
        elif isinstance(event, RunEnded):
            said += counts.ending(event)
        now = self._clock()
        if not isinstance(event, RunEnded) and now - self._spoke >= self._interval:
            self._spoke = now
            text = f"{_PHASES[counts.phase.phase][0]}: {counts.done} of {counts.phase.total}"
            # The speed is measured over recent sessions, because rules run first and are fast, and
            # models take hours.
            spans = [
                (now - then, counts.sessions - sessions) for then, sessions in reversed(self._pace)
            ]
            enough = (
                at for at, (_, sessions) in enumerate(spans) if at and sessions >= _FEWEST_SESSIONS
            )
            seconds, sessions = spans[next(enough, len(spans) - 1)]
            self._pace = [*self._pace[-_REMEMBERED:], (now, counts.sessions)]
            rate = sessions / seconds if seconds > 0 else 0.0
            if counts.phase.sessions and rate > 0:
                left = max(0, counts.phase.sessions - counts.sessions) / rate
                text += f", {rate:,.{0 if rate >= 1 else 2}f} days/s, {left:,.0f} s left"
            if counts.spending.calls:
                text += f"; {counts.spending.words()}" + (
                    f"; {who}" if (who := counts.who()) else ""
                )
            said.append(text)
        for line in said:
            print(line, file=self._stream, flush=True)


class BarListener:
    """A listener that displays a live bar with episodes, days per second and the remaining time.

    A second line displays calls, tokens, dollars and open questions.
    """

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class DaysPerSecond(ProgressColumn):
            def render(self, task: Task) -> Text:
                return Text(
                    f"{task.speed:,.0f} days/s" if task.fields.get("counts") and task.speed else ""
                )

        self._counts = _Counts()
        self.bar: RichProgress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[episodes]}"),
            DaysPerSecond(),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=Console(file=stream),
            transient=True,
        )
        self._task = self.bar.add_task("", total=None, episodes="", counts=False)
        self._second: TaskID | None = None

    def __call__(self, event: ProgressEvent) -> None:
        counts, bar = self._counts, self.bar
        counts.add(event)
        failed = f", {counts.failed} failed" if counts.failed else ""
        episodes = f"{counts.done}/{counts.phase.total} {_PHASES[counts.phase.phase][1]}{failed}"
        if isinstance(event, PhaseStarted):
            bar.start()
            total, what = event.sessions or event.total, _PHASES[event.phase][0]
            bar.reset(
                self._task,
                total=total,
                description=what,
                counts=bool(event.sessions),
                episodes=episodes,
            )
        elif isinstance(event, Advanced):
            if counts.phase.sessions:
                bar.advance(self._task, event.sessions)
        elif isinstance(event, Finished):
            if event.status == "failed":
                self._say(f"failed: {event.key}: {event.error}")
            bar.update(self._task, advance=0 if counts.phase.sessions else 1, episodes=episodes)
        elif isinstance(event, RunEnded):
            bar.stop()
            for line in counts.ending(event):
                self._say(line)
        else:
            if self._second is None:
                self._second = bar.add_task("models", total=None, episodes="", counts=False)
            bar.update(self._second, description=counts.spending.words(), episodes=counts.who())

    def _say(self, text: str) -> None:
        self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
