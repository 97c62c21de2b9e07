"""Test with ``check_source`` whether a data source satisfies its contract."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tradeassay.core.errors import DataError, TradeassayError
from tradeassay_bench.core.errors import CheckFailed
from tradeassay_bench.core.time import parse_iso
from tradeassay_bench.core.view import FIELDS
from tradeassay_bench.data import Panel, Source, SourceConfig, open_snapshot, write_snapshot
from tradeassay_bench.data.calendars import CALENDARS
from tradeassay_bench.data.datasets import make_source
from tradeassay_bench.data.doctor import describe, diagnose_panel
from tradeassay_bench.data.store.manifest import content_sha256
from tradeassay_bench.data.store.write import check_form, normalised
from tradeassay_bench.testing.agent import random_states


def check_source(source: str | Source, options: Mapping[str, Any] | None = None) -> Panel:
    """Load a source, check its panel, and return the panel.

    ``source`` is a registered name (``options`` are then the fields of its ``Config``) or a source
    object. The checks are:

    - the class has a summary, a frozen ``Config`` and an ``extra``,
    - the panel has the right form, types and facts,
    - faults found by the doctor are stated as biases,
    - the panel can be stored and read back through views,
    - global random state does not change,
    - a second load of synthetic data gives the same content.

    Raises :class:`CheckFailed` with the first problem.
    """
    instance = make_source(source, options or {}) if isinstance(source, str) else source
    name = source if isinstance(source, str) else type(source).__name__
    kind = type(instance)
    config = getattr(kind, "Config", None)
    if not (isinstance(config, type) and issubclass(config, SourceConfig)):
        raise CheckFailed(f"source '{name}' has no Config derived from SourceConfig")
    if not config.__struct_config__.frozen:
        raise CheckFailed(f"source '{name}': {config.__name__} is not frozen")
    summary = getattr(kind, "summary", None)
    if not isinstance(summary, str) or not summary.strip() or "\n" in summary:
        raise CheckFailed(f"source '{name}' needs a summary of one line, but has {summary!r}")
    extra = getattr(kind, "extra", "absent")
    if extra is not None and (not isinstance(extra, str) or extra in ("", "absent")):
        raise CheckFailed(f"source '{name}' must state its extra (None for none), it has {extra!r}")
    before = random_states()
    panel = instance.load()
    if random_states() != before:
        raise CheckFailed(
            f"source '{name}' changes the global random state; it must use a separate generator"
        )
    if not isinstance(panel, Panel):
        raise CheckFailed(f"source '{name}' returned a {type(panel).__name__}, not a Panel")
    arrays: list[tuple[str, Any, str]] = [
        ("sessions", panel.sessions, "datetime64[D]"),
        ("open_time", panel.open_time, "int64"),
        ("close_time", panel.close_time, "int64"),
        ("suspended", panel.suspended, "bool"),
        *((f"bars['{field}']", panel.bars.get(field), "float64") for field in FIELDS),
        *((f"indices['{index}']", levels, "float64") for index, levels in panel.indices.items()),
    ]
    if panel.minutes is not None:
        arrays.append(("minutes.close_time", panel.minutes.close_time, "int64"))
        arrays += [
            (f"minutes.bars['{field}']", panel.minutes.bars.get(field), "float64")
            for field in FIELDS
        ]
    for label, values, dtype in arrays:
        actual = getattr(values, "dtype", None)
        if actual != np.dtype(dtype):
            raise CheckFailed(f"source '{name}': {label} has type {actual}, not {dtype}")
    try:
        check_form(panel)
    except DataError as error:
        raise CheckFailed(f"source '{name}': {error.message}") from error
    _check_facts(name, panel)
    errors = [fault for fault in diagnose_panel(normalised(panel)) if fault.severity == "error"]
    if errors and panel.facts.kind == "synthetic":
        raise CheckFailed(f"source '{name}' generates faulty data: {describe(errors)}")
    if errors and not panel.facts.biases:
        raise CheckFailed(f"source '{name}' has faults and states no bias: {describe(errors)}")
    _check_storage(name, panel)
    if panel.facts.kind == "synthetic":
        first = content_sha256(normalised(panel))
        second = content_sha256(normalised(instance.load()))
        if first != second:
            raise CheckFailed(
                f"source '{name}' is synthetic and two loads differ ({first[:12]}, {second[:12]})"
            )
    return panel


def _check_facts(name: str, panel: Panel) -> None:
    facts = panel.facts
    if facts.calendar not in CALENDARS:
        raise CheckFailed(
            f"source '{name}': calendar '{facts.calendar}' is not one of {', '.join(CALENDARS)}"
        )
    for label in ("source", "currency"):
        if not getattr(facts, label).strip():
            raise CheckFailed(f"source '{name}' leaves facts.{label} empty")
    if not panel.name.strip():
        raise CheckFailed(f"source '{name}' returns a panel without a name")
    if any(not bias.strip() or "\n" in bias for bias in facts.biases):
        raise CheckFailed(
            f"source '{name}': every bias must be one plain sentence, found {facts.biases!r}"
        )
    if facts.retrieved_at is not None:
        try:
            parse_iso(facts.retrieved_at)
        except TradeassayError as error:
            raise CheckFailed(f"source '{name}': retrieved_at: {error.message}") from error


def _check_storage(name: str, panel: Panel) -> None:
    with tempfile.TemporaryDirectory(prefix="tradeassay-check-") as temporary:
        folder = Path(temporary) / "snapshot"
        manifest = write_snapshot(panel, folder, allow_faults=True)
        snapshot = open_snapshot(folder)
        last = snapshot.sessions.size - 1
        for row in sorted({0, last // 2, last}):
            bars = snapshot.at(row, "close").session_bars()
            columns = [panel.symbols.index(symbol) for symbol in bars.symbols]
            if not np.array_equal(bars.close, panel.bars["close"][row, columns], equal_nan=True):
                raise CheckFailed(
                    f"source '{name}': session {bars.session} reads back differently from {folder}"
                )
        if len(snapshot.at(last, "close").news(-(2**62))) > manifest.shapes.news:
            raise CheckFailed(
                f"source '{name}': the stored panel has more news than the source returned"
            )
