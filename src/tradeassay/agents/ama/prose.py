"""What a role is shown, in words and lines: no JSON, no abbreviations of ours, everything foreign quoted.

The input is the same mapping that goes beside the text as data; a key that is not known here raises, so that
nothing is shown to scripted models that a real one does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Json = Mapping[str, object]
QUOTED = 6000
"""The most characters of one foreign text that are quoted."""

HELD = {1: "long", 0: "none", -1: "short"}


def prose(shown: Json) -> str:
    """Return what a role is shown as text; raises :class:`KeyError` for something that has no words."""
    parts = [part for name, value in shown.items() if (part := _PARTS[name](value, shown))]
    return "\n\n".join(parts) if parts else "You are shown nothing besides."


def quoted(text: str) -> str:
    """Return a foreign text with a mark in front of every line."""
    cut = text if len(text) <= QUOTED else text[: QUOTED - 4].rstrip() + " ..."
    return "\n".join(f"> {line}" if line else ">" for line in cut.strip().splitlines()) or "> (empty)"


def percent(value: float) -> str:
    return f"{100 * value:+.2f} %"


def figure(value: float) -> str:
    """Return a price: two decimals from 1 on, four figures below."""
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.4g}"


def _price(value: Any, shown: Json) -> str:
    return f"Price now: {figure(value)}"


def _history(value: Any, shown: Json) -> str:
    if not value:
        return "Earlier closing prices: none are known."
    return "Earlier closing prices, oldest first: " + ", ".join(f"{day} {figure(price)}" for day, price in value)


def _momentum(value: Any, shown: Json) -> str:
    if value is None:
        return "Return over the last month: not known."
    return f"Return over the last month: {percent(value)}"


def _news(value: Any, shown: Json) -> str:
    if not value:
        return "News: there is none."
    lines = ["News, each with the time it was published (UTC) and its source:"]
    for place, item in enumerate(value, 1):
        lines.append(f"{place}. {_stamp(item['published_at'])}, {item['source']}")
        lines.append(quoted(f"{item['title']}\n{item['text']}" if item["text"] else item["title"]))
    return "\n".join(lines)


def _headlines(value: Any, shown: Json) -> str:
    if not value:
        return "Headlines: there are none."
    lines = ["Headlines, each with the time it was published (UTC) and its source:"]
    for stamp, source, title in value:
        lines += [f"{_stamp(stamp)}, {source}", quoted(title)]
    return "\n".join(lines)


def _report(name: str) -> Callable[[Any, Json], str]:
    def written(value: Any, shown: Json) -> str:
        return f"{name}: there is none." if not value else f"{name}:\n{quoted(value)}"

    return written


def _opinions(value: Any, shown: Json) -> str:
    return "\n".join(["What was thought of the asset:", *_said(value)]) if value else "Nobody gave an opinion."


def _said(value: Any) -> Iterator[str]:
    for one in value:
        if "view" not in one:
            yield f"- {one['role']}: gave no usable answer"
        else:
            yield f"- {one['role']}: {one['view']}, confidence {one['confidence']:g}. {_line(one['reason'])}"


def _debate(value: Any, shown: Json) -> str:
    if not value:
        return "The debate has not begun."
    said = (f"- {one['role']}: {_line(one['argument'] or 'gave no usable answer')}" for one in value)
    return "\n".join(["The debate so far:", *said])


def _proposal(value: Any, shown: Json) -> str:
    if value is None:
        return "The trader made no usable proposal."
    sure = f"with confidence {value['confidence']:g}"
    return f"The trader proposes {value['action']} {sure}. {_line(value['reasoning'])}"


def _risk(value: Any, shown: Json) -> str:
    if value is None:
        return "The risk manager gave no usable answer."
    allowed = [side for side, key in (("long", "allow_long"), ("short", "allow_short")) if value[key]]
    sides = " and ".join(allowed) if allowed and value["max_exposure"] > 0 else "no position at all"
    most = f", up to {value['max_exposure']:g} of the account" if value["max_exposure"] < 1 else ""
    return f"The risk manager allows {sides}{most}. {_line(value['reason'])}"


def _outcomes(value: Any, shown: Json) -> str:
    if not value:
        return "Your own settled decisions: there are none yet."
    lines = ["Your own last settled decisions, oldest first:"]
    for one in value:
        held = HELD[int(one["position"])]
        lines.append(f"- {one['date']}: {one['action']}, position {held}, result {percent(one['earned'])}")
    return "\n".join(lines)


def _others(value: Any, shown: Json) -> str:
    lines = ["What other agents said in public:"]
    for one in value:
        lines += [f"{one['entry']}, {one['date']}", quoted(one["text"])]
    return "\n".join(lines)


_LAYERS = {"short": "recent", "mid": "last months", "long": "lasting", "reflection": "lesson"}


def _memory(value: Any, shown: Json) -> str:
    if not value:
        return "Your memory holds nothing on this yet."
    lines = ["What you remember:"]
    for one in value:
        lines += [f"({_LAYERS[one['layer']]}, importance {one['importance']:g})", quoted(one["text"])]
    return "\n".join(lines)


def _remembered(value: Any, shown: Json) -> str:
    return _memory(value, shown).replace("What you remember:", "What you had in mind when you decided:")


def _journal(value: Any, shown: Json) -> str:
    if not value:
        return "Your journal is empty."
    lines = ["Your journal of own decisions, oldest first:"]
    for one in value:
        came = "not settled yet" if one["earned"] is None else f"result {percent(one['earned'])}"
        views = ", ".join(f"{name} {view}" for name, view in one["views"].items())
        seen = f"; the analysts said: {views}" if views else ""
        lines.append(f"- {one['date']}: {one['action']}, {came}{seen}. {_line(one['reasoning'])}")
    return "\n".join(lines)


def _record(value: Any, shown: Json) -> str:
    if not value:
        return "How often each analyst was right: not known yet."
    told = (f"- {name}: {one['right']} of {one['of']} times" for name, one in value.items())
    return "\n".join(["How often the asset moved as each analyst said:", *told])


def _account(value: Any, shown: Json) -> str:
    return f"Your account over all assets is worth {value:.4f} (it began with 1)."


def _exposures(value: Any, shown: Json) -> str:
    told = ", ".join(f"{asset} {money:+.4f}" for asset, money in value.items())
    return f"Money behind each asset now (negative is short): {told or 'none'}."


def _stamp(text: str) -> str:
    return text.replace("T", " ")[:16]


def _line(text: str) -> str:
    return " ".join(str(text).split())


_PARTS: dict[str, Callable[[Any, Json], str]] = {
    "price": _price,
    "history": _history,
    "momentum": _momentum,
    "news": _news,
    "headlines": _headlines,
    "annual_report": _report("Newest annual report"),
    "quarterly_report": _report("Newest quarterly report"),
    "opinions": _opinions,
    "debate": _debate,
    "proposal": _proposal,
    "risk": _risk,
    "outcomes": _outcomes,
    "others": _others,
    "memory": _memory,
    "remembered": _remembered,
    "journal": _journal,
    "analysts_record": _record,
    "account": _account,
    "exposures": _exposures,
}
