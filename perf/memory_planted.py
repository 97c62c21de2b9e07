"""Judge planted agents without a language model: is direct evidence of memory, without a mask,
sufficient?

    python perf/memory_planted.py --worlds 500 --first 500000

In each synthetic world one agent knows the final returns of names, one knows the days on which the
market rises, one reads news, one reads only prices, one is lucky. Each is asked the questions of a
recall audit, in words, and its decisions are repeated with a changed past. The verdict has that
evidence and no masked twin. With ``--days 0.6`` the agents know only a share of the days.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.metrics import rate_measure
from tradeassay.verdict import AgentFindings, VerdictConfig
from tradeassay.verdict.questions import first_verdict
from tradeassay.verdict.recalled import RecallSplit
from tradeassay.verdict.record import RecallEvidence
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.examine.memory import (
    CounterfactualConfig,
    RecallConfig,
    score_counterfactual,
    split_edge,
)
from tradeassay_bench.examine.memory.counterfactual import ReaskedDecision
from tradeassay_bench.examine.memory.edge import recalled_moves
from tradeassay_bench.examine.memory.questions import (
    PriceTruth,
    RecallAnswer,
    RecallQuestion,
    draw_for_pairs,
    read_answer,
)
from tradeassay_bench.examine.memory.recall import RecallPlan, score_recall
from tradeassay_bench.examine.planted import (
    FIRST_WORLD,
    Bench,
    Plant,
    PlantConfig,
    PlantedWorld,
    planted_world,
    weights_of,
)
from tradeassay_bench.report.paste_cells import in_line

AGENTS: dict[Plant, tuple[str, tuple[str, ...]]] = {
    "memorising": ("knows names", ("memory",)),
    "dates": ("knows dates", ("memory",)),
    "skilled": ("reads news", ("skill", "mixed")),
    "style": ("reads only prices", ("style", "luck")),
    "lucky": ("lucky", ("luck",)),
}
NAMES, WEEK = 20, 5


def truth_of(world: PlantedWorld) -> PriceTruth:
    """Return the world's prices as a recall audit reads them; the first session has a day before
    it.
    """
    closes = 100.0 * np.cumprod(
        np.vstack([np.ones(world.names), 1.0 + np.nan_to_num(world.returns)]), axis=0
    )
    days = np.array(world.inputs.sessions, dtype="datetime64[D]")
    symbols = tuple(world.inputs.symbols[int(k)] for k in world.columns)
    return PriceTruth(
        sessions=np.concatenate([days[:1] - 1, days]),
        symbols=symbols,
        titles={},
        closes=closes,
        traded=closes,
        indices={},
        synthetic=True,
    )


def known_by(plant: Plant, world: PlantedWorld, held: Floats) -> Floats | None:
    """Return the moves that an agent remembers, (T, N): final returns of names, or the days of
    rises.
    """
    if plant == "memorising":
        return np.broadcast_to(world.happened.mean(axis=0), world.returns.shape)
    if plant == "dates":
        invested = held.sum(axis=1)
        rising = np.where(invested > (invested.max() + invested.min()) / 2.0, 0.01, -0.01)
        return np.repeat(rising[:, None], world.names, axis=1)
    return None


def answers_of(
    plant: Plant, world: PlantedWorld, held: Floats, truth: PriceTruth
) -> tuple[RecallAnswer, ...]:
    """Ask an agent for the moves of its largest holdings, like a run's audit, and parse its
    words.
    """
    horizon = 1 if plant == "dates" else WEEK
    most = 4 if plant == "dates" else NAMES  # every day of a few names, or every week of many
    order = np.argsort(-held.sum(axis=0), kind="stable")[:most]
    config = RecallConfig(wordings=1, samples=1, horizon="day" if horizon == 1 else "week")
    starts = range(0, len(truth.sessions) - 1, horizon)
    spans = [
        (str(truth.sessions[at]), str(truth.sessions[min(at + horizon, len(truth.sessions) - 1)]))
        for at in starts
    ]
    questions = draw_for_pairs(
        truth, [(truth.symbols[int(k)], *span) for k in order for span in spans], config
    )
    known, rng = known_by(plant, world, held), np.random.default_rng([world.seed, 30])
    row = {str(day): number for number, day in enumerate(truth.sessions)}
    place = {symbol: number for number, symbol in enumerate(truth.symbols)}

    def said(one: RecallQuestion) -> str:
        if known is not None and not (one.invented and plant == "memorising"):
            column = place[one.stands_for or one.symbol]
            move = float(known[row[one.day] : row[one.until], column].sum())
        elif rng.random() < 0.5:
            return "unknown"
        else:
            move = float(rng.normal(0.0, 0.03))
        return f"{'up' if move > 0 else 'down'} {abs(move) * 100:.1f}%"

    return tuple(read_answer(one, ModelReply(text=said(one))) for one in questions)


def reasked(
    plant: Plant, world: PlantedWorld, held: Floats, plants: PlantConfig
) -> list[ReaskedDecision]:
    """Return decisions in changed markets. Readers see other series. Agents with memory do not
    look.
    """
    order = np.random.default_rng([world.seed, 31]).permutation(world.names)
    mirror = PlantedWorld(
        seed=world.seed,
        returns=-world.returns,
        exposures=-world.exposures,
        drift=-world.drift,
        happened=world.happened,
        columns=world.columns,
        inputs=world.inputs,
    )
    swap = exchanged(world, order)
    reads = plant in ("skilled", "style")
    arms = {
        "again": held,
        "prices": weights_of(plant, mirror, plants) if reads else held,
        "names": weights_of(plant, swap, plants) if reads else held,
        "date": weights_of(plant, world, plants, masked=True) if plant == "dates" else held,
    }
    carries = {str(int(order[k])): str(k) for k in range(world.names)}
    made = []
    for arm, weights in arms.items():
        for day in range(10, world.sessions, 10):
            then, now = (
                {
                    str(int(k)): float(np.sign(w[day, k] - w[day - 1, k]))
                    for k in np.flatnonzero(w[day] != w[day - 1])
                }
                for w in (held, weights)
            )
            made.append(
                ReaskedDecision(
                    arm=arm,  # type: ignore[arg-type]  # one of the arms
                    episode="planted",
                    session=world.inputs.sessions[day],
                    recorded=then,
                    now=now,
                    moved={carries[name]: sign for name, sign in then.items()},
                    confidence=None,
                    confidence_now=None,
                )
            )
    return made


def exchanged(world: PlantedWorld, order: np.ndarray) -> PlantedWorld:
    """Return the world with the series exchanged between names."""
    return PlantedWorld(
        seed=world.seed,
        returns=world.returns[:, order],
        exposures=world.exposures[:, :, order],
        drift=world.drift[:, order],
        happened=world.happened,
        columns=world.columns,
        inputs=world.inputs,
    )


def evidence(plant: Plant, world: PlantedWorld, plants: PlantConfig) -> RecallEvidence:
    """Return all evidence of memory except a mask."""
    held, truth = weights_of(plant, world, plants), truth_of(world)
    answers = answers_of(plant, world, held, truth)
    plan = RecallPlan(
        questions=len(answers), facts=len(answers), input_tokens=0, output_tokens=0, usd=0.0
    )
    audit = score_recall(
        answers,
        config=RecallConfig(),
        cutoff=None,
        model=plant,
        dataset="planted",
        run=None,
        plan=plan,
        usd=0.0,
    )
    names, recalled, ahead = recalled_moves(answers, truth)
    columns = [truth.symbols.index(name) for name in names]
    horizon = 1 if plant == "dates" else WEEK
    by_name, by_date = split_edge(
        held[:, columns],
        world.returns[:, columns],
        recalled[1:],
        year=252,
        horizon=horizon,
        ahead=ahead[1:],
    )
    study = score_counterfactual(
        reasked(plant, world, held, plants),
        model=plant,
        run="planted",
        config=CounterfactualConfig(),
    )
    return RecallEvidence(
        told=audit.told,
        recall=audit.recall,
        split=RecallSplit(names=by_name, dates=by_date, covered=1.0, sentence=""),
        unread=study.unread,
        by_name=study.by_name,
        sentences=(audit.sentence, study.sentence),
    )


def main() -> None:
    """Judge every agent in every world and print how often the verdict is right."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--worlds", type=int, default=100)
    reader.add_argument("--names", type=int, default=100)
    reader.add_argument("--first", type=int, default=FIRST_WORLD, help="seed of the first world")
    reader.add_argument("--agents", default=",".join(AGENTS))
    reader.add_argument(
        "--days", type=float, default=1.0, help="the share of days whose sign is known by heart"
    )
    asked = reader.parse_args()
    config, plants = VerdictConfig(), PlantConfig(foresight=asked.days)
    agents = {plant: found for plant, found in AGENTS.items() if plant in asked.agents.split(",")}
    words: dict[str, Counter[str]] = {plant: Counter() for plant in agents}
    told: dict[str, Counter[str]] = {plant: Counter() for plant in agents}
    began = time.process_time()
    for number in range(asked.worlds):
        world = planted_world(asked.first + number, names=asked.names)
        bench = Bench(world, plants, config, portfolios=200)
        for plant in agents:
            found = bench.judge(plant)
            direct = evidence(plant, world, plants)
            account: AgentFindings = msgspec.structs.replace(found, memory=None, recall=direct)
            verdict = first_verdict(account, config)
            words[plant][verdict.kind] += 1
            told[plant][
                f"{direct.told}, {'by name or date' if direct.by_name else 'not by name'}"
            ] += 1
        print(number + 1, {plant: dict(row) for plant, row in words.items()}, flush=True)
    print(
        f"\n{time.process_time() - began:.0f} CPU-s\n"
        "| agent | deserves | right | words | audit |\n|---|---|---|---|---|"
    )
    for plant, (name, deserved) in agents.items():
        hits = sum(words[plant][kind] for kind in deserved)
        right = rate_measure(hits, asked.worlds, nothing="none was judged")
        counts = ", ".join(f"{kind} {count}" for kind, count in words[plant].most_common())
        audit = ", ".join(f"{kind} {count}" for kind, count in told[plant].most_common(2))
        print(
            f"| {name} | {' or '.join(deserved)} | {in_line(right, '{:.1%}')} | {counts} | {audit} "
            "|"
        )


if __name__ == "__main__":
    main()
