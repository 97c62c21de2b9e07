"""Playing one episode: market + agent + day protocol, one journal line per decision.

An episode is always played from its first session. What the journal already holds is not written again but must
come out the same, to the byte; so a resumed episode continues from a state that was checked, not believed.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.agents import make_agent
from tradeassay.benchmarks import Benchmark, day, drive
from tradeassay.core.agent import Agent, CostlyAgent, EpisodeInfo, Observation
from tradeassay.core.errors import LedgerError, RunError
from tradeassay.core.events import ENCODER, StepRecord
from tradeassay.core.hashing import sha256_of
from tradeassay.core.orders import Decision
from tradeassay.data import Snapshot
from tradeassay.play import Market
from tradeassay.runs.atomic import remove_temporaries
from tradeassay.runs.episode import Episode
from tradeassay.runs.executors.base import Stopping, Tick
from tradeassay.runs.journal import BATCHED, EVERY_LINE, Journal, Line, encode_line
from tradeassay.runs.layout import RunFolder
from tradeassay.runs.outcome import Outcome, one_line, write_outcome
from tradeassay.runs.snapshots import snapshot_for
from tradeassay.runs.tasks import Played, PlayTask

_DECISION = msgspec.json.Decoder(Decision)


def play(task: PlayTask, tick: Tick, stopping: Stopping) -> Played:
    """Play an episode to its end and record how it ended.

    An episode that fails is recorded as failed. What is raised stops the whole run: :class:`LedgerError` (wrong
    money is worse than no result) and :class:`RunError` (the journal cannot be continued).
    """
    began = time.perf_counter()
    folder = RunFolder(Path(task.folder))
    key = task.episode.key
    folder.episode(key).mkdir(parents=True, exist_ok=True)
    with Journal(folder.events(key)) as journal:
        remove_temporaries(folder.episode(key))
        outcome = _play(task, journal, tick, stopping)
        journal.flush()
        if outcome is not None:
            write_outcome(folder.outcome(key), outcome)
    return Played(outcome=outcome, seconds=time.perf_counter() - began)


class Tally:
    """Counts steps and hashes lines while an episode is played."""

    def __init__(self) -> None:
        self.steps = 0
        self._unusable = 0
        self._reason = ""
        self._digest = hashlib.sha256()

    def add(self, record: StepRecord, raw: bytes) -> None:
        """Take one step."""
        self.steps += 1
        if record.decision.status == "failed":
            self._unusable += 1
            self._reason = self._reason or record.decision.reason
        self._digest.update(raw + b"\n")

    def ended(self) -> Outcome:
        """Return the outcome of an episode that was played to its end.

        An agent that never gave a usable answer has failed: its flat account is not a return of zero.
        """
        if self.steps == self._unusable:
            why = f" ({self._reason})" if self._reason else ""
            return self.failed(f"no usable answer in any of {self.steps} sessions{why}", None)
        return Outcome(status="done", steps=self.steps, events_sha256=self._digest.hexdigest())

    def failed(self, error: str, trace: str | None) -> Outcome:
        """Return the outcome of an episode that failed."""
        return Outcome(
            status="failed", steps=self.steps, events_sha256=self._digest.hexdigest(), error=error, traceback=trace
        )


def _play(task: PlayTask, journal: Journal, tick: Tick, stopping: Stopping) -> Outcome | None:
    """Play until the end, or until told to stop (None).

    Only what the agent and the market raise makes an episode fail. Trouble with the journal, or with whoever is
    told about progress, is not its fault and leaves it unfinished.
    """
    tally, known = Tally(), journal.lines
    records = _records(task, journal)
    while True:
        try:
            record = next(records)
        except StopIteration:
            break
        except (LedgerError, RunError):
            raise
        except Exception as error:
            return tally.failed(one_line(error), "".join(traceback.format_exception(error)))
        raw = encode_line(record)
        if tally.steps < len(known):
            _must_match(task.episode.key, known[tally.steps], raw)
        else:
            journal.append(raw)
        tally.add(record, raw)
        tick(1)
        if stopping():
            return None
    if tally.steps < len(known):
        raise RunError(
            f"the journal of {task.episode.key} has {len(known)} steps, its window only {tally.steps}",
            mend="delete the episode's folder and resume: it is played again",
        )
    return tally.ended()


def _records(task: PlayTask, journal: Journal) -> Iterator[StepRecord]:
    snapshot = snapshot_for(task.episode.dataset, task.home, task.data_sha256)
    agent = make_agent(task.episode.agent.name, task.episode.agent.params)
    journal.policy = EVERY_LINE if isinstance(agent, CostlyAgent) else BATCHED
    yield from steps(snapshot, task.benchmark, task.episode, agent, journal.lines)


def steps(
    snapshot: Snapshot, benchmark: Benchmark, episode: Episode, agent: Agent, known: Sequence[Line] = ()
) -> Iterator[StepRecord]:
    """Yield the records of an episode. A costly agent is told its ``known`` decisions instead of being asked."""
    market = Market(snapshot, benchmark.market)
    observation: Observation | None = market.reset()
    assert observation is not None
    agent.begin(
        EpisodeInfo(episode=episode.key, seed=episode.seed, rules=observation.rules),
        episode_rng(episode, snapshot.name),
    )
    count = 0
    while observation is not None:
        if count < len(known) and isinstance(agent, CostlyAgent):
            decision = known[count].record.decision
            agent.recall(observation, decision)
        else:
            decision = as_recorded(drive(day(observation, benchmark.day), agent))
        step = market.step(decision)
        yield step.record
        observation = step.observation
        count += 1


def as_recorded(decision: Decision) -> Decision:
    """Return a decision as it will be read from the journal, where an amount of 100 is 100.0.

    The market gets exactly this, so that what happens live and what a replay gives cannot differ.
    """
    return _DECISION.decode(ENCODER.encode(decision)) if decision.orders else decision


def episode_rng(episode: Episode, dataset: str) -> np.random.Generator:
    """Return the generator an agent may use: its own for every benchmark, data set, agent and seed.

    ``dataset`` is the data's name, not its content: a change of tomorrow's prices must not change today's dice.
    """
    words = sha256_of((episode.benchmark, dataset, episode.agent.name, episode.agent.params, episode.seed))
    return np.random.Generator(np.random.PCG64(int(words, 16)))


def _must_match(key: str, line: Line, raw: bytes) -> None:
    if line.raw != raw:
        raise RunError(
            f"step {line.record.step} of {key} ({line.record.session}) does not come out as the journal says",
            mend="the agent is not deterministic or the journal was edited: delete the episode's folder, resume",
        )
