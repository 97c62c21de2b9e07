"""Events of a run, sent to a listener: a bar, plain lines, or a caller's own function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TextIO

import msgspec

from tradeassay.core.dialogue import Usage
from tradeassay.runs.play.talk import Talk
from tradeassay.runs.store.outcome import Status

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import ProgressColumn, Task, TaskID

Phase = Literal["data", "play", "score"]
_PHASES: dict[Phase, str] = {"data": "preparing data", "play": "playing", "score": "scoring"}
_THINGS: dict[Phase, str] = {"data": "data sets", "play": "episodes", "score": "agents"}


class PhaseStarted(msgspec.Struct, frozen=True, kw_only=True, tag="phase"):
    """A part of the run begins: ``total`` things to do, ``sessions`` to play in all of them."""

    phase: Phase
    total: int
    sessions: int = 0


class Advanced(msgspec.Struct, frozen=True, kw_only=True, tag="advanced"):
    """More sessions of an episode were played."""

    key: str
    sessions: int


class AskStarted(msgspec.Struct, frozen=True, kw_only=True, tag="asked"):
    """A model is being asked: which agent, in which episode and session, for what."""

    key: str
    agent: str
    session: str
    purpose: str
    attempt: int = 1


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag="answered"):
    """An answer came (or, with ``error_kind``, none did), and this is what it cost."""

    key: str
    usage: Usage
    error_kind: str | None = None


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """One thing of the present phase is done (or an episode failed); ``words`` say what came of a program."""

    key: str
    status: Status = "done"
    error: str | None = None
    words: str = ""


class RunEnded(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """Nothing follows; ``complete`` is False when the run was stopped, and ``hint`` says how to go on."""

    complete: bool
    hint: str | None = None


_FEWEST_SESSIONS = 3
"""Sessions in which a pace shows, over at least two stretches between lines."""
_REMEMBERED = 360
"""Lines whose pace is kept: a model may take an hour for a session."""
ProgressEvent = PhaseStarted | Advanced | AskStarted | Answered | Finished | RunEnded
Listener = Callable[[ProgressEvent], None]
ProgressChoice = Listener | Literal["auto", "bar", "lines", "none"]
Told = Callable[[str, int, int | None], None]
"""Hears how far something is: what is counted, how many are done, of how many if that is known."""


class PacedCount:
    """Says "12 of 40 episodes" every ``interval`` seconds, and nothing where the work is over before that."""

    def __init__(
        self, say: Callable[[str], None], *, interval: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._interval, self._clock = say, interval, clock
        self._spoke = clock()

    def __call__(self, what: str, done: int, total: int | None = None) -> None:
        """Take note; safe to call from several threads."""
        now = self._clock()
        if now - self._spoke >= self._interval:
            self._spoke = now
            self._say(f"{done} {what}" if total is None else f"{done} of {total} {what}")


def silent(event: ProgressEvent) -> None:
    """Ignore all events."""


def listener(choice: ProgressChoice, stream: TextIO | None = None) -> Listener:
    """Return a listener: ``auto`` is a bar on a terminal and plain lines elsewhere, both on stderr."""
    if callable(choice):
        return choice
    stream = stream or sys.stderr
    if choice == "none":
        return silent
    if choice == "bar" or (choice == "auto" and stream.isatty()):
        return BarListener(stream)
    return LineListener(stream)


class LineListener:
    """One line per phase, per failure, and every ``interval`` seconds in between."""

    def __init__(
        self, stream: TextIO, *, interval: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._interval = interval
        self._clock = clock
        self._phase = PhaseStarted(phase="data", total=0)
        self._began = self._spoke = clock()
        self._done = 0
        self._sessions = 0
        self._pace = [(self._began, 0)]
        self._talk = Talk()

    def __call__(self, event: ProgressEvent) -> None:
        """Take note of one event and perhaps say something."""
        if isinstance(event, PhaseStarted):
            self._phase = event
            self._began = self._spoke = self._clock()
            self._done = self._sessions = 0
            self._pace = [(self._began, 0)]
            if event.total:
                self._say(f"{_PHASES[event.phase]}: {event.total} {_THINGS[event.phase]}")
        elif isinstance(event, Advanced):
            self._sessions += event.sessions
        elif isinstance(event, Finished):
            self._done += 1
            if event.status == "failed":
                self._say(f"failed: {event.key}: {event.error}")
            elif event.words:
                self._say(f"{self._done} of {self._phase.total}: {event.key}: {event.words}")
            self._talk.left(event.key)
        elif isinstance(event, AskStarted):
            self._talk.asked(event.key, event.agent, event.session, event.purpose)
        elif isinstance(event, Answered):
            self._talk.answered(event.usage)
        else:
            self._ended(event)
        if self._clock() - self._spoke >= self._interval and not isinstance(event, RunEnded):
            self._spoke = self._clock()
            self._say(self._state())

    def _state(self) -> str:
        text = f"{_PHASES[self._phase.phase]}: {self._done} of {self._phase.total}"
        rate = self._rate()
        if self._phase.sessions and rate > 0:
            left = max(0, self._phase.sessions - self._sessions) / rate
            text += f", {rate:,.{0 if rate >= 1 else 2}f} days/s, {left:,.0f} s left"
        return text + (f"; {self._talk.words()}" if self._talk.spending.calls else "")

    def _rate(self) -> float:
        """Return sessions per second of late: rules are done in a moment, and models after them take hours."""
        now = self._clock()
        spans = [(now - then, self._sessions - sessions) for then, sessions in reversed(self._pace)]
        enough = (at for at, (_, sessions) in enumerate(spans) if at and sessions >= _FEWEST_SESSIONS)
        seconds, sessions = spans[next(enough, len(spans) - 1)]
        self._pace = [*self._pace[-_REMEMBERED:], (now, self._sessions)]
        return sessions / seconds if seconds > 0 else 0.0

    def _ended(self, event: RunEnded) -> None:
        if self._talk.spending.calls:
            self._say(f"asked models: {self._talk.spending.words()}")
        if event.hint:
            self._say(event.hint)

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class BarListener:
    """A live bar: episodes, days per second, time left; below it, who is asking what, calls, tokens, dollars."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._failed = 0
        self._done = 0
        self._bar: RichProgress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[episodes]}"),
            _days_per_second(),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=Console(file=stream),
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, episodes="", counts=False)
        self._talk = Talk()
        self._second: TaskID | None = None
        self._phase = PhaseStarted(phase="data", total=0)

    def __call__(self, event: ProgressEvent) -> None:
        """Move the bar."""
        if isinstance(event, PhaseStarted):
            self._phase = event
            self._done = 0
            self._bar.start()
            self._bar.reset(
                self._task, total=event.sessions or event.total, description=_PHASES[event.phase],
                counts=bool(event.sessions), episodes=self._episodes(),
            )  # fmt: skip
        elif isinstance(event, Advanced):
            if self._phase.sessions:
                self._bar.advance(self._task, event.sessions)
        elif isinstance(event, Finished):
            self._done += 1
            if event.status == "failed":
                self._failed += 1
                self._bar.console.print(f"failed: {event.key}: {event.error}", markup=False, highlight=False)
            self._bar.update(self._task, advance=0 if self._phase.sessions else 1, episodes=self._episodes())
            self._talk.left(event.key)
        elif isinstance(event, AskStarted):
            self._talk.asked(event.key, event.agent, event.session, event.purpose)
            self._show_talk()
        elif isinstance(event, Answered):
            self._talk.answered(event.usage)
            self._show_talk()
        else:
            self._ended(event)

    def _show_talk(self) -> None:
        if self._second is None:
            self._second = self._bar.add_task("models", total=None, episodes="", counts=False)
        self._bar.update(self._second, description=self._talk.spending.words(), episodes=self._talk.who())

    def _ended(self, event: RunEnded) -> None:
        self._bar.stop()
        if self._talk.spending.calls:
            self._bar.console.print(
                f"asked models: {self._talk.spending.words()}", markup=False, highlight=False, soft_wrap=True
            )
        if event.hint:
            self._bar.console.print(event.hint, markup=False, highlight=False, soft_wrap=True)

    def _episodes(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        return f"{self._done}/{self._phase.total} {_THINGS[self._phase.phase]}{failed}"


def _days_per_second() -> ProgressColumn:
    from rich.progress import ProgressColumn
    from rich.text import Text

    class DaysPerSecond(ProgressColumn):
        def render(self, task: Task) -> Text:
            if not task.fields.get("counts") or not task.speed:
                return Text("")
            return Text(f"{task.speed:,.0f} days/s")

    return DaysPerSecond()
