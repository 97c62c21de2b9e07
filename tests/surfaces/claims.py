"""What the surfaces claim: intervals, comparisons, tiers, labels, markets, read back from what a
person sees.
"""

import html
import re
from html.parser import HTMLParser
from typing import NamedTuple

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.verdict._phrases import percent

MINUS = numbers.MINUS
_NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?%?"
_SPANNED = re.compile(
    rf"(?<![\w.])({_NUMBER})(?:\s*[(\[]\s*|\s+)({_NUMBER})(?: to |, )({_NUMBER})(?![\w.]*[-/]\d)"
)
_FORMS = (*numbers.FORMS, "{:.1%}", "{:.0%}", "{:.2f}", "{:+.2%}")


class Surface(NamedTuple):
    """One place where claims are shown, as the text that a person reads."""

    name: str
    text: str


def visible(page):
    """Return the words of a page, without scripts, styles and drawings."""
    bare = re.sub(r"<(script|style|svg|template|head)\b.*?</\1>", " ", page, flags=re.S)
    # Blocks end a sentence, as the eye reads them.
    bare = re.sub(
        r"</(p|li|td|th|h\d|dd|dt|caption|summary|figcaption|button|option)>", " \n", bare
    )
    return plain(
        html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"<(br|small|span|div)\b[^>]*>", " ", bare)))
    )


def plain(text):
    """Return a text with hyphens for minus signs and single blanks; lines stay."""
    lines = (
        " ".join(line.split()) for line in text.replace(MINUS, "-").replace("$-$", "-").splitlines()
    )
    return "\n".join(line for line in lines if line)


class _Marked(HTMLParser):
    """Collects the text of every element that is marked as a claim."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self.mark = mark
        self.open: list[tuple[str, str | None, list[str]]] = []
        self.found: dict[str, set[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in (
            "br",
            "img",
            "input",
            "wbr",
            "meta",
            "link",
            "hr",
            "path",
            "line",
            "rect",
            "circle",
        ):
            self.open.append((tag, dict(attrs).get(self.mark), []))

    def handle_data(self, data: str) -> None:
        for _, _, texts in self.open:
            texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        while self.open:
            opened, claim, texts = self.open.pop()
            if claim:
                self.found.setdefault(claim, set()).add(" ".join(plain(" ".join(texts)).split()))
            if opened == tag:
                return


def claims(page, mark="data-claim"):
    """Return what a page marks: the visible text of every element with ``data-claim``, by the
    claim's name.

    With ``data-stated`` these are the numbers of statements.
    """
    reader = _Marked(mark)
    reader.feed(re.sub(r"<(script|style|svg|template)\b.*?</\1>", "", page, flags=re.S))
    return reader.found


def measures(record):
    """Yield every measure in a record, however deep."""
    if isinstance(record, Measure):
        yield record
        return
    if isinstance(record, msgspec.Struct):
        record = [getattr(record, name) for name in record.__struct_fields__]
    inside = (
        record.values()
        if isinstance(record, dict)
        else record
        if isinstance(record, tuple | list)
        else ()
    )
    for one in inside:
        yield from measures(one)


def recorded(*records):
    """Return the recorded intervals as they may be written."""
    found = set()
    for one in measures(records):
        # A level of one half is a spread over windows and seeds: shown as an interval, it would be a second one.
        if one.value is None or one.low is None or one.high is None or one.level == 0.5:
            continue
        ends = (one.value, one.low, one.high)
        for form in _FORMS:
            value, low, high = (_signless(numbers.written(end, form)) for end in ends)
            found.add((value, low, high))
        found.add(tuple(_signless(percent(end)) for end in ends))
        found.add(
            (
                _signless(f"{one.value:.1%}"),
                _signless(f"{one.low:.0%}"),
                _signless(f"{one.high:.0%}"),
            )
        )
    return found


def _signless(text):
    return text.replace(MINUS, "-").lstrip("+")


def foreign_intervals(surface, known):
    """Return intervals that are shown and not recorded: two for one number, or one that nobody
    computed.
    """
    return [
        f"{surface.name}: {' '.join(found)} is not recorded"
        for found in _SPANNED.findall(surface.text)
        if (_signless(found[0]), _signless(found[1]), _signless(found[2])) not in known
        and "%" in "".join(found) + "%" * ("." in found[1])
        # A count beside a range of shares, such as that of a bin, is no interval of it.
        and ("%" in found[0]) == ("%" in found[1])
    ]


# Comparisons with the baseline, and tiers

_VERBS = (
    (r"beats?", "above"),
    (r"falls? behind", "below"),
    (r"cannot be told apart from", None),
    (r"(?:is|are) the same as", None),
)


def wrong_in_every(surface, cells):
    """Return sentences that are wrong of every setting of a run: each is written about one of
    them.
    """
    each = [wrong_comparisons(surface, cell) for cell in cells]
    sentences = [{line.partition(" although ")[0] for line in lines} for lines in each]
    shared = set.intersection(*sentences) if sentences else set()
    return [line for line in (each[0] if each else ()) if line.partition(" although ")[0] in shared]


def wrong_comparisons(surface, cell):
    """Return sentences about the baseline, the highest return or tiers that say other than the
    record does.
    """
    tiers = () if cell.contest is None else cell.contest.tiers
    base = "|".join(map(re.escape, (cell.baseline_phrase, cell.baseline, "it")))
    found = []
    for sentence in re.split(r"(?<=[.;])\s|\n", surface.text):
        about = [
            one for one in cell.agents if "ranked agent" not in sentence or one.unranked is None
        ]
        sides = {one.name: one.versus.side if one.versus is not None else None for one in about}
        if re.search(r"No (?:ranked )?agent can be told apart", sentence) and any(sides.values()):
            found.append(f"{surface.name}: '{sentence}' although {sides}")
        for verb, side in _VERBS:
            match = re.match(rf"(.*?)\b{verb} (?:{base})\b", sentence)
            if match is None:
                continue
            subject = match[1].replace(" is best: it", "").lstrip("- ").strip()
            if subject.startswith(("No agent", "No ranked agent")) and side == "above":
                wrong = [name for name, one in sides.items() if one == "above"]
            elif subject.startswith(("Every agent", "Every ranked agent")):
                wrong = [
                    name for name, one in sides.items() if one != side and name != cell.baseline
                ]
            else:
                named = _named(subject.rpartition(", and ")[2] or subject, sides)
                wrong = [name for name in named if sides[name] != side]
            found += [
                f"{surface.name}: '{sentence}' although {name} is {sides[name]}" for name in wrong
            ]
        found += _wrong_highest(surface, sentence, about) + _wrong_tiers(
            surface, sentence, tiers, sides
        )
    return found


def _wrong_highest(surface, sentence, agents):
    """Return who returned more than the one that is said to have the highest return among these."""
    subject, said, _ = sentence.partition(" has the highest return")
    returned = {
        one.name: one.result.value
        for one in agents
        if not one.baseline and one.result.value is not None
    }
    named = max((name for name in returned if subject.endswith(name)), key=len, default=None)
    if not said or named is None:
        return [f"{surface.name}: '{sentence}' names nobody"] if said else []
    more = [name for name, value in returned.items() if value > returned[named]]
    return [
        f"{surface.name}: '{sentence}' although {name} returned {returned[name]}" for name in more
    ]


def _named(subject, names):
    """Return the agents that a subject names: 'a, b and c', 'a, b, c and 5 others'."""
    listed = {part.strip() for part in re.split(r", | and ", subject)}
    return [name for name in names if name in listed]


def _wrong_tiers(surface, sentence, tiers, names):
    said = f"{surface.name}: '{sentence}' although tiers are {tiers}"
    first = tuple(tiers[0]) if tiers else ()
    sentence = sentence.lstrip("- ")
    if best := re.match(r"(.*) is best:", sentence):
        return [] if first == (best[1],) else [said]
    if alone := re.match(r"(.*) alone is in the first tier", sentence):
        return [] if first == (alone[1],) and len(tiers) > 1 else [said]
    if shared := re.match(r"(.*) share the first tier", sentence):
        return [] if set(_named(shared[1], names)) <= set(first) and len(tiers) > 1 else [said]
    if sentence.startswith(("All agents share one tier", "All ranked agents share one tier")):
        return [] if len(tiers) == 1 else [said]
    return []


# A verdict and the numbers beside it


def contradictions(one):
    """Return what a verdict's own lines say against each other or against the record."""
    said, low, high = one.verdict, None, None
    if one.alpha is not None:
        low, high = one.alpha.tested.low, one.alpha.tested.high
    inside = low is None or high is None or low <= 0.0 <= high
    rules = (
        (r"which is not distinguishable from luck", inside),
        (r"beyond [a-z ]+ is not distinguishable from luck", inside),
        (r"alpha of .* significantly above zero", low is not None and low > 0.0),
        (r"alpha of .* significantly below zero", high is not None and high < 0.0),
        (r"zero is not excluded", low is not None and inside),
        (r"; skill: ", said.kind == "skill"),
        (r"; positive, and could be the best", said.kind == "could-be-best-of-few"),
        (r"loses \+|takes -[\d.]+% .* a year of", False),
    )
    found = []
    claimed = (statement.claim for statement in one.statements)
    for line in map(plain, (said.sentence, *said.limits, *claimed)):
        wrong = any(re.search(words, line) and not right for words, right in rules)
        found += (
            [f"{one.agent}: '{line}' although {one.alpha}"]
            if wrong or _misquoted(one, line)
            else []
        )
    if one.baseline and said.kind not in ("look-ahead", "failed") and said.label != "baseline":
        found.append(f"{one.agent}: the baseline is labelled '{said.label}'")
    drawn = None if one.curve is None or one.curve.market is None else one.curve.market[-1]
    if drawn is not None and abs(drawn - (one.market.value or 0.0)) > 1e-4:
        found.append(f"{one.agent}: the market drawn ends at {drawn}, not {one.market.value}")
    return found


def _misquoted(one, line):
    """Return whether a line quotes a return, a market, a half or a comparison other than the
    recorded one.
    """
    quoted = (
        (rf"^{re.escape(one.agent)}(?:, the baseline,)? returned (\S+?%)", one.total.value),
        (r"(?:the market|the benchmark|world market) returned (\S+?%)", one.market.value),
    )
    if any(
        match[1] != plain(percent(value))
        for words, value in quoted
        if (match := re.search(words, line))
    ):
        return True
    if one.versus is None:
        return False
    base = re.escape(one.versus.baseline)
    return any(
        re.search(rf"\b{verb} {base}\b", line) and one.versus.side != side
        for verb, side in _VERBS[:2]
    )


def run_against_assay(data, found):
    """Return returns and comparisons that a run and its assay do not share."""
    rows = {(cell.id, one.row.agent): one for cell in data.settings for one in cell.agents}
    wrong = []
    for one in found.agents:
        row = rows.get((one.setting, one.agent)) or next(
            (
                two
                for (cell, _), two in rows.items()
                if cell == one.setting and two.name == one.agent
            ),
            None,
        )
        if row is None:
            wrong.append(f"{one.agent} is in the assay of {one.setting} only")
            continue
        mine, theirs = one.total, row.result
        if row.seeds == 1 and one.verdict.kind != "failed":
            if (mine.value, mine.low, mine.high) != (theirs.value, theirs.low, theirs.high):
                wrong.append(f"{one.agent} returned {mine} in the assay, {theirs} in the run")
            fall = one.statement("max-drawdown")
            scored = row.measures["max_drawdown"].median.value
            if fall is not None and scored is not None and abs((fall.value or 0.0) - scored) > 1e-6:
                wrong.append(f"{one.agent} fell {fall.value} in the assay, {scored} in the run")
        if one.versus != row.versus:
            wrong.append(f"{one.agent} is compared in two ways: {one.versus} and {row.versus}")
    return wrong
