"""Pack what public models answered about real data: ``python public.py RESULTS [--engine TEXT]``.

RESULTS has a folder per model, in it one of recorded answers and one JSON record per data set, as
``tradeassay memory recall --recordings MODEL/DATASET --json > MODEL/DATASET.json`` wrote them.
Questions do not ship, and of the texts whose tokens a server echoed only the lengths: they hold
real prices. What a replay gives goes to ``recall.json``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pack import weighed
from practice import command as replayed

from tradeassay_bench.llm.recording import without_texts
from tradeassay_bench.runs.store.archive import AUDIT, day_of, write_recording

SHIPPED = Path(__file__).resolve().parents[2] / "recordings" / "src" / "tradeassay_recordings"
KEPT = ("model", "dataset", "told", "sentence", "recall", "closes", "beyond", "notes")
ROWS = ("moves", "close", "best", "worst", "index", "year")


def main() -> None:
    """Pack every audit, and write the numbers of each model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument(
        "--engine", default="examples/gpu_server.py (torch 2.11, CUDA 13) on one H200"
    )
    parser.add_argument("--precision", default="4-bit weights, computed in bf16")
    arguments = parser.parse_args()
    for model in sorted(path for path in arguments.results.iterdir() if path.is_dir()):
        numbers = {}
        for record in sorted(model.glob("*.json")):
            told = json.loads(record.read_text())
            folder = model / record.stem
            found = {"models/recall.jsonl": without_texts(folder / "recall.jsonl")}
            found["models/recall-logprobs.jsonl"] = weighed(folder / "recall-logprobs.jsonl")
            config = told["config"]
            command = (
                f"tradeassay memory recall -m {told['model']} --dataset {record.stem} --questions "
                f"{config['questions']} --samples {config['samples']} --logprobs "
                f"{config['logprobs']}"
            )
            write_recording(
                SHIPPED / model.name / f"recall-{record.stem}{AUDIT}",
                found,
                benchmarks=(),
                engine=arguments.engine,
                precision=arguments.precision,
                recorded=day_of(record.stat().st_mtime),
                python="3.12",
                complete=True,
                command=command,
            )
            again = (
                *command.split()[1:],
                "--recordings",
                f"recorded/{model.name}",
                "--replay",
                "--json",
            )
            told = json.loads(replayed(*again))
            numbers[record.stem] = {name: told[name] for name in KEPT} | {
                "asked": len(told["answers"]),
                "first": told["propensity"]["first"],
                "interaction": told["propensity"]["interaction"],
                "rows": {
                    one["kind"]: {name: one[name] for name in ("asked", "refused", "hit", "error")}
                    for one in told["scores"]
                    if (one["names"], one["period"]) == ("real", "all") and one["kind"] in ROWS
                },
            }
        target = SHIPPED / model.name / "recall.json"
        target.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
