"""Harden a mask round by round until a chosen attacker does no better than chance, and say what that cost.

What it costs is information: how much shown closes still say about true ones, their levels and their returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.assay.probe.payloads import (
    HARDENINGS,
    Probe,
    ProbeConfig,
    ProbePayload,
    draw_probes,
    make_payloads,
)
from tradeassay.assay.probe.probe import probe_mask
from tradeassay.assay.probe.programs import shown_closes
from tradeassay.benchmarks import benchmarks
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.tables import counted
from tradeassay.data import Snapshot, load_dataset
from tradeassay.metrics.intervals import significant
from tradeassay.runs.spec.episode import Asking
from tradeassay.runs.spec.run_spec import HardenedMask, RunSpec

_HIDES = {
    "stock-blind": ("top_1", "top_5"),
    "date-blind": ("date_7",),
    "blinded": ("top_1", "top_5", "date_7", "joint"),
}
"""What a mask hides: that the rest is known says nothing against it."""


class HardeningRound(msgspec.Struct, frozen=True, kw_only=True):
    """One round: what the attacker found, which of it is above chance, the correlation of shown with true closes
    over probes (``levels``) and of returns within them. ``names`` and ``days`` were recognised."""

    hardening: str
    found: dict[str, Measure]
    above: tuple[str, ...]
    levels: Measure
    returns: Measure
    names: tuple[str, ...]
    days: tuple[str, ...]


class Hardened(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds; ``enough`` is the hardening at which the attacker is at chance, None where there is none. A
    model that gives no answer from the first, or always the same, says nothing about a mask."""

    benchmark: str
    dataset: str
    mask: str
    attacker: str
    rounds: tuple[HardeningRound, ...]
    enough: str | None
    sentence: str

    def played_by(self, spec: RunSpec) -> RunSpec:
        """Return a spec that plays the mask of the last round, and says what it rests on. Raises
        :class:`UserError` where that is nothing."""
        last = self.rounds[-1]
        if self.enough is None and not last.above:
            hint = "choose an attacker that answers, or another mask"
            raise UserError(f"nothing was hardened: {self.sentence}", hint=hint)
        mask = HardenedMask(
            attacker=self.attacker,
            benchmark=self.benchmark,
            dataset=self.dataset,
            hardening=last.hardening,
            rounds=len(self.rounds),
            fell=self.enough is not None,
            levels=last.levels.value,
            returns=last.returns.value,
        )
        protocol = {**spec.protocol, "mask": self.mask, **HARDENINGS[last.hardening]}
        return msgspec.structs.replace(spec, hardened=mask, protocol=protocol)


def harden(
    attacker: str,
    benchmark: str = "ktdfin-v1",
    *,
    dataset: str | None = None,
    config: ProbeConfig | None = None,
    asking: Asking | None = None,
    say: Callable[[str], None] | None = None,
) -> Hardened:
    """Repeat the probe with ever harder masks until ``attacker`` names no stock and no day above chance. Raises
    :class:`UserError` for several masks or a bright one, and whatever the probe raises."""
    config, say = config or ProbeConfig(), say or (lambda _: None)
    if len(config.masks) != 1 or config.masks[0] == "bright":
        hint = "masks=('blinded',)"
        raise UserError("one mask is hardened at a time, and nothing is hidden in a bright market", hint=hint)
    mask, played = config.masks[0], benchmarks.get(benchmark)
    snapshot = load_dataset(dataset or played.dataset)
    probes = draw_probes(played, snapshot, config)
    rounds: list[HardeningRound] = []
    for hardening in HARDENINGS:
        one = msgspec.structs.replace(config, hardenings=(hardening,))
        report = probe_mask(played, (attacker,), dataset=snapshot, config=one, asking=asking)
        row = report.row(attacker, mask, hardening)
        assert row is not None
        above = tuple(name for name in _HIDES[mask] if row.above_random.get(name))
        answers = [one for one in report.answers if one.attacker == attacker]
        levels, returns = information(
            make_payloads(played, snapshot, probes, (mask, hardening), one), probes, snapshot
        )
        rounds.append(
            HardeningRound(
                hardening=hardening,
                found={name: row.of_all[name] for name in _HIDES["blinded"]},
                above=above,
                levels=levels,
                returns=returns,
                names=tuple(dict.fromkeys(hit.symbol for hit in answers if "top_1" in hit.hits)),
                days=tuple(dict.fromkeys(hit.session for hit in answers if "date_7" in hit.hits)),
            )
        )
        say(f"round {len(rounds)}, {hardening}: {', '.join(above) or 'nothing'} above chance")
        if not above:
            break
    last = rounds[-1]
    # A program that is silent finds nothing to go by; a model may be silent for reasons of its own.
    untold = None
    if "/" in attacker and len(rounds) == 1 and not last.above:
        given = [(one.tickers, one.date) for one in answers if one.tickers or one.date]
        if not given:
            why = next((f" ({one.wrong[-1]})" for one in answers if one.wrong), "")
            untold = f"it named no stock and no day in {counted(len(answers), 'probe')}{why}"
        elif len(given) > 1 and len(set(given)) == 1:
            untold = f"all its {len(given)} answers are the same"
    return Hardened(
        benchmark=played.id,
        dataset=snapshot.name,
        mask=mask,
        attacker=attacker,
        rounds=tuple(rounds),
        enough=None if last.above or untold else last.hardening,
        sentence=_sentence(attacker, mask, rounds, untold),
    )


def _sentence(attacker: str, mask: str, rounds: Sequence[HardeningRound], untold: str | None) -> str:
    last = rounds[-1]
    if untold:
        return f"Whether the mask stops {attacker} cannot be told: {untold}."
    kept = ""
    if last.returns.value is not None:
        kept = f"; shown returns still correlate {last.returns.value:.2f} with true ones"
    if last.above:
        return f"{attacker} does not fall to chance in {counted(len(rounds), 'round')}{kept}."
    fell = f"falls to chance under '{last.hardening}' in {len(rounds)} rounds"
    if len(rounds) == 1:
        fell = f"is at chance under '{last.hardening}' already"
    words = {"top_1": "of stocks", "date_7": "of days"}
    room = " and ".join(f"{last.found[name].high:.0%} {words[name]}" for name in words if name in _HIDES[mask])
    probes = counted(last.found["top_1"].n or 0, "probe")
    return f"{attacker} {fell}; by {probes} it may still know up to {room}{kept}."


def read_hardened(path: Path) -> Hardened:
    """Return what hardening a mask came to; raises :class:`UserError` for a file that does not say it."""
    try:
        made = msgspec.json.decode(path.read_bytes(), type=Hardened)
        if not made.rounds:
            raise msgspec.ValidationError("it has no rounds")
        for one in made.rounds:
            if one.hardening not in HARDENINGS:
                raise msgspec.ValidationError(f"there is no hardening '{one.hardening}'")
    except UNDECODABLE as error:
        hint = "tradeassay memory probe --harden ATTACKER --json > FILE"
        raise UserError(f"{path} is not the record of a hardening: {error}", hint=hint) from error
    return made


def information(
    payloads: Sequence[ProbePayload], probes: Sequence[Probe], snapshot: Snapshot
) -> tuple[Measure, Measure]:
    """Return the correlation of shown with true closes over probes, and the mean one of their returns."""
    shown_last, true_last, alike = [], [], []
    for payload, probe in zip(payloads, probes, strict=True):
        shown = shown_closes(payload)
        view = snapshot.at(probe.row, "pre_open")
        if shown.size < 3:
            continue
        true = view.bars("close", shown.size)[:, view.column(probe.symbol)]
        if true.size != shown.size or not (np.isfinite(true).all() and np.isfinite(shown).all()):
            continue
        shown_last.append(np.log(shown[-1]))
        true_last.append(np.log(true[-1]))
        moved = [np.diff(np.log(one)) for one in (shown, true)]
        if all(one.std() > 0.0 for one in moved):
            alike.append(float(np.corrcoef(moved[0], moved[1])[0, 1]))
    if len(alike) < 3:
        none = not_scored("too few bars are shown")
        return none, none
    level = 0.0 if np.std(shown_last) == 0.0 else float(np.corrcoef(shown_last, true_last)[0, 1])
    return (
        Measure(value=significant(level), n=len(alike)),
        Measure(value=significant(float(np.mean(alike))), n=len(alike)),
    )
