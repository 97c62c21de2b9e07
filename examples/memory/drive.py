"""Play every world with a served model, and ask what it remembers: all of it by the command line,
into one folder.

    export TRADEASSAY_LOCAL_SERVER=http://127.0.0.1:8101/v1   # or several, with commas
    python drive.py local/dose-main OUT [--worlds 0-109] [--players 12] [--askers 4]

For each world a recall audit of the data set; for the first twenty of each dose a run with and
without a mask, a recall audit of what was traded in it, the counterfactual questions, and the
verdict on all of it. A measure that fails is tried again, then written down with its reason, and
the others go on. Worlds come in turn from all doses, so that a broken-off drive is balanced; of one
world each part waits for those before it. Where ``recall`` is the first part, the audits of data
sets wait for nobody.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import queue
import shutil
import time
import urllib.request
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from practice import command, play
from worlds import GROUPS, HISTORY, PLAYED_PER_DOSE, STUDY, World, make_world, store

PARTS = ("recall", "play", "traded", "counterfactual", "assay")
TRIES = 3
_SERVER = "TRADEASSAY_LOCAL_SERVER"
SERVERS = os.environ.get(_SERVER, "").split(",") if os.environ.get(_SERVER) else []
KEPT = ("cell", "agent", "total", "parts", "market", "verdict", "memory", "recall", "versus")
"""What is kept of a judged account."""


def wait_for(server: str, until: float) -> None:
    """Wait until a server answers."""
    while time.time() < until:
        try:
            urllib.request.urlopen(server.removesuffix("/v1") + "/health", timeout=5).close()
            return
        except OSError:
            time.sleep(1)


def work(
    part: str, number: int, model: str, out: Path, recorded: Path | None, until: float
) -> dict[str, object]:
    """Do one part of one world; return how long it took, or why it failed.

    Worlds take turns on the servers.
    """
    world = make_world("dose", number)
    if SERVERS:
        os.environ[_SERVER] = SERVERS[number % len(SERVERS)]
    begun = time.time()
    why = None
    for tried in range(1 if recorded else TRIES):
        if time.time() > until:
            why = why or "TimeoutError: no time was left"
            break
        try:
            if SERVERS and part != "assay":
                wait_for(os.environ[_SERVER], until)
            _part(part, world, model, out, recorded)
            why = None
            break
        except BaseException as error:
            why = f"{type(error).__name__}: {error}"[:1500]
            if part == "play" and tried < TRIES - 1:
                shutil.rmtree(out / "runs" / world.id, ignore_errors=True)
    took = round(time.time() - begun, 1)
    return {"world": world.id, "dose": world.dose, "part": part, "seconds": took, "failed": why}


def _part(part: str, world: World, model: str, out: Path, recorded: Path | None) -> None:
    run = out / "runs" / world.id
    if part == "play":
        if recorded is not None and not (recorded / "runs" / world.id).is_dir():
            raise FileNotFoundError("it was not recorded")
        again = ["--recordings", str(recorded / "runs" / world.id), "--replay"] if recorded else []
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
    about = [
        "--dataset",
        world.id,
        "--first",
        world.days[HISTORY],
        "--questions",
        str(STUDY.questions),
    ]
    asked += ["--logprobs", "32" if part == "recall" else "0"]
    every = ["--every", "1", *(["--wordings", "1"] if STUDY.always else [])]
    words = {
        "traded": ["recall", *asked, "--run", str(run), "--horizon", STUDY.span, *every],
        "recall": ["recall", *asked, *about],
        "counterfactual": ["counterfactual", str(run), "--share", str(STUDY.share)],
    }[part]
    recordings = (recorded or out) / part / world.id
    if recorded is not None and not recordings.is_dir():
        raise FileNotFoundError("it was not recorded")
    words += ["--concurrency", "8", "--json", "--recordings", str(recordings)]
    target.write_text(command("memory", *words, *(["--replay"] if recorded else [])))


def main() -> None:
    """Read the options, and drive."""
    from tradeassay_bench.data.datasets import list_datasets

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--worlds", default=f"0-{GROUPS['dose'] - 1}", metavar="FIRST-LAST")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument(
        "--recorded", type=Path, help="play and ask again from an unpacked recording: no server"
    )
    parser.add_argument(
        "--played", type=int, default=PLAYED_PER_DOSE, help="how many worlds a dose are played"
    )
    parser.add_argument("--players", type=int, default=12, help="worlds that are played at once")
    parser.add_argument(
        "--askers", type=int, default=4, help="data sets that are asked about at once"
    )
    parser.add_argument(
        "--closers", type=int, default=2, help="played worlds that are asked about at once"
    )
    parser.add_argument("--judges", type=int, default=2, help="verdicts at once")
    parser.add_argument(
        "--seconds", type=float, default=3_600.0, help="begin no part after this time"
    )
    arguments = parser.parse_args()
    first, last = map(int, arguments.worlds.split("-"))
    worlds = [make_world("dose", number) for number in range(first, last + 1)]
    known = {one.name for one in list_datasets()}
    for world in worlds:
        if world.id not in known:
            store(world)
    worlds.sort(key=lambda world: (world.turn, -world.dose))
    parts = arguments.parts.split(",")
    for part in parts:
        (arguments.out / part).mkdir(parents=True, exist_ok=True)
    until = time.time() + arguments.seconds
    # Processes are copies of one that has read the program: each would need seconds for that.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["warm"])
    played = [world for world in worlds if world.turn < arguments.played]
    done: queue.SimpleQueue[dict[str, object]] = queue.SimpleQueue()
    with (
        (arguments.out / "drive.jsonl").open("a") as log,
        ProcessPoolExecutor(arguments.players, mp_context=context) as players,
        ProcessPoolExecutor(arguments.askers, mp_context=context) as askers,
        ProcessPoolExecutor(arguments.closers, mp_context=context) as closers,
        ProcessPoolExecutor(arguments.judges, mp_context=context) as judges,
    ):
        pools = {"play": players, "recall": askers, "assay": judges}

        def submit(part: str, world: World) -> None:
            def finished(job: Future[dict[str, object]]) -> None:
                error = job.exception()
                lost = {
                    "world": world.id,
                    "dose": world.dose,
                    "part": part,
                    "seconds": 0.0,
                    "failed": repr(error),
                }
                done.put(lost if error else job.result())

            arguments_of = (
                part,
                world.number,
                arguments.model,
                arguments.out,
                arguments.recorded,
                until,
            )
            pools.get(part, closers).submit(work, *arguments_of).add_done_callback(finished)

        apart = parts[0] == "recall"
        rest = parts[apart:]
        begun = [(part, world) for part in rest[:1] for world in played]
        begun += [("recall", world) for world in worlds if apart]
        for part, world in begun:
            submit(part, world)
        waiting = len(begun)
        by_id = {world.id: world for world in worlds}
        while waiting:
            found = done.get()
            waiting -= 1
            print(json.dumps(found), file=log, flush=True)
            if found["part"] in rest[:-1]:
                submit(rest[rest.index(str(found["part"])) + 1], by_id[str(found["world"])])
                waiting += 1
    print("driven", flush=True)


if __name__ == "__main__":
    main()
