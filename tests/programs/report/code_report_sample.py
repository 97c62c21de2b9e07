"""A finished QuantCode run whose programs were never run: what the sandbox would have found is
given.
"""

from contextlib import contextmanager
from unittest import mock

import msgspec

from tradeassay.core.hashing import sha256_bytes
from tradeassay_bench.runs import run as run_spec
from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay_programs.code.backtrader import Trick
from tradeassay_programs.code.checks import PASSED, failed, not_reached, not_scored
from tradeassay_programs.code.evaluation import Earned, EvaluateConfig, Evaluation, ValuePath
from tradeassay_programs.code.judges.decisions import (
    BehaviourVerdict,
    LanguageVerdict,
    MarketAgreement,
)
from tradeassay_programs.code.lookahead.grow import ChangedDecision, LeakRecord

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7 * 7 }} \x1b[31m"
TASKS = (
    "d-sma-cross-long",
    "d-tuesday-to-friday",
    "d-donchian-20-10",
    "d-aroon-trend",
    "d-cci-short",
    "h-night-shift",
)
_NOT_REACHED = not_reached("a trick was found")
_EARNED = Earned(
    market="us/1d/seed 1",
    strategy=ValuePath(total_return=0.15, max_drawdown=-0.2, sharpe=0.3),
    hold=ValuePath(total_return=0.6, max_drawdown=-0.4, sharpe=0.6),
    trades=22,
    final_value=11_500.0,
)


def _behaviour(value):
    return BehaviourVerdict(
        status="passed" if value >= 0.9 else "failed",
        reason="" if value >= 0.9 else f"agreement {value} with the reference, 0.9 is needed",
        agreement=value,
        threshold=0.9,
        markets=(MarketAgreement(market="us/1d/seed 1", value=value, fills=value, exposure=1.0),),
    )


def examined(task, source, **rest):
    """Return what an examination might have found, by what the program is."""
    plain = Evaluation(
        task=task.id,
        framework="backtrader",
        source_sha256=sha256_bytes(source.encode("utf-8", "surrogatepass")),
        compile=PASSED,
        **dict.fromkeys(("backtest", "trade", "lookahead", "judge"), PASSED),
        decided_by="behaviour",
        trades=22,
        earned=_EARNED,
        judge_behaviour=_behaviour(1.0),
        judge_language=LanguageVerdict(status="not_scored", reason="not asked"),
    )
    replace = msgspec.structs.replace
    if "Broken" in source:
        after = dict.fromkeys(
            ("backtest", "trade", "lookahead", "judge"), not_reached("it does not compile")
        )
        wrong = failed(HOSTILE, "SyntaxError", line=5)
        return replace(plain, compile=wrong, judge_behaviour=None, earned=None, **after)
    if "Peeker" in source:
        evidence = ChangedDecision(
            method="truncation", cut_row=10, row=9, scored="a buy", other="nothing"
        )
        leak = LeakRecord(verdict="leaky", reason="it looks ahead", evidence=(evidence,))
        return replace(
            plain, lookahead=failed(evidence.text, "future-index"), leak=leak, judge=_NOT_REACHED
        )
    if "Printer" in source or "Patcher" in source or "Spy" in source:
        trick = Trick(name="printed-result", detail=HOSTILE)
        return replace(
            plain, tricks=(trick,), lookahead=_NOT_REACHED, judge=_NOT_REACHED, judge_behaviour=None
        )
    if "class SmaCross(" in source and task.id != "d-sma-cross-long":
        wrong = _behaviour(0.1)
        return replace(plain, judge=failed(wrong.reason, "does_not_match"), judge_behaviour=wrong)
    if task.id == "h-night-shift":
        return replace(
            plain, judge=not_scored("the reference trades on 2 markets"), judge_behaviour=None
        )
    return plain


def code_run(folder, **changes):
    """Make the run: six coders, six tasks, both settings, a crude judge."""
    names = ("coder-gold", "coder-sma", "coder-mends", "coder-cheat", "coder-silent", "away")
    spec = QuantCodeSpec(
        models=tuple(f"scripted/{name}" for name in names),
        tasks=TASKS,
        settings=("single-turn", "agentic"),
        turns=4,
        judge="scripted/code-judge",
        evaluate=EvaluateConfig(decides="behaviour"),
    )
    spec = msgspec.structs.replace(spec, **changes)
    with coders_given():
        return run_spec(spec, folder, workers=1)


@contextmanager
def coders_given():
    """Let no program run: what an examination finds is given."""
    with (
        mock.patch("tradeassay_programs.benchmarks.quantcode.benchmark.examine", examined),
        mock.patch(
            "tradeassay_programs.benchmarks.quantcode.benchmark.QuantCodeProtocol.open_executor"
        ),
    ):
        yield
