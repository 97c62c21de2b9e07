"""What ``verify`` can make again of a run and what it cannot, from the record alone, for its pages."""

from __future__ import annotations

from collections import Counter

import msgspec

from tradeassay.agents.own_file import NAME as OWN_FILE
from tradeassay.agents.own_file import OPEN
from tradeassay.core.measure import NOT_REDERIVABLE, OWN_PROGRAM
from tradeassay.runs.store.manifest import RunManifest
from tradeassay.runs.store.outcome import ClaimOutcome
from tradeassay.runs.store.run import CodeRun, Run


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """``again`` names the claims that can be made again where the data is; ``not_again`` those that cannot."""

    again: tuple[str, ...]
    not_again: tuple[ClaimOutcome, ...]


def coverage_of(run: Run | CodeRun) -> Coverage:
    """Return what a verification of a finished run can say at most."""
    trades = isinstance(run.manifest, RunManifest)
    answers = [outcome.answers for _, outcome in run.outcomes()]
    files = [one.agent.params.get("files", OPEN) for one in run.episodes if one.agent.name == OWN_FILE]
    own = len(files) if trades else 0
    rules = sum(one == "none" for one in answers) - own if trades else 0
    again = ["data"] if trades else []
    again += ["rules"]
    again += ["decisions"] if rules else []
    again += ["account"] if trades else ["programs"]
    again += ["conversation"] if len(answers) - answers.count("none") else []
    again += ["answers"] if "scripted" in answers else []
    counted = Counter(f"{OWN_PROGRAM}; that files were {one} to it is the runner's word" for one in files[:own])
    claims = dict.fromkeys(counted, "decisions") | {NOT_REDERIVABLE: "answers"}
    counted[NOT_REDERIVABLE] = sum(one in ("live", "replayed") for one in answers)
    return Coverage(
        again=(*again, "scores"),
        not_again=tuple(
            ClaimOutcome(claim=claims[why], outcome="cannot be checked", why=why, episodes=count)
            for why, count in counted.items()
            if count
        ),
    )
