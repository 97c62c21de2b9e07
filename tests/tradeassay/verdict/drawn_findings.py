"""Findings by chance, with sizes that lie on both sides of every threshold."""

from typing import Any

import msgspec
import numpy as np
from accounts import LEANS, account, alpha, follows, span, span_at_tries, tries

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.baseline import AgainstBaseline
from tradeassay.metrics.option_selling import OptionSelling
from tradeassay.metrics.smoothness import Smoothness
from tradeassay.verdict import AgentFindings
from tradeassay.verdict.evidence import with_price
from tradeassay.verdict.recalled import AlphaSplit, RecallSplit
from tradeassay.verdict.record import (
    CASH,
    Alpha,
    ConcentrationEvidence,
    Contrast,
    JointContrast,
    LeakEvidence,
    LuckEvidence,
    MaskPrice,
    MemoryEvidence,
    RecallEvidence,
    StabilityEvidence,
    StyleEvidence,
    TailEvidence,
    TimingEvidence,
)

_NO_MARKET = "no benchmark is given"


class Drawn:
    """The findings of one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.prices = np.random.default_rng([seed, 1])

    def often(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def measure(self, size: float = 0.08) -> Measure:
        value = float(self.rng.normal(0.0, size))
        return span(value, float(self.rng.uniform(0.001, 1.2 * size)))

    def half(self, size: float = 0.08) -> float:
        return float(self.rng.uniform(0.001, 1.2 * size))

    def contrast(self) -> Contrast:
        gap, masked = self.measure(), self.measure()
        shrinks = (gap.value or 0.0) > 0.0 and self.often(0.5)
        return Contrast(
            gap=gap, masked=masked, confirmed=bool((masked.low or 0.0) > 0), shrinks=shrinks
        )

    def together(self) -> JointContrast:
        return JointContrast(earned=self.measure(), **msgspec.structs.asdict(self.contrast()))

    def alpha(self) -> Alpha:
        value, half = float(self.rng.normal(0.0, 0.08)), self.half()
        count = int(self.rng.choice([1, 20, 20, 400]))
        made = alpha(value, half, tries=count, years=float(self.rng.choice([0.5, 1.0, 3.0])))
        costs = -abs(float(self.rng.normal(0.0, 0.05)))
        gross, known = span(value - costs, half), self.often(0.7)
        ratio = float(self.rng.choice([20, 90])) * value
        return msgspec.structs.replace(
            made,
            ratio=span(ratio, float(self.rng.uniform(0.5, 3.0))),
            gross=gross,
            at_least=value - half + 0.01,
            costs=Measure(value=costs) if known else None,
            most_of_gain=known and gross.value > 0.0 and -costs >= 0.5 * gross.value,
            most_of_loss=known and gross.value - costs > 0.01,
        )

    def memory(self, count: int) -> MemoryEvidence:
        contrast, both, half = self.contrast(), float(self.rng.normal(0.0, 0.08)), self.half()
        together = self.often(0.5)
        memory = MemoryEvidence(
            against="blinded",
            **msgspec.structs.asdict(contrast),
            parts={"common": self.measure()},
            both=span(both, half) if together else None,
            both_at_tries=span_at_tries(both, half, count) if together else None,
            timing=self.contrast(),
            style_timing=self.contrast(),
            together=self.together() if self.often(0.7) else None,
            doubted=self.often(0.1),
            fade=self.measure() if self.often(0.2) else None,
        )
        if self.prices.random() < 0.5:
            return memory
        return with_price(memory, self.price())

    def price(self) -> MaskPrice:
        """Return what the mask costs in a world that nobody can have read, or why that is not
        known.
        """
        worlds = ("synthetic/us:11",)
        if self.prices.random() < 0.1:
            return MaskPrice(
                worlds=worlds, reason="in synthetic/us:11 the masked run has no result"
            )
        lost = {}
        for claim in ("alpha", "timing", "style_timing", "together"):
            value = float(self.prices.normal(0.03, 0.05))
            lost[claim] = span(value, float(self.prices.uniform(0.001, 0.06)))
        return MaskPrice(worlds=worlds, sessions=252, lost=lost)

    def split(self) -> AlphaSplit:
        explained, rest = self.measure(), self.measure()
        share = not_scored("the alpha is not significant")
        if self.often(0.5):
            share = span(float(self.rng.random()), 0.1)
        return AlphaSplit(
            alpha=self.measure(),
            explained=explained,
            rest=rest,
            share=share,
            follows=span(0.2, 0.1),
        )

    def recall(self) -> RecallEvidence:
        split = RecallSplit(names=self.split(), dates=self.split(), covered=0.9, sentence="")
        told = str(self.rng.choice(["recalls", "no recall is shown", "cannot be told"]))
        asked = self.often(0.8)
        return RecallEvidence(
            told=told if asked else None,
            recall=span(0.6, 0.1),
            split=split if asked else None,
            unread=span(0.9, 0.05) if self.often(0.5) else None,
            by_name=asked and self.often(0.2),
            interaction=self.measure() if self.often(0.3) else None,
            sentences=("it names 60% of the closes.",) if asked else (),
            reason=None if asked else "no audit was made",
        )

    def timing(self, count: int, *, returns: bool) -> TimingEvidence:
        value, half = float(self.rng.normal(0.0, 0.08)), self.half()
        return TimingEvidence(
            by="returns" if returns else "holdings",
            per_year=span(value, half),
            curvature=self.measure(),
            upside=self.measure(),
            intercept=self.measure(),
            at_tries=None if returns else span_at_tries(value, half, count),
            likelihood=None if returns else float(self.rng.uniform(0.5, 5.0)),
        )

    def styles(self, count: int) -> StyleEvidence:
        value, half = float(self.rng.normal(0.0, 0.08)), self.half()
        return StyleEvidence(
            tilt=self.measure(),
            timing=span(value, half),
            net=self.measure() if self.often(0.5) else None,
            at_tries=span_at_tries(value, half, count),
            likelihood=float(self.rng.uniform(0.5, 5.0)),
        )

    def stability(self) -> StabilityEvidence:
        second = self.measure()
        month = self.often(0.5)
        return StabilityEvidence(
            first=self.measure(),
            second=second,
            latest=self.measure(),
            without_best=self.measure(),
            best_month="2024-03" if month else None,
            without_month=self.measure() if month else None,
            faded=(second.value or 0.0) <= 0.0 and self.often(0.5),
        )

    def smoothness(self) -> Smoothness:
        signs = ("few small losses",) if self.often(0.15) else ()
        return Smoothness(
            positive=0.55,
            normal_positive=0.55,
            discontinuity=None,
            repeats=None,
            sharpe=span(float(self.rng.normal(1.0, 2.0)), 0.8),
            autocorrelation=self.measure(0.3),
            unsmoothed_sharpe=float(self.rng.normal(0.5, 1.0)) if signs else None,
            signs=signs,
            too_smooth=self.often(0.05),
        )

    def options(self) -> OptionSelling:
        like = self.often(0.15)
        shape = str(self.rng.choice(["short puts", "short straddles"])) if like else ""
        return OptionSelling(
            like=like,
            shape=shape,
            explained=0.4 if like else 0.02,
            worst_at_10=None,
            worst_at_20=None,
            loss_at_10=-0.1 if like else None,
            loss_at_20=-0.3 if like and self.often(0.7) else None,
            crash_in_record=self.often(0.3),
        )

    def versus(self) -> AgainstBaseline:
        return AgainstBaseline(
            baseline="hold",
            difference=self.measure(),
            p_value=0.03,
            distinguishable=self.often(0.5),
            sentence="beats hold",
        )

    def findings(self) -> AgentFindings:
        rng, returns, rough = self.rng, self.often(0.4), 0.2 * self.often(0.5)
        tested = self.alpha()
        changes = self._common(tested, rough, returns=returns)
        if self.often(0.2):
            changes |= self._examined()
        if returns:
            changes |= self._of_returns()
        else:
            changes |= self._of_holdings(tested, rough)
        if self.often(0.3) and "market" not in changes:
            changes["passive"] = follows(
                float(rng.choice([0.5, 0.995])),
                float(rng.normal(0, 0.03)),
                lagged=float(rng.choice([0.0, 0.2])),
            )
        if self.often(0.02):
            changes["passive"] = follows(1.0, 0.0, portfolio=CASH)
        if self.often(0.02):
            changes |= {"failure": "it stopped"} if self.often(0.5) else {"alpha": None}
        return account(**changes)

    def scored(self) -> dict[str, Measure]:
        """Return the measures of an account that no run has scored."""
        names = ("annualised_return", "sharpe", "sortino", "volatility", "calmar", "max_drawdown")
        # None is as quiet as interest: what earns interest alone is no hidden risk.
        return {name: self.measure() for name in names} | {"volatility": span(0.12, 0.02)}

    def _common(self, tested: Alpha, rough: float, *, returns: bool) -> dict[str, Any]:
        rng, share = self.rng, float(self.rng.random())
        luck = LuckEvidence(
            percentile=span(share, 0.01), p=max(1e-4, 1 - share), p_low=share, portfolios=10_000
        )
        changes: dict[str, Any] = {
            "measures": self.scored() if returns else {},
            "alpha": tested,
            "total": self.measure(0.4),
            "sessions": int(rng.choice([43, 100, 252, 756, 1200])),
            "active_variance": float(rng.choice([0.001, 0.2])),
            "style_variance": float(rng.random()),
            "leaks": LeakEvidence(
                tested=self.often(0.7),
                bound=float(rng.choice([0.01, 0.2])),
                files_open=self.often(0.3),
                findings=("bars",) if self.often(0.03) else (),
                sentence="It leaks (bars).",
            ),
            "luck": LuckEvidence(percentile=not_scored("none"), p=None)
            if self.often(0.3)
            else luck,
            "timing": self.timing(tested.tries, returns=returns),
            "tail": TailEvidence(
                skew=float(rng.normal(0, 3)),
                worst=-float(rng.uniform(0.01, 0.3)),
                worst_session="2024-03-01",
                drawdown=-0.2,
                crash=self.often(0.5),
                rare_losses=returns and self.often(0.1),
            ),
            "stability": self.stability() if self.often(0.8) else None,
            "exposures": LEANS["exposures"] if self.often(0.5) else {},
            "excess": self.measure(),
            "information_ratio": self.measure(1.0),
            "biases": ("survivorship",) if self.often(rough) else (),
            "covered": 0.3 if self.often(rough) else None,
            "failed_seeds": int(self.often(rough)),
            "failure_rate": Measure(value=0.4 if self.often(rough) else 0.0, n=100),
            "baseline": self.often(0.03),
            "could_not": self.often(0.3),
            "chance": float(rng.random()),
            "needed": int(rng.choice([100, 900, 90_000])) if self.often(0.8) else None,
            "versus": self.versus() if self.often(0.3) else None,
        }
        disclosed = tested.tries if self.often(0.5) else None
        changes["tries"] = tries(disclosed=disclosed) if self.often(0.7) else None
        if self.often(rough):
            trading = not_scored("weights alone")
            changes["parts"] = {**account().parts, "trading": trading}
        if self.often(0.3):
            changes["concentration"] = ConcentrationEvidence(
                name="AAA",
                name_share=float(rng.choice([0.2, 0.7])),
                session="2024-03-01",
                session_share=float(rng.choice([0.1, 0.4])),
            )
        if self.often(0.1):
            # Too few rows for any test.
            short = Measure(value=(tested.tested.value or 0.0))
            changes["alpha"] = msgspec.structs.replace(
                tested,
                tested=short,
                at_tries=short,
                ratio=Measure(value=tested.ratio.value or 0.0),
                likelihood=None,
                equal_tries=None,
                at_least=None,
            )
        return changes

    def _examined(self) -> dict[str, Any]:
        """Return what leaves nothing open, so that a verdict can be firm."""
        held = span(0.1, 0.05)
        return {
            "stability": StabilityEvidence(first=held, second=held, latest=held, without_best=held),
            "leaks": LeakEvidence(tested=True, bound=0.01),
            "luck": LuckEvidence(
                percentile=span(0.999, 0.001), p=0.001, p_low=0.999, portfolios=10_000
            ),
            "sessions": 756,
        }

    def _of_returns(self) -> dict[str, Any]:
        rng = self.rng
        word = "withdrawals are not verified: 5.0% a year"
        payments = (word, "the timing of deposits is not known: +1%")
        changes: dict[str, Any] = {
            "method": "returns",
            "styled": float(rng.choice([0.0, 1.0])),
            "dataset": "",
            "year": int(rng.choice([252, 52, 12, 4])),
            "doubts": payments[: int(rng.integers(3))] if self.often(0.3) else (),
            "luck": LuckEvidence(percentile=not_scored("returns alone"), p=None),
            "options": self.options(),
            "smoothness": self.smoothness(),
        }
        if self.often(0.1):
            parts = {**account().parts, "common": not_scored(_NO_MARKET)}
            changes |= {
                "leaks": LeakEvidence(tested=False),
                "market": not_scored(_NO_MARKET),
                "parts": {**parts, "selection": not_scored("returns alone")},
                "passive": None,
                "timing": None,
                "options": None,
                "excess": None,
                "information_ratio": None,
                "active_variance": None,
                "style_variance": None,
            }
        return changes

    def _of_holdings(self, tested: Alpha, rough: float) -> dict[str, Any]:
        changes: dict[str, Any] = {"styles": self.styles(tested.tries)}
        if self.often(0.5):
            changes["by_model"] = True
            changes["memory"] = self.memory(tested.tries) if self.often(0.8) else None
            if self.often(0.5):
                changes["recall"] = self.recall()
        if self.often(rough):
            why = not_scored("returns of the names are given")
            changes |= {"timing": None, "market": why, "excess": None, "information_ratio": None}
        return changes
