"""Record every shipped recording of a model again, with a running server.

    export TRADEASSAY_LOCAL_SERVER=http://127.0.0.1:8001/v1
    python scripts/record_models.py qwen2.5-coder-1.5b OUT --engine "..." --precision "..."

All runs are played concurrently, each in a separate process. Their output is in ``OUT/<name>.log``,
and each recording is written to ``OUT/<name>.tar.xz`` when its run ends. The same command continues
stopped runs and repeats no question. Secrets are taken from the shipped recordings, so aliases and
judged markets do not change. ``--brief`` plays a few sessions and tasks of each run as a test. If
this machine has other package versions than the tests, run ``scripts/pack_recordings.py --here``
afterwards.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from tradeassay_bench.runs.store.archive import read_members

SHIPPED = Path(__file__).parents[1] / "recordings" / "src" / "tradeassay_recordings"
TOKENS = {
    "qwen2.5-coder-1.5b": {"ktdfin": 1024, "stockbench": 2048, "quantcode": 3072, "systrade": 4096},
    "smollm2": {"ktdfin": 512, "stockbench": 1024, "quantcode": 3072, "systrade": 1024},
}
"""The longest answers. SmolLM2 always writes up to the limit."""
CLI = (sys.executable, "-m", "tradeassay")
Commands = list[tuple[str, ...]]


def jobs(model: str, out: Path, packed: tuple[str, ...], *, brief: bool) -> dict[str, Commands]:
    """Return the commands for each recording, in order."""
    most, agent = TOKENS[model], ("-m", f"local/{model}", "--concurrency", "64")
    runs = ("--runs", str(out / "runs"))
    masks, modes = (
        "bright,stock-blind,date-blind,blinded",
        "memory-only,fixed-candidate,open-research",
    )
    us_masks, us_modes = "bright,blinded", "fixed-candidate,open-research"
    window = ("--window", "W4")
    real = ("--first", "2020-03-27", "--last", "2020-03-30") if brief else window
    synthetic = ("--first", "2022-11-07", "--last", "2022-11-08") if brief else window
    days = ("2022-06-23", "2022-06-24" if brief else "2022-08-22")
    few = ("--task", "d-sma-cross-long") if brief else ()
    limit = f"max_tokens={most['ktdfin']}"

    def traded(name: str, benchmark: str, *told: str) -> Commands:
        file = str(out / f"{name}.tar.xz")
        return [
            (
                *CLI,
                "recordings",
                "record",
                benchmark,
                *agent,
                *secret(model, name),
                *runs,
                *told,
                *packed,
                "-o",
                file,
            )
        ]

    def written(name: str, benchmark: str, *told: str) -> Commands:
        play = (
            *CLI,
            "code",
            "run",
            benchmark,
            *agent,
            *secret(model, name),
            *runs,
            "--name",
            name,
            *told,
        )
        file = str(out / f"{name}.tar.xz")
        return [play, (*CLI, "recordings", "record", str(out / "runs" / name), *packed, "-o", file)]

    season, db = out / "season.json", str(out / "arena.db")
    if not season.is_file():
        season.write_bytes(dict(read_members(SHIPPED / model / "arena.tar.xz"))["season.json"])
    until = ("--until", "2022-03-02") if brief else ()
    code = ("--max-tokens", str(most["quantcode"]))
    agentic = ("--setting", "agentic", *(few or ("--sample", "48")))
    careful = ("--iterations", "3", "--max-tokens", str(most["systrade"]))
    return {
        "ktdfin": traded(
            "ktdfin", "ktdfin-v1", "--mask", masks, "--mode", modes, "-p", limit, *synthetic
        ),
        "ktdfin-real": traded(
            "ktdfin-real",
            "ktdfin-us-real-v1",
            "--mask",
            us_masks,
            "--mode",
            us_modes,
            "-p",
            limit,
            *real,
        ),
        "stockbench": traded(
            "stockbench",
            "stockbench-v1",
            *("--first", days[0], "--last", days[1], "-p", f"max_tokens={most['stockbench']}"),
        ),
        "quantcode": written("quantcode", "quantcode-v1", "--setting", "single-turn", *code, *few),
        "quantcode-agentic": written("quantcode-agentic", "quantcode-v1", *agentic, *code),
        "systrade": written(
            "systrade", "systrade-v1", *careful, *(("--strategy", "bollinger") if brief else ())
        ),
        "arena": [
            (*CLI, "arena", "run", "--season", str(season), "--db", db, *until),
            (*CLI, "recordings", "record", db, *packed, "-o", str(out / "arena.tar.xz")),
        ],
    }


def secret(model: str, name: str) -> tuple[str, ...]:
    """Return the option with the secret of the shipped recording."""
    manifest = json.loads(dict(read_members(SHIPPED / model / f"{name}.tar.xz"))["manifest.json"])
    return "--secret", manifest["spec"]["secret"]


def main() -> int:
    """Play all runs and return the number of recordings that failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=sorted(TOKENS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--engine", default="not stated")
    parser.add_argument("--precision", default="not stated")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--brief", action="store_true")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    packed = ("--engine", options.engine, "--precision", options.precision)
    wanted = jobs(options.model, out, packed, brief=options.brief)
    left = {name: list(wanted[name]) for name in options.only or wanted}
    running: dict[str, subprocess.Popen[bytes]] = {}
    failed: dict[str, int] = {}
    while left or running:
        for name in [name for name in left if name not in running]:
            with (out / f"{name}.log").open("ab") as log:
                running[name] = subprocess.Popen(left[name].pop(0), stdout=log, stderr=log, cwd=out)
        time.sleep(0.5)
        for name, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[name]
            # A run with failed episodes exits with 1 and is packed all the same.
            if process.returncode not in (0, 1):
                failed[name] = process.returncode
                left[name] = []
            if not left[name]:
                del left[name]
                file = out / f"{name}.tar.xz"
                print(f"{name}: {'not packed' if not file.is_file() else 'packed'}", flush=True)
    return sum(
        not (out / f"{name}.tar.xz").is_file()
        for name in wanted
        if not options.only or name in options.only
    )


if __name__ == "__main__":
    sys.exit(main())
