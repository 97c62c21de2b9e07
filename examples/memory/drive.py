"""Play every world with a served model, and ask what it remembers: all of it by the command line, into one folder.

    export TRADEASSAY_LOCAL_SERVER=http://127.0.0.1:8101/v1
    python drive.py local/dose-main OUT [--worlds 0-99] [--workers 12]

For each world: a run under two masks, a recall audit of the data set, one of what was traded in the run, and the
counterfactual questions. A measure that fails is written down with its reason, and the others go on. One part is
done for all worlds before the next, the worlds in turn from all doses, so that a broken-off drive is balanced.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from direct import likely, mirrored
from practice import command, play
from worlds import DOSES, HISTORY, PER_DOSE, World, make_world, store

PARTS = ("play", "traded", "recall", "counterfactual", "likely", "mirrored")


def work(part: str, number: int, model: str, out: Path, until: float) -> dict[str, object]:
    """Do one part of one world; return how long it took, or why it failed."""
    world = make_world("dose", number)
    begun = time.time()
    why = None
    try:
        if begun > until:
            raise TimeoutError("no time was left")
        _part(part, world, model, out)
    except BaseException as error:
        why = f"{type(error).__name__}: {error}"[:1500]
    took = round(time.time() - begun, 1)
    return {"world": world.id, "dose": world.dose, "part": part, "seconds": took, "failed": why}


def _part(part: str, world: World, model: str, out: Path) -> None:
    asked = ["--samples", "1", "--cutoff", "2024-01-01", "--concurrency", "8", "--json"]
    run = str(out / "runs" / world.id)
    if part == "play":
        store(world)
        play(world, model, "bright,blinded", out / "runs", "--executor", "inline")
        return
    if part == "recall":
        words = [
            "recall",
            "-m",
            model,
            "--dataset",
            world.id,
            "--first",
            world.days[HISTORY],
            "--questions",
            "120",
        ]
        words += asked
    elif part == "traded":
        words = ["recall", "-m", model, "--run", run, "--logprobs", "0", *asked]
    elif part in ("likely", "mirrored"):
        server = os.environ["TRADEASSAY_LOCAL_SERVER"]
        found = likely(world, server) if part == "likely" else mirrored(Path(run), server)
        (out / part / f"{world.id}.json").write_text(json.dumps(found))
        return
    else:
        words = ["counterfactual", run, "--share", "0.25", "--json"]
    cassettes = out / part / world.id
    found = command("memory", *words, "--cassettes", str(cassettes))
    cassettes.with_suffix(".json").write_text(found)


def main() -> None:
    """Read the options, and drive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--worlds", default=f"0-{len(DOSES) * PER_DOSE - 1}", metavar="FIRST-LAST")
    parser.add_argument("--parts", default=",".join(PARTS))
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
        asked = (arguments.model, arguments.out, until)
        jobs = [
            pool.submit(work, part, number, *asked) for part in arguments.parts.split(",") for number in numbers
        ]
        for job in as_completed(jobs):
            print(json.dumps(job.result()), file=log, flush=True)
    print("driven", flush=True)


if __name__ == "__main__":
    main()
