"""No sentence contradicts its own page: thousands of findings are drawn, and every line is read against them."""

import re
from typing import Any

import msgspec
import numpy as np
from test_verdict import LEANS, follows, found, span

from tradeassay.core.measure import Measure, not_scored
from tradeassay.verdict import AgentFindings, decide
from tradeassay.verdict.record import (
    KINDS,
    LABELS,
    SOFT,
    ConcentrationEvidence,
    Contrast,
    Edge,
    LeakEvidence,
    LuckEvidence,
    MemoryEvidence,
    RecallEvidence,
    StabilityEvidence,
    StyleEvidence,
    TailEvidence,
    TimingEvidence,
    Together,
    TrialsEvidence,
    VerdictConfig,
)
from tradeassay_bench.examine.memory.edge import EdgeSplit, RecallSplit

CONFIG = VerdictConfig()
PRAISE = ("skill", "timing", "mixed")
HALVES = ("first", "second", "without_best")
SEEN = {
    *(label for kind, label in LABELS.items() if kind not in ("open", "failed", "cash")),
    *SOFT.values(),
    *("baseline", "no edge is shown", "behind the market"),
    *(
        "style is not measured",
        "files were open to it",
        "memory is not certain",
        "memory is not excluded",
    ),
    *("recall is not tested", "recall is not excluded", "what it was shown does not matter"),
    *(
        "the memory contrast is in doubt",
        "leaks are not excluded",
        "leaks on up to 20% of days are not excluded",
    ),
    *(
        "there is no luck baseline",
        "random portfolios do not confirm it",
        "the market did not crash",
    ),
    *(
        "the unmasked play alone is not certain",
        "hindsight is not excluded",
        "returns alone say no more",
    ),
    *(
        "dividends and interest are not excluded",
        "it was earned in one half",
        "it rests on a few sessions",
    ),
    *("its losses are rare and large", "it rests on one name", "it would not survive 9 tries"),
    *(
        "costs are unknown",
        "factors cover only 30% of what was held",
        "the data set has known biases",
    ),
    *("the window is short", "some seeds are left out", "many sessions had no usable answer"),
    *("what was paid out is the table's word", "when money was paid in is not known"),
    "timing and passive portfolios are not tested",
}
"""Every label and every limit that a verdict can have: a new one belongs here, and into what is drawn."""


class Drawn:
    """Findings by chance, with sizes that lie on both sides of every threshold."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def often(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def measure(self, size: float = 0.08) -> Measure:
        value = float(self.rng.normal(0.0, size))
        return span(value, float(self.rng.uniform(0.001, 1.2 * size)))

    def contrast(self) -> Contrast:
        gap, masked = self.measure(), self.measure()
        shrinks = (gap.value or 0.0) > 0.0 and self.often(0.5)
        return Contrast(
            gap=gap, masked=masked, confirmed=bool((masked.low or 0.0) > 0), shrinks=shrinks
        )

    def together(self) -> Together:
        one = self.contrast()
        return Together(earned=self.measure(), **msgspec.structs.asdict(one))

    def edge(self) -> Edge:
        tested, costs = self.measure(), -abs(float(self.rng.normal(0.0, 0.05)))
        gross = span((tested.value or 0.0) - costs, (tested.high or 0.0) - (tested.value or 0.0))
        known = self.often(0.7)
        return Edge(
            tested=tested,
            ratio=span(
                float(self.rng.choice([20, 90])) * tested.value, float(self.rng.uniform(0.5, 3.0))
            ),
            gross=gross,
            comparisons=1,
            at_least=(tested.low or 0.0) + 0.01,
            costs=Measure(value=costs) if known else None,
            most_of_gain=known and (gross.value or 0.0) / 2.0 + costs < -0.01,
            most_of_loss=known and (gross.value or 0.0) - costs > 0.01,
        )

    def memory(self) -> MemoryEvidence:
        one = self.contrast()
        return MemoryEvidence(
            against="blinded",
            gap=one.gap,
            masked=one.masked,
            parts={"common": self.measure()},
            confirmed=one.confirmed,
            shrinks=one.shrinks,
            both=self.measure() if self.often(0.5) else None,
            timing=self.contrast(),
            style_timing=self.contrast(),
            together=self.together() if self.often(0.7) else None,
            doubted=self.often(0.1),
            fade=self.measure() if self.often(0.2) else None,
        )

    def split(self) -> EdgeSplit:
        explained, rest = self.measure(), self.measure()
        share = (
            span(float(self.rng.random()), 0.1)
            if self.often(0.5)
            else not_scored("the edge is not certain")
        )
        return EdgeSplit(
            edge=self.measure(), explained=explained, rest=rest, share=share, follows=span(0.2, 0.1)
        )

    def recall(self) -> RecallEvidence:
        names, dates = self.split(), self.split()
        told = str(self.rng.choice(["recalls", "no recall is shown", "cannot be told"]))
        asked = self.often(0.8)
        return RecallEvidence(
            told=told if asked else None,
            recall=span(0.6, 0.1),
            split=RecallSplit(names=names, dates=dates, covered=0.9, sentence="")
            if asked
            else None,
            unread=span(0.9, 0.05) if self.often(0.5) else None,
            by_name=asked and self.often(0.2),
            interaction=self.measure() if self.often(0.3) else None,
            sentences=("it names 60% of the closes.",) if asked else (),
            reason=None if asked else "no audit was made",
        )

    def findings(self) -> AgentFindings:
        rng, returns, rough = self.rng, self.often(0.4), 0.2 * self.often(0.5)
        share = float(rng.random())
        luck = LuckEvidence(
            percentile=span(share, 0.01), p=max(1e-4, 1 - share), p_low=share, portfolios=10_000
        )
        changes: dict[str, Any] = {
            "edge": self.edge(),
            "total": self.measure(0.4),
            "sessions": int(rng.choice([43, 100, 252, 756, 1200])),
            "active_variance": float(rng.choice([0.001, 0.2])),
            "style_variance": float(rng.random()),
            "leaks": LeakEvidence(
                tested=self.often(0.7),
                bound=float(rng.choice([0.01, 0.2])),
                files_open=self.often(0.3),
                findings=("bars",) if self.often(0.03) else (),
            ),
            "luck": LuckEvidence(percentile=not_scored("none"), p=None)
            if self.often(0.3)
            else luck,
            "timing": TimingEvidence(
                by="returns" if returns else "holdings",
                per_year=self.measure(),
                curvature=self.measure(),
                upside=self.measure(),
                intercept=self.measure(),
            ),
            "tail": TailEvidence(
                skew=float(rng.normal(0, 3)),
                worst=-float(rng.uniform(0.01, 0.3)),
                worst_session="2024-03-01",
                drawdown=-0.2,
                crash=self.often(0.5),
                option_like=self.often(0.1),
                rare_losses=returns and self.often(0.1),
            ),
            "stability": StabilityEvidence(**{name: self.measure() for name in HALVES}),
            "exposures": LEANS["exposures"] if self.often(0.5) else {},
            "biases": ("survivorship",) if self.often(rough) else (),
            "covered": 0.3 if self.often(rough) else None,
            "failed_seeds": int(self.often(rough)),
            "failure_rate": Measure(value=0.4 if self.often(rough) else 0.0, n=100),
            "baseline": self.often(0.03),
        }
        if self.often(0.2):
            changes["stability"] = StabilityEvidence(**dict.fromkeys(HALVES, span(0.1, 0.05)))
            best = LuckEvidence(
                percentile=span(0.999, 0.001), p=0.001, p_low=0.999, portfolios=10_000
            )
            changes |= {
                "leaks": LeakEvidence(tested=True, bound=0.01),
                "luck": best,
                "sessions": 756,
            }
        if self.often(rough):
            changes["parts"] = {**found().parts, "trading": not_scored("weights alone")}
        if self.often(rough):
            kept = {"name": "AAA", "name_share": 0.7, "session": "2024-03-01", "session_share": 0.2}
            changes["concentration"] = ConcentrationEvidence(**kept)
        if self.often(2 * rough):
            void = 9 if self.often(0.5) else 90
            tried = {
                "here": 1,
                "declared": 1,
                "found": 0,
                "effective": 0.0,
                "haircut": None,
                "void_at": void,
            }
            changes["trials"] = TrialsEvidence(
                deflated=span(0.9, 0.05), track_record=span(1.0, 0.5), **tried
            )
        if self.often(0.3):
            changes["passive"] = follows(
                float(rng.choice([0.5, 0.995])), float(rng.normal(0, 0.03))
            )
        if returns:
            changes |= {"method": "returns", "styled": float(rng.choice([0.0, 1.0])), "dataset": ""}
            changes["year"] = int(rng.choice([252, 52, 12, 4]))
            word = "what was paid out is the table's word: 5.0% a year"
            payments = (word, "when money was paid in is not known: +1%")
            changes["doubts"] = payments[: int(rng.integers(3))] if self.often(0.3) else ()
            changes["luck"] = LuckEvidence(percentile=not_scored("returns alone"), p=None)
        else:
            changes["styles"] = StyleEvidence(tilt=self.measure(), timing=self.measure())
            if self.often(0.5):
                changes |= {"by_model": True, "memory": self.memory() if self.often(0.8) else None}
                if self.often(0.5):
                    changes["recall"] = self.recall()
            if self.often(rough):
                changes |= {"timing": None, "market": not_scored("returns of the names are given")}
        return found(**changes)


def certain(measure):
    return (
        measure is not None
        and measure.low is not None
        and (measure.low > 0 or (measure.high or 0.0) < 0)
    )


def contradictions(one, said):
    """Return what a careful reader would find wrong between the sentence, the lists and the numbers."""
    edge, wrong = one.edge, []
    text = " ".join(
        (said.sentence, *said.because, *said.limits, *said.speaks_for, *said.speaks_against)
    )

    def holds(rule, kept):
        if not kept:
            wrong.append(rule)

    told = said.sentence.partition(". But ")[0]
    sure = " ".join(said.speaks_for)
    plain = "cannot be told from luck" in told and said.kind in ("luck", "style")
    holds("'cannot be told' beside an interval without zero", not (plain and certain(edge.tested)))
    holds(
        "names 'cannot be told' and are certain",
        "nothing in the names" not in told or not certain(edge.tested),
    )
    doubted = (
        said.kind != "luck"
        or "above zero for certain" not in sure
        or " but " in told
        or "limits" in told
    )
    holds("certain in the list, luck in the sentence, no reason", doubted)
    both = "above zero for certain" in text and "zero is not excluded" in text
    holds("certain and not excluded", not both)
    holds("for and against say the same", not set(said.speaks_for) & set(said.speaks_against))
    holds("supported with limits", not ("supported" in said.label and said.limits))
    holds(
        "a firm word of praise with limits", not (said.firm and said.kind in PRAISE and said.limits)
    )
    holds("a gain with a loser's word", re.search(r"(loses|lost|fell behind: )\+", told) is None)
    holds("a loss with a gainer's word", re.search(r"(took|takes|ate) \u2212", told) is None)
    if said.kind == "costs":
        paid = -((edge.costs and edge.costs.value) or 0.0)
        most = max(abs(edge.gross.value or 0.0), abs(edge.tested.value or 0.0)) / 2.0
        holds("costs that are less than half of it", paid > most)
    praised = said.label.startswith("skill") or "consistent with skill" in said.sentence
    holds(
        "skill beside what sellers of insurance earn",
        not (praised and one.tail and one.tail.option_like),
    )
    holds(
        "a label that the sentence does not share",
        said.kind != "tail" or said.label in told + "paid for tail risk",
    )
    holds(
        "no recall and memory by recall",
        not ("no recall is shown" in text and "recall explains +" in told),
    )
    if said.kind == "memory" and one.memory is not None and one.recall is None:
        gaps = [one.memory.gap, *(c.gap for c in (one.memory.timing, one.memory.style_timing) if c)]
        gaps += [one.memory.fade] if one.memory.fade else []
        holds("memory where no mask takes anything", any((gap.value or 0.0) > 0 for gap in gaps))
    if said.kind in PRAISE and one.styled is not None and one.styled < CONFIG.styled:
        holds(
            "unmeasured style is not the first limit",
            said.limits[0].startswith("style is not measured"),
        )
    if one.year in (52, 12, 4):
        holds("months are called days", re.search(r"\b(days?|sessions?)\b", text) is None)
    for value, low, high in re.findall(
        r"([+\u2212]?[\d.,]+)% \(([+\u2212]?[\d.,]+)% to ([+\u2212]?[\d.,]+)%\)", text
    ):
        inside = [
            float(part.replace("\u2212", "-").replace(",", "")) for part in (low, value, high)
        ]
        holds(f"an interval without its number: {value}", inside == sorted(inside))
    return wrong


def test_no_sentence_contradicts_its_own_page():
    seen = set()
    for seed in range(1500):
        one = Drawn(seed).findings()
        said = decide(one, CONFIG)
        heads = [
            limit.partition(":")[0].replace("a few days", "a few sessions") for limit in said.limits
        ]
        seen |= {
            said.kind,
            said.label,
            *(re.sub("months|weeks|quarters", "sessions", h) for h in heads),
        }
        assert contradictions(one, said) == [], (seed, said.kind, said.sentence, said.speaks_for)
    assert seen == SEEN | set(KINDS) - {"open", "failed", "cash"}, seen ^ (SEEN | set(KINDS))


def test_the_reader_finds_a_contradiction():
    one = found()
    said = decide(one, CONFIG)
    lie = msgspec.structs.replace(
        said, kind="luck", sentence="one returned +20.0%, which cannot be told from luck."
    )
    assert contradictions(one, said) == []
    assert "'cannot be told' beside an interval without zero" in contradictions(one, lie)
