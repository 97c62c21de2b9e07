"""A made-up assay that shows everything a verdict page can show; the tests and the eyes look at
the same one.
"""

import msgspec

from tradeassay.core.measure import Badges, Measure, not_scored
from tradeassay.metrics import Bin, Calibration
from tradeassay.verdict import AgentFindings, Assay, VerdictConfig, judge
from tradeassay.verdict.record import (
    Alpha,
    Dollars,
    LeakEvidence,
    LuckEvidence,
    MemoryEvidence,
    Ranks,
)

CONFIG = VerdictConfig()
ATTACK = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


def span(value, half):
    return Measure(value=value, low=value - half, high=value + half)


def one(name="sound-model", **changes):
    alpha = span(0.12, 0.07)
    parts = {
        "common": span(0.09, 0.15),
        "style": span(0.031, 0.03),
        "style.MOM_12_1": span(0.03, 0.03),
        "style.ROC_20": span(-0.012, 0.02),
        "style.VOL_20": span(0.013, 0.02),
        "selection": span(0.14, 0.08),
        "trading": span(-0.02, 0.004),
    }
    fields = {
        "setting": "daily-us-v1__synthetic",
        "benchmark": "daily-us-v1",
        "dataset": "synthetic/us:7",
        "agent": name,
        "by_model": True,
        "baseline": False,
        "seeds": 3,
        "failed_seeds": 0,
        "sessions": 252,
        "first": "2024-01-02",
        "last": "2024-12-31",
        "mask": "bright",
        "total": span(0.241, 0.19),
        "parts": parts,
        "market": span(0.08, 0.1),
        "exposures": {"MOM_12_1": span(0.3, 0.1), "ROC_20": span(-0.2, 0.1)},
        "style_variance": 0.1,
        "active_variance": 0.2,
        "alpha": Alpha(
            tested=alpha,
            ratio=span(2.1, 1.2),
            gross=alpha,
            comparisons=3,
            tries=4,
            at_tries=span(0.12, 0.09),
            likelihood=31.0,
            equal_tries=500,
        ),
        "luck": LuckEvidence(
            percentile=Measure(value=0.997, low=0.93, high=1.0), p=0.003, portfolios=10_000
        ),
        "memory": MemoryEvidence(against="blinded", gap=span(0.01, 0.05), masked=span(0.11, 0.06)),
        "leaks": LeakEvidence(tested=True, sentence="No leak was found."),
        "calibration": Calibration(
            ece=span(0.08, 0.03),
            brier=span(0.24, 0.02),
            bins=(Bin(low=0.5, high=0.6, n=40, confidence=0.55, accuracy=0.5),),
        ),
        "failures": {"schema": 3, "timeout": 1},
        "failure_rate": span(0.01, 0.005),
        "dollars": Dollars(usd=12.4, calls=900, tokens=1_200_000, net_return=Measure(value=0.24)),
        "ranks": Ranks(of=4, by_return=2, by_selection=1),
        "chance": 0.1,
        "notes": ("a note on the attribution",),
    }
    return AgentFindings(**(fields | changes))


def sample(*, attack=False):
    name = ATTACK if attack else "rule"
    nothing = Alpha(
        tested=span(0.01, 0.1),
        ratio=span(0.1, 1.5),
        gross=span(0.01, 0.1),
        comparisons=3,
    )
    badges = Badges(
        data="synthetic", convention="corrected", model="scripted", biases=(f"made up {name}",)
    )
    silent = not_scored("no usable answer in any of 252 sessions")
    agents = (
        one(),
        one(
            "leaky-model",
            leaks=LeakEvidence(tested=True, findings=("news",), sentence="It leaks (news)."),
        ),
        one(
            name,
            by_model=False,
            mask=None,
            memory=None,
            dollars=None,
            calibration=None,
            failures={},
            badges=Badges(data="synthetic", convention="corrected"),
            alpha=nothing,
            could_not=True,
            leaks=LeakEvidence(tested=False),
            luck=LuckEvidence(percentile=not_scored("not asked for"), p=None),
        ),
        one(
            "silent-model",
            failure=silent.reason,
            total=silent,
            parts={},
            exposures={},
            alpha=None,
            seeds=0,
            failed_seeds=3,
            sessions=0,
            first=None,
            last=None,
            memory=None,
            luck=LuckEvidence(percentile=silent, p=None),
            failure_rate=Measure(value=1.0),
            ranks=Ranks(of=4, by_return=None, by_selection=None),
        ),
    )
    return Assay(
        title=f"sample {ATTACK}" if attack else "sample",
        source="run",
        config=msgspec.structs.replace(CONFIG, tries=2),
        agents=tuple(
            judge(msgspec.structs.replace(found, badges=found.badges or badges), CONFIG)
            for found in agents
        ),
        badges={"daily-us-v1__synthetic": badges},
    )
