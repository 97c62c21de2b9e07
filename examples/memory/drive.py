"""Play every world with a served model, and ask what it remembers: all of it by the command line, into one folder.

    export TRADEASSAY_LOCAL_SERVER=http://127.0.0.1:8101/v1
    python drive.py local/dose-main OUT [--worlds 0-99] [--workers 12]

For each world: a run under two masks, a recall audit of what was traded in it and one of the data set, the
counterfactual questions, and the verdict on all of it. A measure that fails is written down with its reason, and
the others go on. One part is done for all worlds before the next, the worlds in turn from all doses, so that a
broken-off drive is balanced.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from practice import command, play
from worlds import DOSES, HISTORY, PER_DOSE, World, make_world, store

PARTS = ("play", "traded", "recall", "counterfactual", "assay")
KEPT = ("cell", "agent", "total", "parts", "market", "verdict", "memory", "recall", "versus")
"""What is kept of a judged account."""


def work(part: str, number: int, model: str, out: Path, recorded: Path | None, until: float) -> dict[str, object]:
    """Do one part of one world; return how long it took, or why it failed."""
    world = make_world("dose", number)
    begun = time.time()
    why = None
    try:
        if begun > until:
            raise TimeoutError("no time was left")
        _part(part, world, model, out, recorded)
    except BaseException as error:
        why = f"{type(error).__name__}: {error}"[:1500]
    took = round(time.time() - begun, 1)
    return {"world": world.id, "dose": world.dose, "part": part, "seconds": took, "failed": why}


def _part(part: str, world: World, model: str, out: Path, recorded: Path | None) -> None:
    run = out / "runs" / world.id
    if part == "play":
        store(world)
        again = ["--cassettes", str(recorded / "runs" / world.id), "--replay"] if recorded else []
        play(world, model, "bright,blinded", out / "runs", "--executor", "inline", *again)
        return
    target = out / part / f"{world.id}.json"
    if part == "assay":
        found = [out / name / target.name for name in ("traded", "recall", "counterfactual")]
        known = [word for path in found if path.is_file() for word in ("--recall", str(path))]
        judged = json.loads(command("assay", "run", str(run), *known, "--json"))["agents"]
        kept = [{name: one[name] for name in KEPT} for one in judged if one["by_model"]]
        target.write_text(json.dumps(kept))
        return
    asked = ["-m", model, "--samples", "1", "--cutoff", "2024-01-01"]
    about = ["--dataset", world.id, "--first", world.days[HISTORY], "--questions", "120", "--logprobs", "20"]
    words = {
        "traded": ["recall", *asked, "--run", str(run), "--logprobs", "0"],
        "recall": ["recall", *asked, *about],
        "counterfactual": ["counterfactual", str(run), "--share", "0.25"],
    }[part]
    cassettes = (recorded or out) / part / world.id
    words += ["--concurrency", "8", "--json", "--cassettes", str(cassettes)]
    target.write_text(command("memory", *words, *(["--replay"] if recorded else [])))


def main() -> None:
    """Read the options, and drive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--worlds", default=f"0-{len(DOSES) * PER_DOSE - 1}", metavar="FIRST-LAST")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--recorded", type=Path, help="play and ask again from an unpacked recording: no server")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=3_600.0, help="begin no part after this time")
    arguments = parser.parse_args()
    first, last = map(int, arguments.worlds.split("-"))
    numbers = sorted(range(first, last + 1), key=lambda number: (number % PER_DOSE, -number))
    for part in arguments.parts.split(","):
        (arguments.out / part).mkdir(parents=True, exist_ok=True)
    until = time.time() + arguments.seconds
    context = multiprocessing.get_context("spawn")
    with (
        (arguments.out / "drive.jsonl").open("a") as log,
        ProcessPoolExecutor(arguments.workers, mp_context=context) as pool,
    ):
        asked = (arguments.model, arguments.out, arguments.recorded, until)
        jobs = [
            pool.submit(work, part, number, *asked) for part in arguments.parts.split(",") for number in numbers
        ]
        for job in as_completed(jobs):
            print(json.dumps(job.result()), file=log, flush=True)
    print("driven", flush=True)


if __name__ == "__main__":
    main()
