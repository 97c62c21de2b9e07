"""Score a program between 0 and 1, as a reward for training a model.

Without a judge, the reward is for running and trading alone. A model trained on it learns a single
program that runs and trades, and submits it for every task. The paper observed this, and
:func:`~tradeassay_programs.code.collapse.collapse` detects it.

With a judge, nearly all of the reward is for following the task. A program that the judge rejects
is rewarded for the closeness of its entries, exits, directions, sizes and times to the reference on
several markets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

import msgspec

from tradeassay.core.arguments import check_fields, instance_of, shown
from tradeassay.core.errors import UserError
from tradeassay_programs.code.backtrader import LIMITS
from tradeassay_programs.code.evaluation import (
    STAGES,
    EvaluateConfig,
    Evaluation,
    Outcome,
    ask_judge,
    examine,
    examine_closely,
)
from tradeassay_programs.code.frames import LIMITS as FRAME_LIMITS
from tradeassay_programs.code.judges.decisions import CLOSENESS
from tradeassay_programs.code.judges.language import JudgeClient
from tradeassay_programs.code.judges.markets import DrawConfig
from tradeassay_programs.code.running import exam_settings, open_code_executor
from tradeassay_programs.code.task import CodeTask, Framework
from tradeassay_programs.sandbox import JobExecutor, JobLimits

BRIEF: Final = DrawConfig(shortest=100)
"""The default settings for markets: three markets and added markets, each cut once the judge has
noticed its mutants.
"""
QUICK: Final = DrawConfig(markets=2, redraws=0, extra_markets=0, shortest=250)
"""Settings for two markets without mutants, drawn within a second.

The markets may not test every constant of the task.
"""


class RewardConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The weight of each stage in a reward.

    The four weights add up to 1. Without a judge, the first three weights are scaled to add up
    to 1. With ``graded``, a program that the behavioural judge rejects gets the judge's weight
    times ``closeness_weight`` times its closeness to the reference (0 to 1).

    ``draws`` configures the markets. Use :data:`QUICK` to train on new tasks in every step. The
    limit on processor time follows from the task, unless ``evaluate`` has limits.

    Raises :class:`UserError` for weights that are negative or do not add up to 1.
    """

    compile: float = 0.016
    backtest: float = 0.032
    trade: float = 0.032
    judge: float = 0.92
    graded: bool = True
    closeness_weight: float = 0.6
    evaluate: EvaluateConfig = EvaluateConfig()
    draws: DrawConfig = BRIEF

    def __post_init__(self) -> None:
        check_fields(self)
        parts = (self.compile, self.backtest, self.trade, self.judge)
        if min(parts) < 0 or abs(sum(parts) - 1.0) > 1e-9 or self.judge == 1.0:
            raise UserError(
                f"the weights {parts} do not add up to 1",
                hint="compile, backtest, trade and judge must be 0 or more and add up to 1",
            )
        if not 0 <= self.closeness_weight < 1:
            hint = "with 0.5 a rejected program gets at most half of the judge's weight"
            raise UserError(
                f"closeness_weight must be at least 0 and below 1, got {self.closeness_weight:g}",
                hint=hint,
            )


class Reward(msgspec.Struct, frozen=True, kw_only=True):
    """The reward of a program.

    ``value`` is between 0 and 1. It is None, with a ``reason``, if a judge or a check could not
    decide. Leave such a sample out of training. ``parts`` maps each passed stage and each part of
    the closeness to its share of the reward. A program with a grave trick or proven look-ahead gets
    0, and ``outcome`` is then ``trick`` or ``lookahead``.
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
    """Return the reward of a program.

    ``judge`` is ``"behaviour"``, a client of a language judge, or None. Keep ``executor`` open over
    many calls (:func:`open_code_executor`). By default each call opens a sandbox. The judged
    markets are drawn from ``secret`` (hex). By default every process draws one secret, so that all
    programs of a training step get the same markets.
    """
    task_hint = (
        "load_task(ID) of tradeassay_programs.benchmarks.quantcode returns one; "
        "reward.batch takes ids"
    )
    instance_of("a task", task, CodeTask, task_hint)
    instance_of("a program", source, str, "give its text")
    check_reward_arguments(judge, framework, config)
    if executor is None:
        with open_code_executor() as opened:
            return reward(
                task,
                source,
                judge,
                executor=opened,
                config=config,
                framework=framework,
                secret=secret,
            )
    config = config or RewardConfig()
    client = None if judge is None or isinstance(judge, str) else judge
    rule = msgspec.structs.replace(
        config.evaluate,
        decides="language" if client is not None else "behaviour",
        limits=config.evaluate.limits or fitting_limits(task, framework),
    )
    rules = exam_settings(secret)
    closeness_parts: dict[str, float] = {}
    if judge is None:
        evaluation = examine(
            task,
            source,
            executor=executor,
            config=rule,
            framework=framework,
            rules=rules,
            unjudged=True,
        )
    else:
        evaluation, closeness_parts = examine_closely(
            executor, task, source, framework, rules, rule, config.draws
        )
        if client is not None:
            evaluation = ask_judge(evaluation, client, task, source, rule)
    return reward_of(
        evaluation, judged=judge is not None, config=config, closeness_parts=closeness_parts
    )


def check_reward_arguments(judge: object, framework: object, config: object) -> None:
    """Raise :class:`UserError` unless the judge, the framework and the config are valid."""
    if judge is not None and judge != "behaviour" and not callable(getattr(judge, "ask", None)):
        raise UserError(f"unknown judge {shown(judge)}", hint="pass judge='behaviour' or no judge")
    known = get_args(Framework)
    if framework not in known:
        hint = f"known frameworks: {', '.join(known)}"
        raise UserError(f"unknown framework {shown(framework)}", hint=hint)
    if config is not None:
        instance_of(
            "config", config, RewardConfig, "write e.g. config=RewardConfig(closeness_weight=0.5)"
        )


def fitting_limits(task: CodeTask, framework: Framework = "backtrader") -> JobLimits:
    """Return the limits of one run in training, so that an endless program cannot delay a step.

    A Backtrader program gets one second of processor time per 1,000 bars and asset. A program on
    frames gets five seconds for all calls on one table. A reference takes about a tenth of these
    times.
    """
    if framework == "frame":
        return msgspec.structs.replace(FRAME_LIMITS, cpu_s=5, wall_s=10.0)
    cpu = max(1, -(-task.bars * task.assets // 1000))
    return msgspec.structs.replace(LIMITS, cpu_s=cpu, wall_s=8.0 * cpu)


def reward_of(
    evaluation: Evaluation,
    *,
    judged: bool,
    config: RewardConfig | None = None,
    closeness_parts: Mapping[str, float] | None = None,
) -> Reward:
    """Return the reward of an evaluation.

    ``judged`` is whether a judge was requested. ``closeness_parts`` contains the parts of the
    closeness to the reference, each 0 to 1, for a program that the judge rejected.
    """
    config = config or RewardConfig()
    outcome = evaluation.outcome
    scale = 1.0 if judged else 1.0 - config.judge
    parts = {
        name: getattr(config, name) / scale
        for name in ("compile", "backtest", "trade")
        if evaluation.stage(name).passed
    }
    reason = evaluation.reason
    value: float | None = None
    stages = [evaluation.stage(name) for name in STAGES]
    undecided = [stage for stage in stages if stage.status == "not_scored"]
    if outcome in ("trick", "lookahead"):
        value, parts = 0.0, dict.fromkeys(parts, 0.0)
    else:
        if judged and evaluation.judge.passed:
            parts["judge"] = config.judge
        elif judged and evaluation.judge.failed and config.graded and closeness_parts:
            most = config.judge * config.closeness_weight
            for name, weight in CLOSENESS.items():
                parts[name] = most * weight * closeness_parts[name]
        if judged and undecided:
            reason = undecided[0].reason
        else:
            # Rounding makes 0.2 + 0.4 equal to 0.6.
            value = min(1.0, round(sum(parts.values()), 12))
            reason = "" if value == 1.0 else reason
    return Reward(
        value=value,
        outcome=outcome,
        judged=judged,
        parts=parts,
        reason=reason,
        evaluation=evaluation,
    )
