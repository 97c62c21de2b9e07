"""Pack the shipped recordings again: replay each from its answers, compare the numbers, rewrite the
file.

Use it after a change of the files around the answers (an id, a module's name, the form of a
manifest) that changes no answer and no number. Answers, label and dates are preserved. Every
difference is reported, and its file is not rewritten.

``--rename OLD=NEW`` replaces an id everywhere except in answers. ``--rekey`` gives each question
the answer recorded at its place, if our wording inside a question has changed. ``--scores``
compares only scores, if the form of an outcome has changed. ``--set PATH=JSON`` replaces a setting
whose form in a spec has changed (``evaluate.leak=true``). ``--here`` records this machine and its
packages as those of the run, for a recording from a machine with other packages. ``--rescore``
allows different scores, if the scoring has changed. The actions must still be the same.

    python scripts/pack_recordings.py recordings/src/tradeassay_recordings/*/*.tar.xz
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from platform import python_version
from typing import Any
from unittest.mock import patch

import msgspec

from tradeassay.core.errors import TradeassayError
from tradeassay_arena.recording import DECISIONS, STANDINGS, pack_season, recorded_season, replaying
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.web.serving import PlayOptions, play
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.benchmarks.code_protocol import find_protocol
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.data import load_dataset
from tradeassay_bench.llm import QuestionPlace
from tradeassay_bench.llm.recording import (
    ENCODER,
    FORMAT,
    AnswerLine,
    HeadLine,
    ReplayingModel,
    key_of,
    recorded_question,
)
from tradeassay_bench.runs import Asking, RunSpec, expand, run
from tradeassay_bench.runs.spec.episode import describe_protocol, with_protocol
from tradeassay_bench.runs.store.archive import (
    SEASON,
    OpenRecording,
    RecordingLabel,
    read_members,
    unlike_recorded,
    write_recording,
)
from tradeassay_bench.runs.store.folder import RunFolder, Versions
from tradeassay_bench.runs.store.manifest import (
    RunManifest,
    agent_record,
    build_manifest,
    encode_manifest,
    read_manifest,
)

LABEL = "recording.json"
HASHES = ("work_sha256", "events_sha256", "outcomes", "prompts", "rules")
"""Keys of a record that contain hashes of other files, or of prompts."""
WORDS = ("reason", "note", "sentence", "answers")
"""Keys of a record that contain our own wording, which may change, or the source of its answers."""


def main() -> int:
    """Pack the named files again and return the number of failures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    parser.add_argument(
        "--rekey", action="store_true", help="find answers by their place in the episode"
    )
    parser.add_argument("--scores", action="store_true", help="compare scores.json alone")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=JSON", help="change the recorded spec"
    )
    parser.add_argument(
        "--rescore", action="store_true", help="scores may differ, outcomes may not"
    )
    parser.add_argument(
        "--here", action="store_true", help="the versions of this machine are the run's"
    )
    options = parser.parse_args()
    pairs = [pair.partition("=")[::2] for pair in options.rename]
    broken = 0
    for file in options.files:
        with tempfile.TemporaryDirectory() as place:
            found = pack_again(file, Path(place), renamer(pairs), options)
        print(
            f"{file}: {'the same numbers' if not found else f'{len(found)} differences'}",
            flush=True,
        )
        print("".join(f"  {line}\n" for line in found[:20]), end="", flush=True)
        broken += bool(found)
    return broken


def renamer(pairs: list[tuple[str, str]]) -> Callable[[str], str]:
    """Return a function that replaces whole ids in a text, all at once, so that two ids can be
    swapped.
    """
    new = dict(pairs)
    ids = re.compile(
        "|".join(
            rf"(?<![\w-]){re.escape(old)}(?![A-Za-z0-9])"
            for old in sorted(new, key=len, reverse=True)
        )
    )
    return (lambda text: ids.sub(lambda one: new[one[0]], text)) if new else str


def pack_again(
    file: Path, place: Path, renamed: Callable[[str], str], options: argparse.Namespace
) -> list[str]:
    """Replay one recording below ``place`` and rewrite it. Returns the differences from the
    recorded run.
    """
    old = dict(read_members(file))
    label = msgspec.json.decode(old.pop(LABEL), type=RecordingLabel)
    answers = {
        renamed(name): content for name, content in old.items() if name.startswith("models/")
    }
    records = {name: text.decode() for name, text in old.items() if name.endswith(".json")}
    before = {renamed(name): json.loads(renamed(text)) for name, text in records.items()}
    said = {name: getattr(label, name) for name in ("engine", "precision", "recorded", "complete")}
    said["command"] = renamed(label.command)
    taken = place / "taken"
    for name, content in answers.items():
        (taken / name).parent.mkdir(parents=True, exist_ok=True)
        (taken / name).write_bytes(content)
    if SEASON in old:
        return _season(file, taken, old, before, said, label, options)
    manifest = before["manifest.json"]
    for path, value in (pair.split("=", 1) for pair in options.set):
        *way, last = path.split(".")
        inner = manifest["spec"]
        for name in way:
            inner = inner.get(name, {})
        if last in inner:
            inner[last] = json.loads(value)
    if any(not _is_here(name) for name in manifest.get("datasets", ())):
        print(f"{file}: its data set is not stored here, so it is not played", flush=True)
        made, python = _unplayed(manifest)
        now = {renamed(name): renamed(text).encode() for name, text in records.items()} | {
            "manifest.json": made
        }
    else:
        with rekeyed() if options.rekey else nullcontext({}) as tapes:
            now, python = _played(manifest, taken, place / "again", here=options.here)
        answers |= {f"models/{episode}.jsonl": content() for episode, content in tapes.items()}
    found = [
        line
        for name in before
        if name != "manifest.json" and (name == "scores.json" or not options.scores)
        if name != "scores.json" or not options.rescore
        for line in unlike_recorded(
            _comparable(json.loads(now[name])), _comparable(before[name]), name
        )
    ]
    if not options.check and not found:
        write_recording(
            file, {**now, **answers}, python=python, benchmarks=_benchmarks(now), **said
        )
    return found


@contextmanager
def rekeyed() -> Iterator[dict[str, Callable[[], bytes]]]:
    """Let a replay find answers by their place. Yields the recordings under the keys of the new
    questions.
    """
    lines: dict[str, dict[str, AnswerLine]] = {}
    tapes: dict[str, Callable[[], bytes]] = {}

    async def ask(self: ReplayingModel, request: AskModel, place: QuestionPlace) -> ModelReply:
        question = recorded_question(self.name, self._params, request, place)
        known = self._store.find(place.episode, key_of(question))
        if known is None:
            there = [
                one
                for one in self._store.recorded(place.episode)
                if one.asked.place == question.place
            ]
            if not there:
                raise self._mismatch(question, request, place)
            known = there[0].reply
        mine = lines.setdefault(place.episode, {})
        mine[key_of(question)] = AnswerLine(key=key_of(question), asked=question, reply=known)
        head = HeadLine(format=FORMAT, texts=False)
        tapes[place.episode] = lambda: b"".join(
            ENCODER.encode(one) + b"\n" for one in (head, *mine.values())
        )
        return known

    with patch.object(ReplayingModel, "ask", ask):
        yield tapes


def _played(
    manifest: dict[str, Any], taken: Path, folder: Path, *, here: bool
) -> tuple[dict[str, bytes], str]:
    """Replay the run of a manifest from the answers in ``taken``. Returns its files as in a
    recording.
    """
    trading = manifest["kind"] == "trading"
    kind = RunSpec if trading else find_protocol(manifest["benchmark"]).Spec
    spec = msgspec.convert(manifest["spec"], kind, strict=False)
    run(spec, folder, asking=Asking(replay=True, recordings=taken), progress="none", workers=2)
    made = RunFolder(folder)
    again = read_manifest(made.manifest)
    # The machine and the packages are those with which the answers were recorded.
    versions = (
        again.versions if here else msgspec.convert(manifest["versions"], type(again.versions))
    )
    again = msgspec.structs.replace(again, versions=versions)
    found = {
        "manifest.json": encode_manifest(again),
        "scores.json": _live(made.scores.read_bytes()),
    }
    for episode in again.episodes:
        found[f"episodes/{episode.key}/outcome.json"] = _live(
            made.outcome(episode.key).read_bytes()
        )
    return found, versions.python


def _unplayed(manifest: dict[str, Any]) -> tuple[bytes, str]:
    """Return the manifest of a run that cannot be replayed here, with the parts derived from its
    spec recomputed.
    """
    spec = msgspec.convert(manifest["spec"], RunSpec)
    made = build_manifest(spec, (), {}, msgspec.convert(manifest["versions"], Versions))
    told = {name: manifest[name] for name in ("datasets", "windows", "models")}
    told |= msgspec.to_builtins({"protocols": {}, "episodes": expand(spec)})
    again = msgspec.convert({**msgspec.to_builtins(made), **told}, RunManifest)
    ways = {
        one.setting: with_protocol(benchmarks.get(one.benchmark), one.protocol)
        for one in again.episodes
    }
    again = msgspec.structs.replace(
        again,
        agents={one.agent.name: agent_record(one.agent.name) for one in again.episodes},
        protocols={
            one.setting: describe_protocol(ways[one.setting])
            for one in again.episodes
            if one.by_model
        },
    )
    return encode_manifest(again), again.versions.python


def _is_here(dataset: str) -> bool:
    try:
        load_dataset(dataset)
    except TradeassayError:
        return False
    return True


def _live(content: bytes) -> bytes:
    """Return a replay's record in the form of the original run, whose answers came from a model."""
    return content.replace(b'"answers":"replayed"', b'"answers":"live"').replace(
        b'"answers": "replayed"', b'"answers": "live"'
    )


def _benchmarks(files: dict[str, bytes]) -> tuple[str, ...]:
    manifest = json.loads(files["manifest.json"])
    return (
        tuple(manifest["benchmarks"]) if manifest["kind"] == "trading" else (manifest["benchmark"],)
    )


def _season(
    file: Path,
    taken: Path,
    old: dict[str, bytes],
    before: dict[str, Any],
    said: dict[str, Any],
    label: RecordingLabel,
    options: argparse.Namespace,
) -> list[str]:
    (taken / SEASON).write_text(json.dumps(before[SEASON]))
    (taken / DECISIONS).write_bytes(old[DECISIONS])
    opened = OpenRecording(folder=taken, label=msgspec.structs.replace(label, files={SEASON: ""}))
    db = taken / "arena.db"
    store = Store(open_engine(str(db), durable=False))
    try:
        how = PlayOptions(opener=replaying(opened))
        asyncio.run(play(recorded_season(opened), store, None, how=how))
    finally:
        store.engine.dispose()
    packed = taken / file.name
    pack_season(db, packed, engine=label.engine, precision=label.precision)
    now = {name: content for name, content in read_members(packed) if name != LABEL}
    found = list(unlike_recorded(_lines(now[DECISIONS]), _lines(old[DECISIONS]), DECISIONS))
    if not options.rescore:
        found += unlike_recorded(json.loads(now[STANDINGS]), before[STANDINGS], STANDINGS)
    tapes = [name for name in old if name.startswith("models/")]
    found += [f"{name} holds other answers" for name in tapes if old[name] != now.get(name)]
    if not options.check and not found:
        python = python_version() if options.here else label.python
        write_recording(file, now, benchmarks=label.benchmarks, python=python, **said)
    return found


def _lines(content: bytes) -> list[Any]:
    return [json.loads(line) for line in content.splitlines()]


def _comparable(value: Any) -> Any:
    """Return a record without hashes of other files, and without parts that a change of form adds
    or drops.
    """
    if isinstance(value, dict):
        return {key: _comparable(one) for key, one in value.items() if key not in (*HASHES, *WORDS)}
    return [_comparable(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(main())
