"""Draw questions about past prices from a seed, write their texts, and parse the answers.

A question never states the price that it asks for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.core.arrays import Days, Floats
from tradeassay.core.errors import UserError
from tradeassay.tables.dates import ENGLISH_MONTHS
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply
from tradeassay_bench.core.view import NewsItem
from tradeassay_bench.data import Snapshot
from tradeassay_bench.data.names import known_names, us_names
from tradeassay_bench.data.store.read import read_panel

RecallKind = Literal["close", "day", "week", "month", "best", "worst", "index", "year"]
HORIZONS: dict[RecallKind, int] = {"day": 1, "week": 5, "month": 21}
"""The horizons of the moves in questions, in sessions."""
NEAR = 0.05
"""The maximum relative error of a close or a level that is accepted as right."""
_MIX: tuple[RecallKind, ...] = (
    *("month", "close", "week", "day", "best", "month", "close", "year", "week", "day"),
    *("worst", "month", "close", "index", "week", "day", "best", "close", "month", "worst"),
)
CHANCE: dict[RecallKind, float] = {"day": 0.5, "week": 0.5, "month": 0.5, "best": 0.2, "worst": 0.2}
"""Kinds of question that a guess can answer, with the probability of a right guess."""


class RecallConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The questions of an audit.

    There are about ``questions`` in total, with ``wordings`` and ``samples`` per fact. The first
    and third wording allow the answer "unknown". The second and fourth ask for an estimate. With
    several samples, answers are drawn at a temperature. ``first`` and ``last`` limit the days.
    ``cutoff`` replaces the model's known cutoff. ``horizon`` is the horizon of moves in questions
    about a run. A move begins every ``every`` sessions (default: the horizon). Log-probabilities
    are queried for ``logprobs`` facts.
    """

    questions: Annotated[int, Meta(ge=1, le=1_000_000)] = 500
    seed: Annotated[int, Meta(ge=0)] = 0
    wordings: Annotated[int, Meta(ge=1, le=4)] = 2
    samples: Annotated[int, Meta(ge=1, le=100)] = 2
    first: str | None = None
    last: str | None = None
    cutoff: date | None = None
    horizon: Literal["day", "week", "month"] = "week"
    every: Annotated[int, Meta(ge=1)] | None = None
    logprobs: Annotated[int, Meta(ge=0)] = 40
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95


class RecallQuestion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question about one fact.

    ``truth`` is a price, a move as a fraction, or a year. ``named`` is the right entry of
    ``choices``. A question about an invented name has the truth of the real name whose symbol is
    ``stands_for``.
    """

    number: int
    fact: int
    kind: RecallKind
    symbol: str
    title: str
    day: str
    until: str
    wording: int = 0
    sample: int = 0
    truth: float | None = None
    also: float | None = None
    choices: tuple[str, ...] = ()
    named: str | None = None
    stands_for: str | None = None
    shown: str = ""

    @property
    def invented(self) -> bool:
        return self.stands_for is not None


class RecallAnswer(RecallQuestion, frozen=True, kw_only=True, omit_defaults=True):
    """A question and its answer: a ``value`` in the unit of its truth, or ``chosen``.

    ``refused`` is true if the model answers that it does not know. ``right`` is None if the answer
    could not be parsed. A move without a size has only a ``sign``.
    """

    said: str = ""
    refused: bool = False
    value: float | None = None
    sign: int = 0
    chosen: str | None = None
    right: bool | None = None


LONGEST = 300
"""The maximum number of characters of an answer that are stored."""

# Prices for questions ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PriceTruth:
    """The closes of a data set, shape (T, N).

    ``closes`` is adjusted for splits, ``traded`` is as traded. ``titles`` contains the names of the
    columns, ``news`` the headlines.
    """

    sessions: Days
    symbols: tuple[str, ...]
    titles: dict[str, str]
    closes: Floats
    traded: Floats
    indices: dict[str, Floats]
    synthetic: bool
    news: tuple[NewsItem, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot) -> PriceTruth:
        """Return the prices of a whole data set.

        The audit is about the past, and no agent trades on it.
        """
        view, panel = snapshot.at(len(snapshot.sessions) - 1, "close"), read_panel(snapshot.folder)
        titles = {}
        for one in view.instruments:
            names = known_names(one)
            if one.name not in ("", one.symbol):
                titles[one.symbol] = one.name
            else:
                titles[one.symbol] = names[0] if names else ""
        return cls(
            sessions=snapshot.sessions,
            symbols=view.symbols,
            titles=titles,
            closes=view.bars("close"),
            traded=view.bars("close", adjust="none"),
            indices={view.index_name(name): view.index_levels(name) for name in panel.indices},
            synthetic=snapshot.facts.kind == "synthetic",
            news=tuple(panel.news),
        )

    @property
    def decimals(self) -> int:
        """Return the number of decimals of the traded prices, at most two."""
        known = self.traded[np.isfinite(self.traded)]
        return next(
            (
                count
                for count in range(2)
                if np.allclose(known, np.round(known, count), rtol=0, atol=1e-9)
            ),
            2,
        )

    def title(self, symbol: str) -> str:
        named = self.titles.get(symbol, "")
        return f"{named} ({symbol})" if named else symbol

    def move(self, column: int, row: int, until: int) -> float:
        """Return the relative change of a close between two sessions; NaN if a close is missing."""
        return float(self.closes[until, column] / self.closes[row, column] - 1.0)


def draw_questions(
    truth: PriceTruth, config: RecallConfig, cutoff: date | None
) -> tuple[RecallQuestion, ...]:
    """Draw facts of all kinds and return the questions.

    The facts alternate between before and after the cutoff, and between rising and falling prices.
    Some questions are repeated with invented names. Raises :class:`UserError` if there are too few
    days or names.
    """
    facts = max(1, config.questions // (config.wordings * config.samples))
    rng = np.random.default_rng(config.seed)
    days = truth.sessions.astype("datetime64[D]").astype(date)
    first, last = config.first or "", config.last or "9"
    rows = np.array([k for k, day in enumerate(days.tolist()) if first <= day.isoformat() <= last])
    longest = max(HORIZONS.values())
    if rows.size < 2 * longest:
        hint = f"give at least {2 * longest} with first=, last="
        raise UserError(f"{rows.size} sessions are too few for questions", hint=hint)
    sides = [rows[:-longest]]
    if cutoff is not None:
        known = np.array([days[row] <= cutoff for row in rows[:-longest]])
        sides = [side for side in (sides[0][known], sides[0][~known]) if side.size]
    real: list[RecallQuestion] = []
    made: Counter[RecallKind] = Counter()
    for place in range(facts):
        kind = _MIX[place % len(_MIX)]
        # Each kind alternates separately, so that kinds, periods and signs are not correlated.
        side, rising = sides[made[kind] % len(sides)], made[kind] // len(sides) % 2 == 0
        made[kind] += 1
        for tries in range(40):
            # Finally any move: the data may not have a kind, or moves of one sign only.
            other = tries >= 30
            row = int(side[rng.integers(side.size)])
            fact = _draw_one(
                truth, "month" if other else kind, row, rng, rising=None if other else rising
            )
            if fact is not None:
                real.append(fact)
                break
    if not real:
        raise UserError(
            "no close is known on the days asked for",
            hint="choose different days or a different data set",
        )
    return _asked(_with_invented(real, rng, set(truth.symbols))[:facts], config)


def draw_for_pairs(
    truth: PriceTruth, pairs: Sequence[tuple[str, str, str]], config: RecallConfig
) -> tuple[RecallQuestion, ...]:
    """Return questions on the moves of names between days, (symbol, day, until).

    Every fourth question is repeated with an invented name.
    """
    place = {symbol: column for column, symbol in enumerate(truth.symbols)}
    row = {str(day): number for number, day in enumerate(truth.sessions)}
    made = []
    for symbol, day, until in pairs:
        moved = truth.move(place[symbol], row[day], row[until]) if symbol in place else np.nan
        if np.isfinite(moved):
            made.append(
                _fact(config.horizon, symbol, truth.title(symbol), (day, until), truth=moved)
            )
    rng = np.random.default_rng(config.seed)
    return _asked(_with_invented(made, rng, set(truth.symbols)), config)


def _fact(
    kind: RecallKind, symbol: str, title: str, days: tuple[str, str], **fields: object
) -> RecallQuestion:
    return RecallQuestion(
        number=0,
        fact=0,
        kind=kind,
        symbol=symbol,
        title=title,
        day=days[0],
        until=days[1],
        **fields,  # type: ignore[arg-type]  # fields of the struct
    )


def _asked(facts: Iterable[RecallQuestion], config: RecallConfig) -> tuple[RecallQuestion, ...]:
    made = []
    for place, fact in enumerate(facts):
        for wording, sample in product(range(config.wordings), range(config.samples)):
            asked = msgspec.structs.replace(fact, fact=place, wording=wording, sample=sample)
            made.append(asked)
    return tuple(msgspec.structs.replace(one, number=number) for number, one in enumerate(made))


def _draw_one(
    truth: PriceTruth, kind: RecallKind, row: int, rng: np.random.Generator, *, rising: bool | None
) -> RecallQuestion | None:
    """Return a fact of one kind from one session.

    Returns None if there is no such fact, or none with the wanted sign.
    """
    day = str(truth.sessions[row])
    there = np.flatnonzero(np.isfinite(truth.closes[row]))
    if kind == "index":
        names = sorted(name for name, levels in truth.indices.items() if np.isfinite(levels[row]))
        if not names:
            return None
        name = names[int(rng.integers(len(names)))]
        return _fact(kind, name, name, (day, day), truth=float(truth.indices[name][row]))
    if not there.size:
        return None
    column = int(there[rng.integers(there.size)])
    symbol = truth.symbols[column]
    title = truth.title(symbol)
    if kind == "close":
        traded, split = float(truth.traded[row, column]), float(truth.closes[row, column])
        return _fact(
            kind, symbol, title, (day, day), truth=traded, also=None if split == traded else split
        )
    if kind == "year":
        return _year(truth, row, column)
    until = row + HORIZONS.get(kind, HORIZONS["month"])
    days = (day, str(truth.sessions[until]))
    if kind in ("best", "worst"):
        moves = truth.closes[until, there] / truth.closes[row, there] - 1.0
        there, moves = there[np.isfinite(moves)], moves[np.isfinite(moves)]
        if there.size < 5:
            return None
        five = rng.choice(there.size, 5, replace=False)
        best = five[np.argmax(moves[five]) if kind == "best" else np.argmin(moves[five])]
        listed = tuple(truth.title(truth.symbols[int(k)]) for k in there[five])
        named = truth.title(truth.symbols[int(there[best])])
        return _fact(kind, "five names", "five names", days, choices=listed, named=named)
    moved = truth.move(column, row, until)
    if not np.isfinite(moved) or moved == 0.0 or (rising is not None and (moved > 0.0) != rising):
        return None
    return _fact(kind, symbol, title, days, truth=moved)


def _year(truth: PriceTruth, row: int, column: int) -> RecallQuestion | None:
    months = truth.sessions.astype("datetime64[M]")
    year = str(truth.sessions[row])[:4]
    inside = [
        np.flatnonzero(months == np.datetime64(f"{year}-{month:02d}")) for month in range(1, 13)
    ]
    ends = [int(rows[-1]) for rows in inside if rows.size]
    closes = truth.traded[ends, column]
    if len(ends) < 12 or not np.isfinite(closes).all():
        return None
    symbol = truth.symbols[column]
    shown = ", ".join(f"{price:.2f}" for price in closes)
    return _fact(
        "year",
        symbol,
        truth.title(symbol),
        (str(truth.sessions[row]),) * 2,
        truth=float(year),
        shown=shown,
    )


_SYLLABLES = "bra cor del fen gal hol jun kel lor mar nev or pel quin ros".split()
_ENDS = ("dyne", "tek", "vale", "mont", "wick", "staff", "berg", "land")
_FORMS = ("Corporation", "Holdings", "Industries", "Group", "Systems")


def _with_invented(
    facts: Sequence[RecallQuestion], rng: np.random.Generator, taken: set[str]
) -> list[RecallQuestion]:
    """Return facts with every fourth one about a name repeated for an invented name."""
    made: list[RecallQuestion] = []
    about_one = 0
    for fact in facts:
        made.append(fact)
        about_one += fact.kind in ("close", *HORIZONS)
        if fact.kind in ("close", *HORIZONS) and about_one % 4 == 0:
            symbol, name = _invent(rng, taken)
            made.append(
                msgspec.structs.replace(
                    fact, symbol=symbol, title=f"{name} ({symbol})", stands_for=fact.symbol
                )
            )
    return made


def _invent(rng: np.random.Generator, taken: set[str]) -> tuple[str, str]:
    while True:
        first, second = (_SYLLABLES[int(rng.integers(len(_SYLLABLES)))] for _ in range(2))
        end, form = _ENDS[int(rng.integers(len(_ENDS)))], _FORMS[int(rng.integers(len(_FORMS)))]
        name = f"{first}{second}{end}".capitalize()
        symbol = (first[:1] + second[:2] + end[:1]).upper()
        if symbol not in taken and symbol not in us_names():
            return symbol, f"{name} {form}"


# Words --------------------------------------------------------------------------------------------

_SYSTEM = (
    "You are asked about past prices. Answer from memory, in the form that is asked for, "
    "without any explanation."
)
_MAY = ' If you do not know, answer "unknown".'
_MUST = " Give your best estimate even if you are not sure."
_WORDS: dict[str, tuple[str, str]] = {
    "close": (
        "What was the closing price of {title} on {day}? Answer with one number only.",
        "On {day} the shares of {title} closed at which price? Reply with the number and nothing "
        "else.",
    ),
    "move": (
        "Did the closing price of {title} rise or fall from {day} to {until}, and by how many "
        "percent? "
        "Answer in the form: up 1.2% or down 1.2%.",
        "From the close on {day} to the close on {until}, {title} went up or down by what "
        "percentage? "
        "Reply like this: up 1.2% or down 1.2%.",
    ),
    "choice": (
        "Which of these had the {kind} return from {day} to {until}: {choices}? Answer with its "
        "name only.",
        "Of {choices}, name the one that did {kind} between the close on {day} and the close on "
        "{until}. "
        "Reply with the name and nothing else.",
    ),
    "index": (
        "At what level did the index {title} close on {day}? Answer with one number only.",
        "What was the closing level of the index {title} on {day}? Reply with the number and "
        "nothing else.",
    ),
    "year": (
        "These are the twelve month-end closing prices of {title} in one calendar year: {shown}. "
        "Which year was it? Answer with the year only.",
        "{title} closed the twelve months of a year at {shown}. Name the year and nothing else.",
    ),
}


def form_of(kind: RecallKind) -> str:
    """Return the form of a kind's wording and answer: close, move, choice, index or year."""
    if kind in HORIZONS:
        return "move"
    return "choice" if kind in ("best", "worst") else kind


def question_text(question: RecallQuestion) -> str:
    """Return the text of a question. Wordings 0 and 2 allow "unknown", 1 and 3 do not."""
    words = _WORDS[form_of(question.kind)][question.wording // 2 % 2]
    fields = {name: getattr(question, name) for name in ("title", "day", "until", "kind", "shown")}
    asked = words.format(**fields, choices=", ".join(question.choices))
    return asked + (_MUST if question.wording % 2 else _MAY)


def request_of(question: RecallQuestion) -> AskModel:
    messages = (
        Message(role="system", text=_SYSTEM),
        Message(role="user", text=question_text(question)),
    )
    return AskModel(purpose="recall", messages=messages)


# Answers ------------------------------------------------------------------------------------------

_NOT_KNOWN = re.compile(
    r"\bunknown\b|do(?:es)? not (?:know|have)|don'?t "
    r"(?:know|have)|\bcannot\b|\bcan'?t\b|\bunable\b|"
    r"not (?:sure|able|aware|available|possible)|no "
    r"(?:information|data|access|record|knowledge)|as an ai|"
    r"\bsorry\b|\bn/?a\b",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"^\W*(?:[$€¥£]?\s*[-+]?\d|up\b|down\b|rose\b|fell\b)", re.IGNORECASE)
_MONTHS = "|".join(ENGLISH_MONTHS)
_DATES = re.compile(
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b(?:{_MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}\b|"
    rf"\b\d{{1,2}}\s+(?:{_MONTHS})\s+\d{{4}}\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[-+−]?\d+(?:\.\d+)?|[-+−]?\.\d+")
_UP = re.compile(
    r"\b(?:up|rose|rise|risen|increased?|gain(?:ed)?|higher|positive)\b", re.IGNORECASE
)
_DOWN = re.compile(
    r"\b(?:down|fell|fall|fallen|decreased?|declined?|lost|lower|dropped|negative)\b", re.IGNORECASE
)
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")


def is_near(value: float, question: RecallQuestion) -> bool:
    """Return whether a close or a level is right, as traded or with splits undone."""
    truths = [truth for truth in (question.truth, question.also) if truth is not None]
    return any(abs(value / truth - 1.0) <= NEAR for truth in truths)


def read_answer(question: RecallQuestion, reply: ModelReply) -> RecallAnswer:
    """Parse a reply. An unparsable reply is neither right nor wrong."""
    text = reply.text.strip()
    fields = {name: getattr(question, name) for name in RecallQuestion.__struct_fields__}
    refused = reply.error_kind == "refused" or (
        bool(_NOT_KNOWN.search(text)) and not _PLAIN.match(text)
    )
    answer = RecallAnswer(**fields, said=text[:LONGEST], refused=refused)
    if refused or not text:
        return answer
    match form_of(question.kind):
        case "choice":
            places: dict[int, str] = {}
            for choice in answer.choices:
                spelled = [re.escape(one) for one in choice.removesuffix(")").split(" (", 1) if one]
                if named := re.search(
                    rf"(?<!\w)(?:{'|'.join(spelled)})(?!\w)", text, re.IGNORECASE
                ):
                    places.setdefault(named.start(), choice)
            if not places:
                return answer
            chosen = places[min(places)]
            return msgspec.structs.replace(answer, chosen=chosen, right=chosen == answer.named)
        case "move":
            return _read_move(answer, text)
        case "year":
            found = _YEAR.search(text)
            value = None if found is None else float(found.group())
            right = None if value is None else value == answer.truth
        case _:
            value = None if answer.truth is None else _number(text, question)
            right = None if value is None else is_near(value, answer)
    return msgspec.structs.replace(answer, value=value, right=right)


def _number(text: str, question: RecallQuestion) -> float | None:
    """Return the first number of an answer that is not part of a repeated day or name."""
    found = _NUMBER.search(
        _DATES.sub(" ", text.replace(question.title, " ").replace(question.symbol, " "))
    )
    return None if found is None else float(found[0].replace(",", "").replace("−", "-"))


def _read_move(answer: RecallAnswer, text: str) -> RecallAnswer:
    number = _number(text, answer)
    up, down = _UP.search(text), _DOWN.search(text)
    if up is not None and (down is None or up.start() < down.start()):
        sign = 1
    elif down is not None:
        sign = -1
    else:
        sign = 0 if number is None else int(np.sign(number))
    if sign == 0 or answer.truth is None:
        return answer
    size = None if number is None else abs(number) / 100.0
    # A size beyond any plausible move is a repeated price, not a percentage.
    value = None if size is None or size > 5.0 else sign * size
    return msgspec.structs.replace(
        answer, value=value, sign=sign, right=sign == int(np.sign(answer.truth))
    )


def points(one: RecallAnswer) -> float:
    """Return the score of an answer: 1 if right, negative if wrong, 0 without an answer.

    A random guess has an expected score of 0.
    """
    chance = CHANCE[one.kind]
    return 0.0 if one.right is None else (float(one.right) - chance) / (1.0 - chance)
