"""Pack what a model answered in every world into one file, without the questions' texts, and unpack
it.

    python pack.py pack RESULTS/MODEL FILE.tar.xz [WORLD ...]
    python pack.py unpack FILE.tar.xz FOLDER

A question is found again by its hash, which the worlds and the prompts give: ``drive.py --recorded
FOLDER``.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tradeassay_bench.llm.recording import without_texts

PARTS = ("traded", "recall", "counterfactual")


def masked(line: str) -> str:
    """Return an answer whose echoed tokens are of the same length and say nothing."""
    entry = json.loads(line)
    if entry["type"] != "answer":
        return line
    told = json.loads(entry["reply"]["text"])
    told["tokens"] = ["x" * len(token) for token in told["tokens"]]
    entry["reply"]["text"] = json.dumps(told, separators=(",", ":"))
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False)


def weighed(recording: Path) -> bytes:
    """Return a recording of log-probabilities without texts: of echoed tokens only the lengths
    are needed.
    """
    lines = without_texts(recording).decode().splitlines()
    return "".join(masked(line) + "\n" for line in lines).encode()


def members(folder: Path, worlds: set[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of what is kept of some worlds, or of all, of a model's
    folder.
    """
    for run in sorted((folder / "runs").iterdir()):
        if worlds and run.name not in worlds:
            continue
        for name in ("manifest.json", "scores.json"):
            if (run / name).is_file():
                yield f"runs/{run.name}/{name}", (run / name).read_bytes()
        for recording in sorted((run / "models").glob("*.jsonl")):
            yield f"runs/{run.name}/models/{recording.name}", without_texts(recording)
    for part in PARTS:
        for recording in sorted((folder / part).glob("*/**/*.jsonl")):
            if worlds and recording.relative_to(folder / part).parts[0] not in worlds:
                continue
            bare = weighed if "logprobs" in recording.name else without_texts
            yield recording.relative_to(folder).as_posix(), bare(recording)


def pack(folder: Path, file: Path, *worlds: str) -> None:
    """Write the archive; the same answers give the same bytes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w:xz", preset=9) as archive:
        # Like beside like: all blinded plays, then all bright ones ... packs best.
        for name, content in sorted(
            members(folder, set(worlds)), key=lambda one: (one[0].partition("mask=")[2], one[0])
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def unpack(file: Path, folder: Path) -> None:
    """Unpack an archive."""
    with tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")


if __name__ == "__main__":
    if sys.argv[1] == "pack":
        pack(Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
    else:
        unpack(Path(sys.argv[2]), Path(sys.argv[3]))
