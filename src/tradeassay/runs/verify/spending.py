"""What answers cost, made again: dollars follow from recorded tokens and the dated table of prices.

What a provider counted is its own affair, but not every number can be a count: a negative one, none for a text,
more than the bytes of a question or the limit of an answer allow. Such counts are named and stop no verification.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tradeassay.core.dialogue import AskModel, ModelReply, Usage
from tradeassay.core.errors import UserError
from tradeassay.llm import load_prices, parse_name
from tradeassay.llm.budget import LEAST_SHARE, estimate_reply, most_request
from tradeassay.llm.cassette import read_cassette
from tradeassay.llm.tables import Price, Tokens
from tradeassay.play.dialogue_log import read_dialogue, whole_messages
from tradeassay.runs.spec.episode import ModelRecord

MOST_TOKENS = 1 << 40
"""More than any question or answer ever had: no arithmetic is done with such a number."""
_NEAR = 1e-9


class SpendingExam(NamedTuple):
    """``wrong`` contradicts itself or the table, (step, words); ``odd`` cannot be believed, by words; ``unsure``
    says why dollars could not be made again; ``priced`` answers were.
    """

    wrong: tuple[tuple[int, str], ...]
    odd: dict[str, int]
    unsure: str
    priced: int


class _Answer(NamedTuple):
    """An answer, which model gave it, and its question as far as it is known."""

    model: str
    step: int
    reply: ModelReply
    request: AskModel | None
    most_output: int | None


def examine_spending(cassette: Path, dialogue: Path, model: str, dated: Mapping[str, ModelRecord]) -> SpendingExam:
    """Examine every recorded answer of models; ``dated`` is what the run says about the prices of its own.

    ``model`` is the episode's, used where there is no cassette to name it. Raises :class:`RunError` for files that
    cannot be read.
    """
    prices = load_prices()
    wrong: list[tuple[int, str]] = []
    odd: Counter[str] = Counter()
    unsure, priced, stated = "", 0, 0.0
    for one in _answers(cassette, dialogue, model):
        usage, about = one.reply.usage, f"an answer of {one.model or 'its program'}"
        impossible = _impossible(usage)
        if impossible:
            wrong.append((one.step, f"{about} {impossible}"))
            continue
        if not _paid(one.model):
            stated += usage.usd or 0.0
            continue
        for what in _implausible(one):
            odd[f"{one.model} counts {what}"] += 1
        price = prices.of(one.model)
        said = dated.get(one.model)
        table = (None, None) if price is None else (price.as_of, price.source)
        if said is not None and table != (said.price_as_of, said.price_source):
            unsure = f"the run's price of {one.model} is {_dated(said)}, here it is {_dated(price)}"
            continue
        fault = _dollars(one.reply, price)
        if fault and said is None:
            # A run that does not say whose prices it took may have had those of the runner's own file.
            unsure = f"{about} {fault}, by the prices known here"
        elif fault:
            wrong.append((one.step, f"{about} {fault}"))
        else:
            priced += 1
    if stated:
        unsure = f"its program states ${stated:,.2f} itself; no table has its price"
    return SpendingExam(tuple(wrong), dict(odd), unsure, priced)


def examine_usage(
    model: str, reply: ModelReply, request: AskModel | None, most_output: int | None
) -> tuple[str, tuple[str, ...]]:
    """Return what makes one answer's counts impossible (empty: nothing), and what makes them hard to believe."""
    impossible = _impossible(reply.usage)
    return impossible, () if impossible else tuple(_implausible(_Answer(model, 0, reply, request, most_output)))


def _answers(cassette: Path, dialogue: Path, model: str) -> Iterator[_Answer]:
    if cassette.is_file():
        held = read_cassette(cassette)
        for line in held.answers:
            asked, known = line.asked, None
            if held.texts:
                messages = tuple(held.messages[name] for name in asked.messages)
                tools = held.tools[asked.tools] if asked.tools else ()
                known = AskModel(
                    purpose=asked.purpose, messages=messages, tools=tools, answer_schema=asked.answer_schema
                )
            most, thought = (asked.params.get(name) for name in ("max_tokens", "reasoning_tokens"))
            most = most + (thought if isinstance(thought, int) else 0) if isinstance(most, int) else None
            yield _Answer(asked.model, asked.step, line.reply, known, most)
    elif dialogue.is_file():
        lines = list(read_dialogue(dialogue))
        for said, messages in zip(lines, whole_messages(lines), strict=True):
            # Only the names of tools are in the log, so that nothing is claimed about the question's size.
            known = None if said.tools else AskModel(purpose=said.purpose, messages=messages)
            yield _Answer(model, said.step, said.reply, known, None)


def _paid(model: str) -> bool:
    try:
        return parse_name(model).route != "scripted" and not model.startswith(("http/", "pipe/", "python/"))
    except UserError:
        return False


def _impossible(usage: Usage) -> str:
    """Say what cannot be a count or a sum of money at all; empty where all of it can."""
    counts = (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_tokens)
    if min(counts) < 0:
        return f"counts {min(counts):,} tokens"[:80]
    if max(counts) > MOST_TOKENS:
        return "counts more tokens than any question or answer ever had"
    if usage.cached_tokens > usage.input_tokens:
        return f"has {usage.cached_tokens:,} of {usage.input_tokens:,} input tokens in the provider's cache"
    if usage.usd is not None and not (math.isfinite(usage.usd) and usage.usd >= 0):
        return f"cost {usage.usd:g} dollars"
    return ""


def _implausible(one: _Answer) -> Iterator[str]:
    usage, reply = one.reply.usage, one.reply
    if reply.error is None and usage.output_tokens < LEAST_SHARE * estimate_reply(reply):
        yield f"{'no' if not usage.output_tokens else 'too few'} tokens for what it wrote"
    if reply.error is None and not usage.input_tokens:
        yield "no tokens for what it was asked"
    if one.request is not None and usage.input_tokens > most_request(one.request):
        yield "more tokens than its question has bytes"
    if one.most_output is not None and usage.output_tokens > one.most_output + usage.reasoning_tokens:
        yield "more tokens than an answer may have"


def _dollars(reply: ModelReply, price: Price | None) -> str:
    """Say in what the dollars of an answer do not follow from its tokens; empty where they do.

    How many tokens were written to a provider's cache is not recorded: where that has a price of its own, the
    dollars lie between all of them and none.
    """
    usage, usd = reply.usage, reply.usage.usd
    if not usage.input_tokens and not usage.output_tokens and reply.error is not None:
        return "" if usd is None or usd == 0.0 else f"took no tokens and ${usd:g}"
    fresh, read = usage.input_tokens - usage.cached_tokens, usage.cached_tokens
    ends = (
        Tokens(plain=fresh, cache_read=read, output=usage.output_tokens),
        Tokens(cache_write=fresh, cache_read=read, output=usage.output_tokens),
    )
    costs = [None if price is None else price.usd(tokens) for tokens in ends]
    low, high = (None if None in costs else end([one or 0.0 for one in costs]) for end in (min, max))
    if low is None or high is None:
        return "" if usd is None else f"has no known price, and cost ${usd:g}"
    near = _NEAR * max(1.0, high)
    if usd is None or not low - near <= usd <= high + near:
        expected = f"${low:g}" if low == high else f"${low:g} to ${high:g}"
        return f"cost {'an unknown sum' if usd is None else f'${usd:g}'}; its tokens cost {expected}"
    return ""


def _dated(price: Price | ModelRecord | None) -> str:
    day = price.price_as_of if isinstance(price, ModelRecord) else None if price is None else price.as_of
    return "unknown" if day is None else f"of {day}"
