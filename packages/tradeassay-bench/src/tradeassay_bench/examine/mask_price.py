"""Measure the price of a mask: the return that an agent loses because the mask hides information.

A mask hides names and dates that a model may remember. It also destroys information: a model may
infer a sector from a name, or a season from a date. On a synthetic world there is nothing to
remember. The loss of the same agent under the same mask on a synthetic world is therefore lost
information. The rest of the loss on a real market is memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig
from tradeassay.verdict.evidence import BRIGHT, MeanTest, gaps_of, holds, mask_price
from tradeassay.verdict.record import MaskPrice, VerdictConfig
from tradeassay_bench.core.executors import HERE, Spread
from tradeassay_bench.data.datasets import synthetic_sha256
from tradeassay_bench.examine.agent_rows import (
    MASKS,
    AgentRow,
    agent_row,
    masked_twin,
    mostly_unanswered,
)
from tradeassay_bench.examine.attribute import attribute_run

if TYPE_CHECKING:
    from tradeassay_bench.runs import Run
    from tradeassay_bench.runs.spec.episode import ProtocolRecord

Place = tuple[str, str]
"""A setting, and the label of an agent in it."""


class _Play(NamedTuple):
    """The results of one agent in a run, with and without a mask."""

    run: Run
    bright: AgentRow
    masked: AgentRow

    @property
    def world(self) -> str:
        """Return the name of the data set."""
        return self.bright.scores.dataset

    @property
    def data(self) -> str:
        """Return the hash of the data set."""
        return self.run.manifest.datasets[self.world].sha256


class _Rows(NamedTuple):
    """A run and the rows of its agents."""

    run: Run
    rows: tuple[AgentRow, ...]


def mask_prices(
    run: Run,
    rows: Sequence[AgentRow],
    selected: Sequence[AgentRow],
    others: Sequence[Run],
    config: VerdictConfig,
    *,
    unread: bool = True,
    spread: Spread = HERE,
) -> dict[Place, MaskPrice]:
    """Return the price of the mask for every unmasked model with a masked twin.

    ``rows`` contains the rows of ``run``, and ``selected`` the rows that are judged. ``others``
    contains runs of the same agents under the same masks on synthetic worlds. Their sessions are
    pooled. If ``unread`` is False, the function does not check that no model can have read the
    worlds. Raises :class:`UserError` if a world is not synthetic or occurs twice, if an agent or
    its unmasked or masked result is missing, or if the conversations differ.
    """
    plays = []
    for row in selected:
        twin = masked_twin(row, rows) if row.by_model and row.mask in (None, BRIGHT) else None
        if twin is not None:
            plays.append(_Play(run, row, twin))
    if not plays:
        raise UserError(
            f"a mask has no price in {run.folder}: no model that is judged played it with and "
            "without a mask",
            hint="play it under the masks bright,blinded",
        )
    if unread:
        for other in others:
            _refuse_what_may_be_read(other)
    priced = [_rows_of(other, config, spread) for other in others]
    prices = {}
    for play in plays:
        found = [pair for other in priced for pair in _same_plays(play, other)]
        _refuse_same_days(play, found)
        place = play.bright.scores.setting, play.bright.scores.agent
        prices[place] = _price(found, config)
    return prices


def _refuse_what_may_be_read(run: Run) -> None:
    for name, record in run.manifest.datasets.items():
        if record.facts.kind != "synthetic":
            raise UserError(
                f"{run.folder} plays {name}, which is not synthetic: a model may have read it",
                hint="play a generated world, e.g. synthetic/us:4711",
            )
        generated = synthetic_sha256(name)
        if generated is not None and generated != record.sha256:
            raise UserError(
                f"{run.folder} contains a different {name} from the one that its seed generates",
                hint="play it again on a world that is generated here",
            )


def _rows_of(run: Run, config: VerdictConfig, spread: Spread) -> _Rows:
    bootstrap = BootstrapConfig(level=config.level, draws=config.draws)
    attribution = attribute_run(
        run, convention="corrected", bootstrap=bootstrap, spread=spread, intervals=False
    )
    return _Rows(run, tuple(agent_row(run, scores, attribution) for scores in run.scores.agents))


# The same agent under the same mask ---------------------------------------------------------------


def _same_plays(play: _Play, other: _Rows) -> list[_Play]:
    """Return all results of an agent in another run that differ from ``play`` only in the world."""
    name = play.run.names[play.bright.scores.agent]
    own = [row for row in other.rows if _is_same_agent(play, other.run, row)]
    if not own:
        there = dict.fromkeys(other.run.names[row.scores.agent] for row in other.rows)
        raise UserError(f"no '{name}' in {other.run.folder}", hint=f"it has {', '.join(there)}")
    unmasked = [row for row in own if row.mask in (None, BRIGHT)]
    if not unmasked:
        raise UserError(
            f"'{name}' was not played without a mask in {other.run.folder}",
            hint="play it under the masks bright,blinded",
        )
    against = str(play.masked.mask)
    masked = [row for row in own if row.mask == against]
    if not masked:
        masks = ", ".join(sorted({str(row.mask) for row in own if row.mask in MASKS})) or "none"
        raise UserError(
            f"'{name}' was not played under '{against}' in {other.run.folder} (masks there: "
            f"{masks})",
            hint=f"play it under the masks bright,{against}",
        )
    for mine, theirs in ((play.bright, unmasked), (play.masked, masked)):
        differences = [_difference(play.run, mine, other.run, row) for row in theirs]
        if all(differences):
            raise UserError(
                f"'{name}' was run with different options in {other.run.folder}: {differences[0]}",
                hint="give both runs the same options",
            )
    pairs = []
    for row in unmasked:
        if _difference(play.run, play.bright, other.run, row):
            continue
        twins = [one for one in masked if not _difference(play.run, play.masked, other.run, one)]
        twin = masked_twin(row, twins)
        if twin is not None:
            pairs.append(_Play(other.run, row, twin))
    if not pairs:
        raise UserError(
            f"'{name}' has no masked play of the days that it played unmasked in "
            f"{other.run.folder}",
            hint=f"play both in one run under the masks bright,{against}",
        )
    return pairs


def _is_same_agent(play: _Play, other: Run, row: AgentRow) -> bool:
    """Return whether a row belongs to the same agent: the same name, parameters and code.

    The label is not compared.
    """
    if not row.by_model:
        return False
    facts = []
    for run, played in ((play.run, play.bright), (other, row)):
        agent = run.episode(played.scores.episodes[0]).agent
        record = run.manifest.agents.get(agent.name)
        own_files = run.manifest.files or {}
        files = own_files.get(played.scores.agent)
        facts.append((agent.name, agent.params, None if record is None else record.sha256, files))
    return facts[0] == facts[1]


def _difference(run: Run, row: AgentRow, other: Run, there: AgentRow) -> str:
    """Return the first difference between two conversations except for the data; empty if none."""
    records: list[ProtocolRecord | None] = [
        one.manifest.protocols.get(played.scores.setting)
        for one, played in ((run, row), (other, there))
    ]
    mine, theirs = records
    if mine is None or theirs is None:
        return "" if mine is theirs else "only one of both runs has recorded how it was asked"
    if (mine.protocol, mine.code_sha256) != (theirs.protocol, theirs.code_sha256):
        return f"by the rules of {theirs.protocol}, here by {mine.protocol}"
    for option in sorted({*mine.config, *theirs.config}):
        here, elsewhere = mine.config.get(option), theirs.config.get(option)
        if here != elsewhere:
            return f"{option} is {elsewhere} there and {here} here"
    return "" if mine.prompts == theirs.prompts else "the prompts differ"


# Its price ----------------------------------------------------------------------------------------


def _refuse_same_days(play: _Play, pairs: Sequence[_Play]) -> None:
    """Check that no pair is from the judged world and that no day of a world occurs twice.

    Raises :class:`UserError` otherwise.
    """
    seen: set[tuple[str, str]] = set()
    for pair in pairs:
        if pair.data == play.data:
            raise UserError(
                f"{pair.run.folder} uses {pair.world}, the data set of the judged run",
                hint="measure the mask's price on a different data set",
            )
        days = {(pair.data, session) for session in pair.bright.sessions}
        twice = sorted(days & seen)
        if twice:
            raise UserError(
                f"{twice[0][1]} of {pair.world} would count twice in the mask's price",
                hint="give every day of a world once",
            )
        seen |= days


def _price(pairs: Sequence[_Play], config: VerdictConfig) -> MaskPrice:
    """Return the price over all pairs, or the reason why it cannot be measured."""
    worlds = tuple(dict.fromkeys(pair.world for pair in pairs))
    reasons = [reason for pair in pairs if (reason := _unusable(pair, config)) is not None]
    years = {pair.bright.year for pair in pairs}
    if len(years) > 1:
        reasons.append(f"a year has {' or '.join(map(str, sorted(years)))} sessions in its worlds")
    if reasons:
        return MaskPrice(worlds=worlds, reason=reasons[0])
    each = []
    for pair in pairs:
        assert pair.bright.daily is not None and pair.masked.daily is not None
        each.append(gaps_of(pair.bright.daily, pair.masked.daily))
    gaps = {claim: np.concatenate([one[claim] for one in each]) for claim in each[0]}
    return mask_price(gaps, MeanTest(years.pop(), config), worlds)


def _unusable(pair: _Play, config: VerdictConfig) -> str | None:
    """Return why a pair of results cannot show the price of a mask; None if it can."""
    plays: Mapping[str, AgentRow] = {"unmasked": pair.bright, "masked": pair.masked}
    for name, row in plays.items():
        where = f"in {pair.world} the {name} run"
        if row.daily is None:
            return f"{where} has no result"
        unanswered = mostly_unanswered(row, config)
        if unanswered is not None:
            return f"{where} {unanswered}"
    bright, masked = pair.bright.daily, pair.masked.daily
    assert bright is not None and masked is not None
    if pair.bright.sessions != pair.masked.sessions:
        return f"in {pair.world} both runs ended on different days"
    held = {"unmasked": holds(bright), "masked": holds(masked)}
    most = max(int(days.sum()) for days in held.values())
    for name, days in held.items():
        if days.sum() < 0.5 * most or most == 0:
            return (
                f"in {pair.world} the {name} run held something on {days.sum()} of {days.size} "
                "sessions"
            )
    return None
