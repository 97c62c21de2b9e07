"""Change the displayed past and repeat a share of a run's decisions in the changed markets.

An agent that uses its data must then decide differently. There are five arms: nothing changed (to
measure the agent's repeatability), returns mirrored, series exchanged between names, good and bad
news exchanged, and the true series under a false date. Each arm is a complete market. The recorded
decisions are executed up to the decision that is repeated. The test compares decisions. It uses no
returns.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, above, not_scored
from tradeassay_bench.agents import make_agent
from tradeassay_bench.benchmarks import Benchmark
from tradeassay_bench.benchmarks.daily import ByObservation
from tradeassay_bench.core.agent import AskDecision, Observation
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.drive import adrive, drive
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.data import Panel, Snapshot, open_snapshot, write_snapshot
from tradeassay_bench.data.store.read import read_panel
from tradeassay_bench.examine.asking import Asker, AskOne
from tradeassay_bench.examine.memory.contrast import BRIGHT, arm_of
from tradeassay_bench.examine.memory.recall import episodes_of
from tradeassay_bench.examine.memory.scoring import clustered_mean
from tradeassay_bench.llm import QuestionPlace
from tradeassay_bench.play import AddressedQuestion, Episode as Play
from tradeassay_bench.play.episode import addressed, by_observation
from tradeassay_bench.runs.play.episodes import conversation_rng, episode_rng
from tradeassay_bench.runs.spec.episode import Asking, EpisodeSpec, open_protocol, params_for

if TYPE_CHECKING:
    from tradeassay_bench.runs import Run

COUNTERFACTUAL = "counterfactual-v1"
Arm = Literal["again", "prices", "names", "news", "date"]
ARMS: dict[Arm, str] = {
    "again": "nothing changed: how often it says the same twice",
    "prices": "returns mirrored: what rose fell (true names, true date, false series)",
    "names": "each series under another name (true date)",
    "news": "good news for bad",
    "date": "the true series under a false date",
}
_MATTERS = 0.25
"""The minimum drop in similarity that shows a dependence on the changed data."""


class CounterfactualConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of a study.

    It repeats a ``share`` of the decisions, drawn with ``seed``, and at least ten if the run has
    ten.
    """

    share: Annotated[float, Meta(gt=0.0, le=1.0)] = 0.2
    seed: Annotated[int, Meta(ge=0)] = 0
    arms: tuple[Arm, ...] = tuple(ARMS)
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95


class ReaskedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One repeated decision: the recorded and the repeated orders, as directions by name.

    ``moved`` contains the recorded orders under the new names of their series. ``failed`` is true
    if one of the two answers was unusable.
    """

    arm: Arm
    episode: str
    session: str
    recorded: dict[str, float]
    now: dict[str, float]
    moved: dict[str, float]
    confidence: float | None
    confidence_now: float | None
    failed: bool = False


class CounterfactualArm(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one change.

    ``same`` is the similarity of decisions to the recorded decisions: 1 for the same orders and -1
    for the opposite. ``depends`` is the drop in similarity from the unchanged arm. ``confidence``
    is the mean change of confidence.
    """

    arm: Arm
    how: str
    asked: int
    same: Measure
    depends: Measure
    confidence: Measure


class CounterfactualReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a study: whether an agent's decisions depend on its data.

    ``unread`` is the similarity of decisions under mirrored returns. ``names`` is the similarity to
    the recorded names minus the similarity to the recorded series, when series are exchanged
    between names. ``by_name`` is true if the decisions significantly follow the name or the date
    instead of the series.
    """

    format: str = COUNTERFACTUAL
    model: str
    run: str
    config: CounterfactualConfig
    arms: tuple[CounterfactualArm, ...]
    unread: Measure
    names: Measure
    by_name: bool
    sentence: str
    usd: float | None
    notes: tuple[str, ...]
    decisions: tuple[ReaskedDecision, ...]


def counterfactual_study(
    run: Run,
    agent: str,
    *,
    config: CounterfactualConfig | None = None,
    asking: Asking | None = None,
    home: Path | None = None,
    say: Callable[[str], None] | None = None,
) -> CounterfactualReport:
    """Repeat a share of an agent's decisions in changed markets and report how they differ.

    A rule runs again. Raises :class:`UserError` for an agent that the run does not have, and if the
    rules of a venue have changed since the run. Raises :class:`ModelError` if a model does not
    answer.
    """
    config, asker, say = (
        config or CounterfactualConfig(),
        Asker(asking, home),
        say or (lambda _: None),
    )
    episodes, notes = _asked_about(run, agent)
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as folder:
        asked = asyncio.run(_study(run, episodes, config, asker, Path(folder), notes, say))
    spent = asker.usd if episodes[0].by_model else 0.0
    name = run.names[episodes[0].label]
    return score_counterfactual(
        asked, model=name, run=run.spec.name, config=config, usd=spent, notes=notes
    )


def study_again(run: Run, record: CounterfactualReport, asked: bool) -> CounterfactualReport:
    """Recompute a study from its seed and return the result.

    If ``asked`` is true, the agent is queried again. Otherwise the recorded answers are scored
    again. Raises :class:`UserError` if its decisions differ from those that its seed draws.
    """
    if asked:
        home = Path(run.home) if run.home else None
        again = counterfactual_study(run, record.model, config=record.config, home=home)
        return msgspec.structs.replace(again, usd=record.usd)
    given = {(one.arm, one.episode, one.session): one for one in record.decisions}
    found: list[ReaskedDecision] = []
    episodes, notes = _asked_about(run, record.model)
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as folder:
        for number, episode in enumerate(episodes):
            benchmark, place = run.manifest.benchmark(episode), Path(folder) / str(number)
            for one in _changed_markets(
                run.snapshot(episode.key), benchmark, record.config, place, notes
            ):
                found += _Reasking(run, episode, benchmark, one, record.config).believed(given)
    if len(found) != len(record.decisions):
        raise UserError(
            "its decisions differ from those drawn with its seed", hint="do not rely on this study"
        )
    return score_counterfactual(
        found, model=record.model, run=record.run, config=record.config, usd=record.usd, notes=notes
    )


def _asked_about(run: Run, agent: str) -> tuple[list[EpisodeSpec], list[str]]:
    """Return the episodes of an agent whose decisions can be repeated, with notes on all others."""
    episodes = [one for one in run.episodes if agent == one.label] or episodes_of(run, agent)
    episodes = [one for one in episodes if run.series(one.key).failure is None]
    if not episodes:
        raise UserError(f"{agent} has no result in {run.folder}", hint="run it again")
    # Under a mask no agent can answer by name. Only decisions with visible names and dates are
    # repeated.
    talks = run.manifest.protocols
    bright = [
        one
        for one in episodes
        if one.setting not in talks or arm_of(talks[one.setting].config) == BRIGHT
    ]
    for episode in bright or episodes:
        run.manifest.refuse_other_venue(episode.benchmark)
    return bright or episodes, [] if bright else [
        "every play was masked: answering by name cannot show"
    ]


async def _study(
    run: Run,
    episodes: Sequence[EpisodeSpec],
    config: CounterfactualConfig,
    asker: Asker,
    folder: Path,
    notes: list[str],
    say: Callable[[str], None],
) -> list[ReaskedDecision]:
    """Repeat the drawn decisions of all episodes in every changed market and return them."""
    found: list[ReaskedDecision] = []
    for number, episode in enumerate(episodes):
        benchmark = run.manifest.benchmark(episode)
        changed = _changed_markets(
            run.snapshot(episode.key), benchmark, config, folder / str(number), notes
        )
        say(f"{episode.key}: {', '.join(one.arm for one in changed)}")
        if not episode.by_model:
            changed = [one for one in changed if one.words is str]
            notes.append("a rule reads no text: news and dates were left as they are")
        works = [_Reasking(run, episode, benchmark, one, config) for one in changed]
        if not episode.by_model:
            for work in works:
                found.extend(work.by_rule())
            continue
        asker.check(episode.model)
        async with asker.open(episode.model, params_for(episode, benchmark)) as ask:
            for made in await asyncio.gather(*(work.by_model(ask) for work in works)):
                found += made
    return found


class _Changed(NamedTuple):
    """A changed market.

    ``names`` maps each series to its displayed name. ``words`` is a function that changes texts.
    """

    arm: Arm
    snapshot: Snapshot
    names: Mapping[str, str]
    words: Callable[[str], str]


def _changed_markets(
    snapshot: Snapshot,
    benchmark: Benchmark,
    config: CounterfactualConfig,
    folder: Path,
    notes: list[str],
) -> list[_Changed]:
    """Return the changed markets of a study. Adds notes on arms that are not possible."""
    panel = read_panel(snapshot.folder)
    row = max(
        0, int(np.searchsorted(panel.sessions, np.datetime64(benchmark.market.first, "D"))) - 1
    )
    made = []
    for arm in config.arms:
        names: Mapping[str, str] = {}
        other = None
        if arm == "prices":
            other = mirrored(panel, row)
        elif arm == "names":
            other, names = exchanged_names(panel, row, config.seed)
        elif arm == "news" and not panel.news:
            notes.append("news was not turned: the data set has none")
            continue
        if other is not None:
            write_snapshot(
                other, folder / arm, allow_faults=True
            )  # the run's own data may have news
        words = {"news": turned_words, "date": shifted_dates}.get(arm, str)
        made.append(
            _Changed(arm, snapshot if other is None else open_snapshot(folder / arm), names, words)
        )
    return made


def mirrored(panel: Panel, row: int) -> Panel:
    """Return a market with the sign of every return reversed and prices at ``row`` unchanged.

    Dividends and splits are left out, because they would have to be mirrored too.
    """
    start = panel.bars["close"][row]
    start = np.where(np.isfinite(start), start, np.nanmedian(panel.bars["close"], axis=0))
    other = {"high": "low", "low": "high"}
    bars = dict(panel.bars)
    for name in ("open", "high", "low", "close"):
        bars[name] = start**2 / panel.bars[other.get(name, name)]  # type: ignore[index]  # the four prices
    levels = {
        name: values[row] ** 2 / values
        for name, values in panel.indices.items()
        if np.isfinite(values[row])
    }
    return replace(panel, bars=bars, indices=levels, actions=())


def exchanged_names(panel: Panel, row: int, seed: int) -> tuple[Panel, dict[str, str]]:
    """Return a market with series exchanged between names, and the new name of each series.

    A series has the price level of its new name at ``row``. Names with prices on different sessions
    are unchanged. Raises :class:`UserError` for fewer than two names.
    """
    closes = panel.bars["close"]
    there = np.isfinite(closes)
    # Only names with prices on the same sessions are exchanged: a series cannot begin before its
    # name is listed.
    groups: dict[bytes, list[int]] = {}
    for column in np.flatnonzero(there[row:].any(axis=0)).tolist():
        groups.setdefault(np.packbits(there[:, column]).tobytes(), []).append(column)
    whole = np.array(max(groups.values(), key=len, default=[]), dtype=np.int64)
    if whole.size < 2:
        raise UserError(
            "no two names have prices on the same sessions", hint="leave the arm 'names' out"
        )
    order = np.random.default_rng([seed, 30]).permutation(whole)
    source = np.arange(len(panel.listings))
    source[order] = np.roll(order, 1)  # no name keeps its own series
    scale = closes[row] / closes[row, source]
    scale[source == np.arange(source.size)] = 1.0
    bars = dict(panel.bars)
    for name in ("open", "high", "low", "close"):
        bars[name] = panel.bars[name][:, source] * scale
    symbols = panel.symbols
    carried = {symbols[int(source[k])]: symbols[k] for k in range(source.size)}
    return replace(panel, bars=bars, suspended=panel.suspended[:, source], actions=()), carried


_OPPOSITES = (
    "beats/misses raises/cuts rises/falls rose/fell up/down gains/losses gain/loss profit/loss "
    "strong/weak "
    "growth/decline record/poor upgrade/downgrade upgraded/downgraded upgrades/downgrades "
    "higher/lower "
    "above/below positive/negative increase/decrease increases/decreases increased/decreased "
    "wins/loses "
    "surges/plunges jumps/drops rally/slump better/worse best/worst good/bad bullish/bearish "
    "approves/rejects"
)
_TURNED: dict[str, str] = {}
for _pair in reversed(_OPPOSITES.split()):
    _one, _other = _pair.split("/")
    _TURNED[_one] = _other
    _TURNED[_other] = _one
_TURN = re.compile(rf"\b({'|'.join(_TURNED)})\b", re.IGNORECASE)
_NEWS_FIELDS = re.compile(r'("(?:title|headline|body|summary|text)"\s*:\s*)"((?:[^"\\]|\\.)*)"')
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")


def turned_words(text: str) -> str:
    """Return a text with the meaning of its headlines reversed."""

    def turn(found: re.Match[str]) -> str:
        other = _TURNED[found.group().lower()]
        return other.capitalize() if found.group()[0].isupper() else other

    return _NEWS_FIELDS.sub(lambda found: f'{found[1]}"{_TURN.sub(turn, found[2])}"', text)


def shifted_dates(text: str) -> str:
    """Return a text with its ISO dates moved to earlier years, on the same weekdays."""

    def shift(found: re.Match[str]) -> str:
        try:
            return (
                date(*map(int, found.groups())) - timedelta(days=364 * 6)
            ).isoformat()  # whole weeks
        except (ValueError, OverflowError):
            return found.group()

    return _ISO.sub(shift, text)


class _Reasking:
    """One episode in one changed market.

    Recorded decisions are executed, and the agent is queried again on some of the sessions.
    """

    def __init__(
        self,
        run: Run,
        episode: EpisodeSpec,
        benchmark: Benchmark,
        change: _Changed,
        config: CounterfactualConfig,
    ) -> None:
        self._episode, self._benchmark, self._change = episode, benchmark, change
        self._records = list(run.records(episode.key))
        self._secret = run.manifest.secret
        count = len(self._records)
        wanted = min(count, max(10, round(config.share * count)))
        rng = np.random.default_rng([config.seed, 31])
        # Decisions with orders come first: a repeated decision without orders shows little.
        mixed = rng.permutation(count).tolist()
        self._steps = set(
            sorted(mixed, key=lambda step: not self._records[step].decision.orders)[:wanted]
        )

    def _played(self) -> tuple[ByObservation, Play[AskDecision, Decision]]:
        talk, episode = ByObservation(self._benchmark.day), self._episode
        market = self._benchmark.market
        return talk, Play(self._change.snapshot, market, talk, key=episode.key, seed=episode.seed)

    def by_rule(self) -> list[ReaskedDecision]:
        """Run a rule again through every session, because it may remember earlier sessions."""
        talk, play = self._played()
        agent = make_agent(self._episode.agent.name, self._episode.agent.params)
        agent.begin(
            play.info, episode_rng(self._benchmark, self._episode, self._change.snapshot.name)
        )
        answer = by_observation(agent)
        made = []
        for wanted, seen, record in self._days(play):
            now = drive(talk.dialogue(seen), answer)
            if wanted:
                made.append(self._compared(seen, record, now))
        return made

    def _days(self, play: Play[Any, Any]) -> Iterator[tuple[bool, Observation, StepRecord]]:
        """Execute the recorded decisions.

        Yield the observation before each decision, and whether the decision is repeated.
        """
        seen: Observation | None = play.open()
        for place, record in enumerate(self._records):
            if seen is None:
                break
            yield place in self._steps, seen, record
            play.decide(record.decision)
            seen = play.observation

    def believed(
        self, given: Mapping[tuple[Arm, str, str], ReaskedDecision]
    ) -> list[ReaskedDecision]:
        """Return recorded answers that cannot be repeated, for the drawn decisions of this episode.

        Raises :class:`UserError` if an answer is missing.
        """
        made = []
        for wanted, seen, record in self._days(self._played()[1]):
            key = self._change.arm, self._episode.key, record.session
            if wanted and key not in given:
                raise UserError(
                    f"{key[0]} was not asked on {record.session}", hint="do not rely on this study"
                )
            if wanted:
                one = self._compared(seen, record, record.decision)
                now = given[key]
                believed = {
                    "now": now.now,
                    "confidence_now": now.confidence_now,
                    "failed": now.failed,
                }
                made.append(msgspec.structs.replace(one, **believed))
        return made

    async def by_model(self, ask: AskOne) -> list[ReaskedDecision]:
        """Query a model in the protocol of the benchmark suite, under the same mask and aliases."""
        episode, benchmark, words = self._episode, self._benchmark, self._change.words
        protocol = open_protocol(benchmark)
        days = (benchmark.market.first, benchmark.market.last)
        rng = conversation_rng(benchmark, episode, episode.dataset, self._secret, days)
        play = Play(
            self._change.snapshot,
            benchmark.market,
            protocol,
            key=episode.key,
            seed=episode.seed,
            rng=rng,
        )

        async def answer(asked: AddressedQuestion[AskModel]) -> ModelReply:
            messages = tuple(
                one
                if one.role == "assistant"
                else msgspec.structs.replace(one, text=words(one.text))
                for one in asked.request.messages
            )
            return await ask(
                asked._replace(request=msgspec.structs.replace(asked.request, messages=messages))
            )

        made = []
        name = f"counterfactual-{self._change.arm}-{episode.key}"
        for wanted, seen, record in self._days(play):
            if wanted:
                at = QuestionPlace(episode=name, step=seen.step, sample=episode.seed, index=0)
                now = await adrive(addressed(protocol.dialogue(seen), at), answer)
                made.append(self._compared(seen, record, now))
        return made

    def _compared(self, seen: Observation, record: StepRecord, now: Decision) -> ReaskedDecision:
        then = record.decision
        before = directions(then, seen)
        return ReaskedDecision(
            arm=self._change.arm,
            episode=self._episode.key,
            session=record.session,
            recorded=before,
            now=directions(now, seen),
            moved={self._change.names.get(name, name): sign for name, sign in before.items()},
            confidence=_confidence(then),
            confidence_now=_confidence(now),
            failed="failed" in (then.status, now.status),
        )


def directions(decision: Decision, seen: Observation) -> dict[str, float]:
    """Return the direction of each name's trade: 1 bought, -1 sold.

    A target without a trade has no entry.
    """
    found: dict[str, float] = {}
    for order in decision.orders:
        if order.unit in ("shares", "dollars"):
            sign = -1.0 if order.side == "SELL" else 1.0
        else:
            held = 0.0
            if (position := seen.account.positions.get(order.symbol)) is not None:
                held = position.quantity if order.unit == "target_shares" else position.value
                held = seen.account.weight(order.symbol) if order.unit == "target_weight" else held
            sign = float(np.sign(order.amount - held))
        if sign:
            found[order.symbol] = sign
    return found


def _confidence(decision: Decision) -> float | None:
    given = [order.confidence for order in decision.orders if order.confidence is not None]
    return None if not given else float(np.mean(given))


# Scoring ------------------------------------------------------------------------------------------


def alike(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the cosine of two decisions: 1 for equal orders, -1 for opposite orders.

    The cosine is 0 if the decisions have no name in common.
    """
    if not one or not other:
        return 1.0 if not one and not other else 0.0
    shared = sum(sign * other.get(name, 0.0) for name, sign in one.items())
    return float(shared / np.sqrt(len(one) * len(other)))


def score_counterfactual(
    decisions: Sequence[ReaskedDecision],
    *,
    model: str,
    run: str,
    config: CounterfactualConfig,
    usd: float | None = 0.0,
    notes: Sequence[str] = (),
) -> CounterfactualReport:
    """Score repeated decisions.

    Failures are left out, and so are pairs in which one decision has no orders.
    """
    level = config.level
    told = [one for one in decisions if not one.failed and (one.recorded or one.now)]
    near = [alike(one.recorded, one.now) for one in told]
    again = [one for one in decisions if one.arm == "again" and not one.failed]
    twice = {(one.episode, one.session): alike(one.recorded, one.now) for one in again}
    arms = []
    for arm in config.arms:
        asked = [one for one in decisions if one.arm == arm]
        if not asked:
            continue
        here = [(one, same) for one, same in zip(told, near, strict=True) if one.arm == arm]
        less = [
            (twice[one.episode, one.session] - same, one.session)
            for one, same in here
            if (one.episode, one.session) in twice
        ]
        sure = [
            (abs(one.confidence_now - one.confidence), one.session)
            for one, _ in here
            if one.confidence is not None and one.confidence_now is not None
        ]
        none = "no usable answer came" if all(one.failed for one in asked) else "no order was given"
        depends = _mean(less, level, "nothing was asked unchanged" if here else none)
        arms.append(
            CounterfactualArm(
                arm=arm,
                how=ARMS[arm],
                asked=len(asked),
                same=_mean([(same, one.session) for one, same in here], level, none),
                depends=not_scored("this is what the others are compared with")
                if arm == "again"
                else depends,
                confidence=_mean(sure, level, "no confidence was given"),
            )
        )
    apart = [
        (same - alike(one.moved, one.now), one.session)
        for one, same in zip(told, near, strict=True)
        if one.arm == "names"
    ]
    names = _mean(apart, level, "names were not exchanged, or no order was given")
    if lost := sum(one.failed for one in decisions):
        notes = [
            *notes,
            f"{lost} of {len(decisions)} decisions had no usable answer and are left out",
        ]
    by_arm = {one.arm: one for one in arms}
    unread = (
        by_arm["prices"].same if "prices" in by_arm else not_scored("returns were not mirrored")
    )
    by_name, sentence = _tell(model, names, by_arm)
    return CounterfactualReport(
        model=model,
        run=run,
        config=config,
        arms=tuple(arms),
        unread=unread,
        names=names,
        by_name=by_name,
        sentence=sentence,
        usd=usd,
        notes=tuple(dict.fromkeys(notes)),
        decisions=tuple(decisions),
    )


def _mean(values: Sequence[tuple[float, str]], level: float, nothing: str) -> Measure:
    if not values:
        return not_scored(nothing)
    if len(values) < 5:
        return not_scored(f"too few decisions with an order: {len(values)}, and 5 are needed")
    return clustered_mean(
        np.array([value for value, _ in values]), [day for _, day in values], level
    )


def _tell(model: str, names: Measure, arms: Mapping[Arm, CounterfactualArm]) -> tuple[bool, str]:
    """Return whether the agent answers by name or date, and a sentence with the finding."""
    prices = arms["prices"].depends if "prices" in arms else not_scored("returns were not mirrored")
    dated = arms["date"].depends if "date" in arms else not_scored("no false date was given")
    unsure = f"What the decisions of {model} rest on cannot be told"
    if prices.value is None:
        return False, f"{unsure}: {prices.reason}."
    # Orders can be opposite, so this is not a share of decisions.
    agree = {
        arm: "?" if one.same.value is None else f"{one.same.value:+.2f}"
        for arm, one in arms.items()
    }
    size = f"with mirrored returns its orders agree with the recorded ones at {agree['prices']}"
    if "again" in arms:
        size += f", with nothing changed at {agree['again']}"
    size += " (+1 the same, -1 the opposite)"
    if above(prices) and prices.value >= _MATTERS:
        return False, f"{model} reads what it is shown: {size}."
    if above(names):
        kept = "under exchanged names it keeps the name"
        return True, f"{model} answers by name and not by series: {size}, and {kept}."
    if above(dated) and (dated.value or 0.0) >= _MATTERS:
        return (
            True,
            f"{model} answers by date and not by series: {size}; under a false date at "
            f"{agree['date']}.",
        )
    return False, f"{unsure}: {size}."
