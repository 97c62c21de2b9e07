"""The leak tests of a run's rules: each is played again, in other futures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tradeassay.assay.leaks.examine import leak_test
from tradeassay.assay.leaks.records import LeakTestConfig, LeakTestReport

if TYPE_CHECKING:
    from pathlib import Path

    from tradeassay.runs import Run


def leak_tests(
    run: Run, *, agents: Sequence[str] = (), config: LeakTestConfig | None = None, home: Path | None = None
) -> dict[str, LeakTestReport]:
    """Return a leak test of every rule of a run (or of some agents), in the first cell that it played.

    Models are left out: testing one asks it again, which costs money and is decided on its own
    (:func:`~tradeassay.assay.leaks.examine.leak_test`).
    """
    found: dict[str, LeakTestReport] = {}
    for episode in run.episodes:
        if episode.by_model or episode.label in found or (agents and episode.label not in agents):
            continue
        found[episode.label] = leak_test(
            episode.agent.name,
            run.manifest.benchmark(episode),
            run.snapshot(episode.key),
            params=episode.agent.params,
            config=config,
            home=home,
        )
    return found
