"""What each role is shown of a packet. A role sees its own field and nothing else of the information."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tradeassay.core.arena import Packet

Json = Mapping[str, object]


def prices(packet: Packet) -> dict[str, object]:
    """Return the price, at most ten earlier ones and the month's return."""
    return {
        "price": packet.price,
        "history": [[point.date, point.price] for point in packet.history],
        "momentum": packet.momentum,
    }


def news(packet: Packet) -> dict[str, object]:
    """Return the published items with their texts."""
    return {"news": [msgspec.to_builtins(item) for item in packet.news]}


def headlines(packet: Packet) -> dict[str, object]:
    """Return the titles alone, for somebody who listens to the mood."""
    return {"headlines": [[item.published_at, item.source, item.title] for item in packet.news]}


def reports(packet: Packet) -> dict[str, object]:
    """Return the newest annual and quarterly report."""
    return {"annual_report": packet.annual_report, "quarterly_report": packet.quarterly_report}


def everything(packet: Packet) -> dict[str, object]:
    """Return all information of a packet."""
    return {**prices(packet), **news(packet), **reports(packet)}


def record(packet: Packet) -> dict[str, object]:
    """Return the agent's own settled decisions, and what others said where the season lets them."""
    shown: dict[str, object] = {"outcomes": [msgspec.to_builtins(outcome) for outcome in packet.outcomes]}
    if packet.others:
        shown["others"] = [msgspec.to_builtins(message) for message in packet.others]
    return shown
