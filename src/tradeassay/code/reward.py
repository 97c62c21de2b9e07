"""A number to train on: how far a program got, between 0 and 1.

Without a judge the reward is for running and trading alone, and a model that is trained on it learns one program
that does both and hands it in for every task (the paper saw it, and :func:`~tradeassay.code.collapse.collapse`
detects it). With a judge half of the reward is for doing what the task says.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.code.evaluation import STAGES, EvaluateConfig, Evaluation, Outcome, evaluate, examine_unjudged
from tradeassay.code.judges.language import JudgeClient
from tradeassay.code.running import open_code_executor, rules_of
from tradeassay.code.task import CodeTask, Framework
from tradeassay.core.errors import UserError
from tradeassay.core.measure import plain_sum
from tradeassay.sandbox import JobExecutor


class RewardConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What each stage is worth; without a judge the first three are scaled up to 1. ``graded``: a program that a
    behavioural judge rejects gets the judge's part times its agreement, times ``near``, so that nearer is better
    and solved is clearly best. Raises :class:`UserError` for weights that are negative or do not add up to 1.
    """

    compile: float = 0.1
    backtest: float = 0.2
    trade: float = 0.2
    judge: float = 0.5
    graded: bool = True
    near: float = 0.5
    evaluate: EvaluateConfig = EvaluateConfig()

    def __post_init__(self) -> None:
        parts = (self.compile, self.backtest, self.trade, self.judge)
        if min(parts) < 0 or abs(plain_sum(parts) - 1.0) > 1e-9 or self.judge == 1.0:
            raise UserError(f"the parts {parts} do not add up to 1", hint="give four that add up to 1")
        if not 0 <= self.near < 1:
            raise UserError(
                f"near {self.near:g} is outside [0, 1)", hint="0.5 gives half of the judge's part at most"
            )


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
    if executor is None:
        with open_code_executor() as opened:
            return reward(task, source, judge, executor=opened, config=config, framework=framework, secret=secret)
    config = config or RewardConfig()
    client = None if judge is None or isinstance(judge, str) else judge
    rule = msgspec.structs.replace(config.evaluate, decides="language" if client is not None else "behaviour")
    rules = rules_of(secret)
    if judge is None:
        found = examine_unjudged(executor, task, source, framework, rules, rule)
    else:
        found = evaluate(
            task, source, executor=executor, config=rule, judge=client, framework=framework, rules=rules
        )
    return reward_of(found, judged=judge is not None, config=config)


def reward_of(found: Evaluation, *, judged: bool, config: RewardConfig | None = None) -> Reward:
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
        elif judged and found.judge.failed and config.graded and found.judge_behaviour is not None:
            parts["judge"] = config.judge * config.near * (found.judge_behaviour.agreement or 0.0)
        if judged and unsure:
            reason = unsure[0].reason
        else:
            value = min(1.0, round(plain_sum(parts.values()), 12))  # 0.2 + 0.4 is 0.6
            reason = "" if value == 1.0 else reason
    return Reward(value=value, outcome=outcome, judged=judged, parts=parts, reason=reason, evaluation=found)
