"""What a forger has: the files of an honest run, this package, and time to recompute every hash."""

import contextlib
import hashlib
import io
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from tradeassay.cli import main
from tradeassay.core.hashing import canonical_json, sha256_file, sha256_of
from tradeassay_bench.llm.recording import RecordedQuestion, key_of
from tradeassay_bench.runs.play.programs import code_scores, reopen
from tradeassay_bench.runs.play.trading import score_tasks
from tradeassay_bench.runs.score import encode_scores, gather, score_agent
from tradeassay_bench.runs.spec.run_spec import work_sha256
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import CodeManifest, read_manifest

Lines = list[dict[str, Any]]
Json = dict[str, Any]
LITTER = (".DS_Store", "Thumbs.db", "desktop.ini", "._manifest.json", ".directory", ".gitkeep")
"""What desktops and version control leave in folders."""


def command(*words):
    """Give a command as a user would; return its exit status and all that it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        given = [str(word) for word in words]
        try:
            # A recording's label holds the command.
            with mock.patch.object(sys, "argv", ["tradeassay", *given]):
                status = main(given)
        except SystemExit as stop:
            status = int(stop.code or 0)
    return status, out.getvalue()


class Forged:
    """A copy of an honest run that can be edited; what anybody could recompute is recomputed."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.root = path, root
        self.keeps_page = False

    def read(self, name: str) -> Json:
        found: Json = json.loads((self.path / name).read_bytes())
        return found

    def write(self, name: str, content: Json) -> None:
        text = msgspec.json.format(canonical_json(content), indent=1)
        (self.path / name).write_bytes(text + b"\n")

    def episode(self, words: str) -> Path:
        (found,) = [one for one in (self.path / "episodes").iterdir() if words in one.name]
        return found

    @contextlib.contextmanager
    def manifest(self, *, rescore: bool = True) -> Iterator[Json]:
        content = self.read("manifest.json")
        yield content
        for record in content.get("benchmarks", {}).values():
            record["sha256"] = sha256_of(record["config"])
        for cell in content.get("protocols", {}).values():
            cell["config_sha256"] = sha256_of(cell["config"])
        self.write("manifest.json", content)
        with contextlib.suppress(Exception):  # a spec that cannot be read has no hash
            kept = read_manifest(self.path / "manifest.json")
            if isinstance(kept, CodeManifest):
                own = sha256_of(msgspec.json.decode(kept.spec))
            else:
                own = work_sha256(kept.spec)
            self.write("manifest.json", {**content, "work_sha256": own})
        if rescore:
            self.rescore()

    @contextlib.contextmanager
    def journal(self, words: str, *, rescore: bool = True) -> Iterator[Lines]:
        path = self.episode(words) / "events.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        yield lines
        path.write_bytes(b"".join(_line(line) for line in lines))
        with self.outcome(words, rescore=rescore) as outcome:
            outcome["steps"] = len(lines)

    @contextlib.contextmanager
    def outcome(self, words: str, *, rescore: bool = True) -> Iterator[Json]:
        folder = self.episode(words)
        content = json.loads((folder / "outcome.json").read_bytes())
        yield content
        content["events_sha256"] = sha256_file(folder / "events.jsonl")
        # In the order it was read: a program's record is compared as it was written.
        (folder / "outcome.json").write_bytes(msgspec.json.encode(content))
        if rescore:
            self.rescore()

    @contextlib.contextmanager
    def lines(self, path: Path) -> Iterator[Lines]:
        """Edit a dialogue or a recording; the keys of a recording's answers are those of their
        questions again.
        """
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        yield lines
        for line in lines:
            if "asked" in line:
                line["key"] = key_of(msgspec.convert(line["asked"], RecordedQuestion))
        path.write_bytes(b"".join(_line(line) for line in lines))

    def recording(self, words: str) -> Path:
        (found,) = [one for one in (self.path / "models").iterdir() if words in one.name]
        return found

    def scores(self, edit: Callable[[Json], object]) -> None:
        content = self.read("scores.json")
        edit(content)
        text = msgspec.json.format(msgspec.json.encode(content), indent=1)
        (self.path / "scores.json").write_bytes(text + b"\n")

    def rescore(self) -> None:
        """Score the run as it now stands; where that cannot be done, the scores stay as they were.

        The page goes: it would contradict whatever was edited, and nobody needs to show one."""
        if not self.keeps_page:
            (self.path / "report.html").unlink(missing_ok=True)
        with contextlib.suppress(Exception):
            manifest, place = read_manifest(self.path / "manifest.json"), RunFolder(self.path)
            if isinstance(manifest, CodeManifest):
                content = code_scores(reopen(manifest), manifest, place)
            else:
                parts = [score_agent(task) for task in score_tasks(place, None, manifest).values()]
                level = manifest.spec.bootstrap.level
                content = encode_scores(
                    gather(manifest.work_sha256, manifest.episodes, tuple(parts), level=level)
                )
            place.scores.write_bytes(content)

    def present_as(self, *pairs: tuple[str, str]) -> None:
        """Write other words everywhere, in names of files too, and recompute what hangs on them."""
        for path in sorted(self.path.rglob("*"), reverse=True):
            if path.is_file() and path.suffix in {".json", ".jsonl"}:
                text = path.read_text()
                for old, new in pairs:
                    text = text.replace(old, new)
                path.write_text(text)
            for old, new in pairs:
                safe = new.replace("/", "-")
                if old.replace("/", "-") in path.name and path.exists():
                    path = path.rename(
                        path.with_name(path.name.replace(old.replace("/", "-"), safe))
                    )
        if (self.path / "models").is_dir():
            for recording in (self.path / "models").iterdir():
                with self.lines(recording):
                    pass
        for folder in (self.path / "episodes").iterdir():
            outcome = json.loads((folder / "outcome.json").read_bytes())
            outcome["events_sha256"] = sha256_file(folder / "events.jsonl")
            (folder / "outcome.json").write_bytes(canonical_json(outcome))
        with self.manifest():
            pass

    @contextlib.contextmanager
    def sql(self) -> Iterator[sqlite3.Connection]:
        base = sqlite3.connect(self.path)
        yield base
        base.commit()
        base.close()

    def execute(self, *statements: str) -> None:
        with self.sql() as base:
            for statement in statements:
                base.execute(statement)

    def season(self, edit: Callable[[Json], object]) -> None:
        """Change a season's spec and its hash."""
        with self.sql() as base:
            (text,) = base.execute("select spec from seasons").fetchone()
            spec = json.loads(text)
            edit(spec)
            text = canonical_json(spec).decode()
            base.execute(
                "update seasons set spec = ?, sha256 = ?",
                (text, hashlib.sha256(text.encode()).hexdigest()),
            )


def put(where, path, value):
    """Write a value at a path of keys and places, such as ``episodes|0|agent``; ``*`` is every
    child.
    """
    head, _, rest = path.partition("|")
    every = where if isinstance(where, dict) else range(len(where))
    for key in every if head == "*" else [head if isinstance(where, dict) else int(head)]:
        if rest:
            put(where[key], rest, value)
        else:
            where[key] = value


def nudged(value, share):
    """Return the same value with every number that is no count moved by a share of itself."""
    if isinstance(value, dict):
        return {key: nudged(inner, share) for key, inner in value.items()}
    if isinstance(value, list):
        return [nudged(inner, share) for inner in value]
    return value * (1 + share) if isinstance(value, float) else value


def _line(content):
    return msgspec.json.encode(content) + b"\n"


def copied(source, root):
    target = root / source.name
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)
    return Forged(target, root)
