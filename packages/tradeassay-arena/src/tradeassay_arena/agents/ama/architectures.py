"""Define six architectures of agents.

They are a trading firm, a hedge fund of sixteen personas, the bare model, a vote of several
questions to one model, a fund whose manager keeps a journal, and a single investor with a
four-layer memory that reflects on its outcomes.

Twelve of the personas are named after well-known investors. Four are plain analysts. We wrote the
sketches, and each sketch describes a style of investing. None of the named investors has anything
to do with this project. A role sees only its own part of the information.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import ClassVar, Final

import msgspec

from tradeassay_arena.agents.ama.memory import Item, Layer, LayerConfig, LayeredMemory
from tradeassay_arena.agents.ama.roles import (
    ArchitectureConfig,
    Argument,
    Json,
    Lesson,
    Opinion,
    Role,
    RoleAgent,
    Sight,
    Verdict,
    architectures,
    conclude,
    consult,
    opinions,
)
from tradeassay_bench.core.arena import Action, Deliberation, Packet, SettledOutcome


def prices(packet: Packet) -> dict[str, object]:
    """Return the price, at most ten earlier prices, and the month's return."""
    return {
        "price": packet.price,
        "history": [[point.date, point.price] for point in packet.history],
        "momentum": packet.momentum,
    }


def news(packet: Packet) -> dict[str, object]:
    return {"news": [msgspec.to_builtins(item) for item in packet.news]}


def headlines(packet: Packet) -> dict[str, object]:
    """Return the titles of the news for the sentiment analyst."""
    return {"headlines": [[item.published_at, item.source, item.title] for item in packet.news]}


def reports(packet: Packet) -> dict[str, object]:
    return {"annual_report": packet.annual_report, "quarterly_report": packet.quarterly_report}


def everything(packet: Packet) -> dict[str, object]:
    return {**prices(packet), **news(packet), **reports(packet)}


def record(packet: Packet) -> dict[str, object]:
    """Return the agent's settled decisions, and other agents' messages if the season has any."""
    shown: dict[str, object] = {
        "outcomes": [msgspec.to_builtins(outcome) for outcome in packet.outcomes]
    }
    if packet.others:
        shown["others"] = [msgspec.to_builtins(message) for message in packet.others]
    return shown


FIRM_ANALYSTS: dict[str, tuple[str, Sight]] = {
    "fundamental": ("You are the fundamental analyst: you read reports and figures.", reports),
    "sentiment": ("You are the sentiment analyst: you hear the mood of headlines.", headlines),
    "news": ("You are the news analyst: you ask what the events mean for the asset.", news),
    "technical": ("You are the technical analyst: you read prices and nothing else.", prices),
}


BULL, BEAR = Role("bull", "debate", "bull"), Role("bear", "debate", "bear")
TRADER = Role("trader", "proposal", "trader")
MANAGER = Role("manager", "decision", "manager")


@architectures.register("trade")
class TradeAgent(RoleAgent[ArchitectureConfig]):
    """A trading firm.

    Each analyst sees one kind of information. Researchers see the analysts' opinions. The manager
    sees the whole process.
    """

    summary: ClassVar[str] = (
        "four analysts, bull and bear debate, trader, risk manager, portfolio manager"
    )
    Config = ArchitectureConfig
    everybody = (*FIRM_ANALYSTS, "bull", "bear", "trader", "risk", "manager")
    needed = ("manager",)

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        transcript = self.transcript()
        said = yield from self.hear(FIRM_ANALYSTS, packet, transcript)
        shown: dict[str, object] = {"opinions": opinions(said)}
        debate: list[Json] = []
        for role in (BULL, BEAR) * self._config.debate:
            if role.name in self._roles:
                heard = {**shown, "debate": list(debate)}
                spoken = yield from consult(role, packet, heard, Argument, transcript)
                debate.append(
                    {"role": role.name, "argument": None if spoken is None else spoken.argument}
                )
        shown["debate"] = debate
        if "trader" in self._roles:
            proposal = yield from consult(
                TRADER, packet, {**shown, **record(packet)}, Verdict, transcript
            )
            shown["proposal"] = msgspec.to_builtins(proposal)
        seen = {**prices(packet), **record(packet), "proposal": shown.get("proposal")}
        risk = yield from self.assess_risk(packet, seen, shown, transcript)
        verdict = yield from consult(
            MANAGER, packet, {**shown, **record(packet)}, Verdict, transcript
        )
        return conclude(verdict, transcript, risk=risk)


PERSONAS: Final[dict[str, str]] = {
    "damodaran": "value is a story told in numbers; cash flows, growth and risk first, price "
    "against value last.",
    "graham": "a margin of safety above all; cheap against proven earnings and assets, or not at "
    "all.",
    "buffett": "wonderful businesses at fair prices, held for long; durable advantage and honest "
    "owners.",
    "munger": "avoid stupidity before seeking brilliance; few decisions, mental models, patience.",
    "ackman": "a concentrated view with a catalyst; what would have to change, and who will change "
    "it?",
    "burry": "look where nobody looks; hard figures against the crowd's story, contrarian when "
    "they disagree.",
    "pabrai": "heads I win, tails I do not lose much; low risk with high uncertainty.",
    "lynch": "know what you own; simple growth at a reasonable price, seen in daily life.",
    "fisher": "superior growth through research, people and products; scuttlebutt over statements.",
    "wood": "disruptive innovation; exponential markets, volatility is the price of it.",
    "druckenmiller": "macro and liquidity first; asymmetric bets, cut fast, press when right.",
    "jhunjhunwala": "optimism on growth with a trader's respect for price; ride the trend, fear "
    "leverage.",
    "valuation": "compare price with what reports justify, in plain arithmetic.",
    "sentiment": "the crowd's mood in headlines and its extremes.",
    "fundamentals": "profitability, growth, balance sheet and their direction.",
    "technicals": "trend, momentum, mean reversion and volatility of prices.",
}


@architectures.register("hedge-fund")
class HedgeFundAgent(RoleAgent[ArchitectureConfig]):
    """A hedge fund of personas.

    All personas see the same information and do not see each other's answers. The managers see all
    signals.
    """

    summary: ClassVar[str] = "sixteen investor personas, a risk manager, a portfolio manager"
    Config = ArchitectureConfig
    everybody = (*PERSONAS, "risk", "manager")
    needed = ("manager",)

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        transcript = self.transcript()
        shown = everything(packet)
        asking = {}
        for name in (one for one in PERSONAS if one in self._roles):
            role = Role(name, "signal", "persona", PERSONAS[name])
            asking[name] = consult(role, packet, shown, Opinion, transcript)
        said = yield from self.ask_all(asking)
        signals: dict[str, object] = {"opinions": opinions(said)}
        seen = {**prices(packet), **record(packet), **signals}
        risk = yield from self.assess_risk(packet, seen, signals, transcript)
        seen = {**signals, "price": packet.price, "momentum": packet.momentum, **record(packet)}
        verdict = yield from consult(MANAGER, packet, seen, Verdict, transcript)
        return conclude(verdict, transcript, risk=risk)


@architectures.register("vanilla")
class VanillaAgent(RoleAgent[ArchitectureConfig]):
    """The bare model, which is asked one question about today's information and has no memory."""

    summary: ClassVar[str] = (
        "the bare model: one question with today's information, no memory, no roles"
    )
    Config = ArchitectureConfig
    everybody = ("trader",)
    needed = ("trader",)

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        transcript = self.transcript()
        role = Role("trader", "decision", "vanilla")
        verdict = yield from consult(role, packet, everything(packet), Verdict, transcript)
        return conclude(verdict, transcript)


class VoteConfig(ArchitectureConfig, frozen=True, kw_only=True):
    """Settings of the vote. ``votes`` is the number of voters, an odd number."""

    votes: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.votes <= len(VOTERS) or self.votes % 2 == 0:
            raise ValueError(f"votes must be an odd number up to {len(VOTERS)}")


VOTERS: Final = tuple(f"voter-{number}" for number in range(1, 10))


@architectures.register("vote")
class VotingAgent(RoleAgent[VoteConfig]):
    """The bare model, asked several times independently. The most frequent action wins.

    A tie becomes HOLD. Confidence and allocation are the means of the winning votes.
    """

    summary: ClassVar[str] = (
        "the bare model asked several times at once; most votes decide, a tie holds"
    )
    Config = VoteConfig
    everybody = VOTERS
    needed = ()

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        transcript = self.transcript()
        shown, asking = everything(packet), {}
        for name in self._roles[: self._config.votes]:
            asking[name] = consult(
                Role(name, "vote", "vanilla"), packet, shown, Verdict, transcript
            )
        asked = yield from self.ask_all(asking)
        return conclude(
            counted(tuple(one for one in asked.values() if one is not None)), transcript
        )


def counted(votes: tuple[Verdict, ...]) -> Verdict | None:
    """Return the action with the most votes, HOLD for a tie, or None if there are no votes."""
    ranked = Counter(vote.action for vote in votes).most_common()
    if not ranked:
        return None
    if len(ranked) > 1 and ranked[0][1] == ranked[1][1]:
        tally = ", ".join(f"{count} {action}" for action, count in ranked)
        return Verdict(
            action="HOLD", confidence=ranked[0][1] / len(votes), reasoning=f"a tie: {tally}"
        )
    action, count = ranked[0]
    won = [vote for vote in votes if vote.action == action]
    shares = [vote.allocation for vote in won if vote.allocation is not None]
    surest = max(won, key=lambda vote: vote.confidence)
    return Verdict(
        action=action,
        confidence=math.fsum(vote.confidence for vote in won) / count,
        reasoning=f"{count} of {len(votes)} votes: {surest.reasoning}"[:8000],
        allocation=math.fsum(shares) / len(shares) if shares else None,
        message=surest.message,
    )


FUND_ANALYSTS: dict[str, tuple[str, Sight]] = {
    "technical": ("You read prices and nothing else.", prices),
    "media": ("You read what the media report.", news),
    "fundamental": ("You read reports and figures.", reports),
}


class DeepFundConfig(ArchitectureConfig, frozen=True, kw_only=True):
    """Settings of the fund with a journal.

    ``remembered`` is the number of past decisions that the manager sees.
    """

    remembered: int = 20


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, the analysts' opinions at the time, and its return once it is known."""

    date: str
    action: Action
    views: dict[str, str]
    reasoning: str
    earned: float | None = None


class Diary(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of the fund: its own decisions, oldest first."""

    entries: tuple[Remembered, ...] = ()

    def settled(self, outcomes: tuple[SettledOutcome, ...]) -> Diary:
        known = {outcome.date: outcome.earned for outcome in outcomes}
        return Diary(
            entries=tuple(
                msgspec.structs.replace(entry, earned=known.get(entry.date))
                if entry.earned is None
                else entry
                for entry in self.entries
            )
        )

    def lessons(self) -> dict[str, object]:
        """Return each analyst's record.

        It has the number of predictions, and how often the asset moved as predicted.
        """
        score: dict[str, list[int]] = {}
        for entry in self.entries:
            if entry.earned is None or entry.action == "HOLD" or entry.earned == 0:
                continue
            rose = (entry.earned > 0) == (entry.action == "BUY")
            for name, view in entry.views.items():
                if view != "neutral":
                    right, count = score.get(name, [0, 0])
                    score[name] = [right + int((view == "bullish") == rose), count + 1]
        return {
            name: {"right": right, "of": count} for name, (right, count) in sorted(score.items())
        }


@architectures.register("deep-fund")
class DeepFundAgent(RoleAgent[DeepFundConfig]):
    """A fund whose manager keeps a journal.

    Each analyst sees one kind of information. The manager sees the analysts' opinions, the journal,
    and how often each analyst was right.
    """

    summary: ClassVar[str] = (
        "three analysts and a manager with a journal of its own decisions and outcomes"
    )
    Config = DeepFundConfig
    everybody = (*FUND_ANALYSTS, "manager")
    needed = ("manager",)

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        transcript = self.transcript()
        journal = Diary() if memory is None else msgspec.json.decode(memory, type=Diary)
        journal = journal.settled(packet.outcomes)
        said = yield from self.hear(FUND_ANALYSTS, packet, transcript)
        shown = {
            "opinions": opinions(said),
            "journal": [
                msgspec.to_builtins(e) for e in journal.entries[-self._config.remembered :]
            ],
            "analysts_record": journal.lessons(),
            "price": packet.price,
            **record(packet),
        }
        verdict = yield from consult(MANAGER, packet, shown, Verdict, transcript)
        made = Remembered(
            date=packet.date,
            action="HOLD" if verdict is None else verdict.action,
            views={name: opinion.view for name, opinion in said.items() if opinion is not None},
            reasoning="" if verdict is None else verdict.reasoning[:400],
        )
        kept = (*journal.entries, made)[-4 * self._config.remembered :]
        return conclude(verdict, transcript, memory=msgspec.json.encode(Diary(entries=kept)))


SEEN = 400
"""Maximum number of remembered ids of items that were read before."""


class InvestorConfig(ArchitectureConfig, frozen=True, kw_only=True):
    """Settings of the investor. ``memory`` configures the layers of its memory."""

    memory: LayerConfig = LayerConfig()


@architectures.register("investor")
class InvestorAgent(RoleAgent[InvestorConfig]):
    """A single investor with a four-layer memory.

    News enters the short layer, quarterly reports the mid layer, annual reports the long layer, and
    lessons the reflections.
    """

    summary: ClassVar[str] = "a single agent with four-layer memory, retrieval and reflection"
    Config = InvestorConfig
    everybody = ("reflection", "investor")
    needed = ("investor",)

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        transcript = self.transcript()
        mind = LayeredMemory.read(memory)
        new = [outcome for outcome in packet.outcomes if outcome.date > mind.settled]
        if new:
            mind = mind.learn(mind.recalled, new[-1].earned, self._config.memory)
            mind = msgspec.structs.replace(mind, settled=new[-1].date)
            if "reflection" in self._roles:
                shown: dict[str, object] = {
                    "outcomes": [msgspec.to_builtins(outcome) for outcome in new],
                    "remembered": [_shown(item) for item in mind.items if item.id in mind.recalled],
                }
                role = Role("reflection", "reflection", "reflection")
                lesson = yield from consult(role, packet, shown, Lesson, transcript)
                if lesson is not None:
                    mind = mind.add("reflection", lesson.lesson, lesson.importance)
        # Today's items are shown as news and not repeated as memories.
        # The memory is queried with the asset and today's news.
        trend = ""
        if packet.momentum is not None:
            trend = "rising" if packet.momentum > 0 else "falling"
        titles = " ".join(item.title for item in packet.news)
        question = f"{packet.symbol} {packet.kind} {trend} {titles}"
        found = mind.recall(question, self._config.memory)
        mind = _read(packet, mind)
        shown = {**everything(packet), **record(packet), "memory": [_shown(item) for item in found]}
        role = Role("investor", "decision", "investor")
        verdict = yield from consult(role, packet, shown, Verdict, transcript)
        mind = msgspec.structs.replace(mind, recalled=tuple(item.id for item in found)).aged(
            self._config.memory
        )
        return conclude(verdict, transcript, memory=mind.written())


def _read(packet: Packet, mind: LayeredMemory) -> LayeredMemory:
    """Return the memory with the items of a packet that it did not contain before."""
    reading: list[tuple[str, Layer, str, float]] = [
        (item.id, "short", f"{item.title}. {item.text}", 0.4) for item in packet.news
    ]
    layers: tuple[Layer, Layer] = ("mid", "long")
    reports = zip(layers, (packet.quarterly_report, packet.annual_report), strict=True)
    reading += [
        (f"{layer}:{text}"[:80], layer, text, 0.6) for layer, text in reports if text is not None
    ]
    known, fresh = set(mind.seen), list[str]()
    for key, layer, text, importance in reading:
        if key not in known:
            mind = mind.add(layer, text, importance)
            fresh.append(key)
    return msgspec.structs.replace(mind, seen=(*mind.seen, *fresh)[-SEEN:])


def _shown(item: Item) -> dict[str, object]:
    return {"layer": item.layer, "text": item.text, "importance": round(item.importance, 3)}
