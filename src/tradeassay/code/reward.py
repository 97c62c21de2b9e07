"""A number to train on: how far a program got, between 0 and 1.

Without a judge the reward is for running and trading alone, and a model that is trained on it learns one program
that does both and hands it in for every task (the paper saw it, and :func:`~tradeassay.code.collapse.collapse`
detects it). With a judge nearly all of the reward is for doing what the task says: a program that is refused earns
by how near its entries, exits, directions, sizes and times come to the reference's, on several markets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from tradeassay.code.backtrader import LIMITS
from tradeassay.code.evaluation import (
    STAGES,
    EvaluateConfig,
    Evaluation,
    Outcome,
    ask_judge,
    examine,
    examine_closely,
)
from tradeassay.code.frames import LIMITS as FRAME_LIMITS
from tradeassay.code.judges.decisions import CLOSENESS
from tradeassay.code.judges.language import JudgeClient
from tradeassay.code.judges.markets import DrawConfig
from tradeassay.code.running import open_code_executor, rules_of
from tradeassay.code.task import CodeTask, Framework
from tradeassay.core.arguments import check_fields, instance_of, shown
from tradeassay.core.errors import UserError
from tradeassay.core.measure import plain_sum
from tradeassay.sandbox import JobExecutor, JobLimits

BRIEF: Final = DrawConfig(shortest=100)
"""The judge's markets, each cut where it no longer tells anything more about the numbers of the task."""
QUICK: Final = DrawConfig(markets=2, mended=0, added=0, shortest=250)
"""Two markets, which nobody has asked whether every number of the task shows on them: drawn in a second."""


class RewardConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What each stage is worth; without a judge the first three are scaled up to 1. ``graded``: a program that a
    behavioural judge rejects gets the judge's part times how near it comes to the reference, times ``near``, so
    that nearer is better and solved is clearly best. ``draws`` says on how many markets: :data:`QUICK` is for
    training on tasks that are drawn anew in every step. Programs get processor time that fits the task, unless
    ``evaluate`` has limits. Raises :class:`UserError` for weights that are negative or do not add up to 1.
    """

    compile: float = 0.016
    backtest: float = 0.032
    trade: float = 0.032
    judge: float = 0.92
    graded: bool = True
    near: float = 0.6
    evaluate: EvaluateConfig = EvaluateConfig()
    draws: DrawConfig = BRIEF

    def __post_init__(self) -> None:
        check_fields(self)
        parts = (self.compile, self.backtest, self.trade, self.judge)
        if min(parts) < 0 or abs(plain_sum(parts) - 1.0) > 1e-9 or self.judge == 1.0:
            raise UserError(f"the parts {parts} do not add up to 1", hint="give four that add up to 1")
        if not 0 <= self.near < 1:
            hint = "0.5 gives half of the judge's part at most"
            raise UserError(f"near {self.near:g} is outside [0, 1)", hint=hint)


class Reward(msgspec.Struct, frozen=True, kw_only=True):
    """``value`` in [0, 1], or None with the ``reason`` when a judge was asked and could not decide: leave such a
    sample out. ``parts`` says what each stage gave. Tricks and proven look-ahead are 0, and ``outcome`` names
    them.
    """

    value: float | None
    outcome: Outcome
    judged: bool
    parts: dict[str, float]
    reason: str
    evaluation: Evaluation


def reward(
    task: CodeTask,
    source: str,
    judge: Literal["behaviour"] | JudgeClient | None = None,
    *,
    executor: JobExecutor | None = None,
    config: RewardConfig | None = None,
    framework: Framework = "backtrader",
    secret: str | None = None,
) -> Reward:
    """Return the reward of a program. ``executor`` should stay open over many calls (:func:`open_code_executor`);
    ``secret``, from which judged markets are drawn, is by default one of this process, so that all programs of a
    training step meet the same markets.
    """
    by_name = "load_task(ID) of tradeassay.benchmarks.quantcode gives one; reward.batch takes ids"
    instance_of("a task", task, CodeTask, by_name)
    instance_of("a program", source, str, "give its text")
    refuse_unknown(judge, framework, config)
    if executor is None:
        with open_code_executor() as opened:
            return reward(task, source, judge, executor=opened, config=config, framework=framework, secret=secret)
    config = config or RewardConfig()
    client = None if judge is None or isinstance(judge, str) else judge
    rule = msgspec.structs.replace(
        config.evaluate,
        decides="language" if client is not None else "behaviour",
        limits=config.evaluate.limits or fitting_limits(task, framework),
    )
    rules = rules_of(secret)
    near: dict[str, float] = {}
    if judge is None:
        how: dict[str, Any] = {"config": rule, "framework": framework, "rules": rules}
        found = examine(task, source, executor=executor, unjudged=True, **how)
    else:
        found, near = examine_closely(executor, task, source, framework, rules, rule, config.draws)
        found = found if client is None else ask_judge(found, client, task, source, rule)
    return reward_of(found, judged=judge is not None, config=config, near=near)


def refuse_unknown(judge: object, framework: object, config: object) -> None:
    """Raise :class:`UserError` for what cannot be the judge, the framework or the config of a reward."""
    if judge is not None and judge != "behaviour" and not callable(getattr(judge, "ask", None)):
        raise UserError(f"no judge {shown(judge)}", hint="judge='behaviour', or none at all")
    if framework not in get_args(Framework):
        raise UserError(f"no framework {shown(framework)}", hint=f"one of {', '.join(get_args(Framework))}")
    if config is not None:
        instance_of("config", config, RewardConfig, "write e.g. config=RewardConfig(near=0.5)")


def fitting_limits(task: CodeTask, framework: Framework = "backtrader") -> JobLimits:
    """Return limits for one run in training, because one endless program must not hold a whole step: a second per
    1,000 bars and asset; on frames five for all calls on one table. A reference takes a tenth of them.
    """
    if framework == "frame":
        return msgspec.structs.replace(FRAME_LIMITS, cpu_s=5, wall_s=10.0)
    cpu = max(1, -(-task.bars * task.assets // 1000))
    return msgspec.structs.replace(LIMITS, cpu_s=cpu, wall_s=8.0 * cpu)


def reward_of(
    found: Evaluation, *, judged: bool, config: RewardConfig | None = None, near: Mapping[str, float] | None = None
) -> Reward:
    """Return an evaluation's reward; a refused program earns by ``near``, the parts of its closeness."""
    config = config or RewardConfig()
    outcome = found.outcome
    whole = 1.0 if judged else 1.0 - config.judge
    parts = {
        name: getattr(config, name) / whole
        for name in ("compile", "backtest", "trade")
        if found.stage(name).passed
    }
    reason = found.reason
    value: float | None = None
    unsure = [stage for name in STAGES if (stage := found.stage(name)).status == "not_scored"]
    if outcome in ("trick", "lookahead"):
        value, parts = 0.0, dict.fromkeys(parts, 0.0)
    else:
        if judged and found.judge.status == "passed":
            parts["judge"] = config.judge
        elif judged and found.judge.failed and config.graded and near:
            parts |= {name: config.judge * config.near * CLOSENESS[name] * near[name] for name in CLOSENESS}
        if judged and unsure:
            reason = unsure[0].reason
        else:
            value = min(1.0, round(plain_sum(parts.values()), 12))  # 0.2 + 0.4 is 0.6
            reason = "" if value == 1.0 else reason
    return Reward(value=value, outcome=outcome, judged=judged, parts=parts, reason=reason, evaluation=found)
