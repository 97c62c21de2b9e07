"""Recordings: what a model answered in a run, packed into one file that can be passed on and replayed.

A recording holds the run's manifest, its scores, how every episode ended, and its cassettes without the texts that
the model was asked: replies and hashes, nothing of anybody else's. ``recording.json`` says whose answers they are
and what every other file hashes to::

    recording.json            model, engine, precision, date, hashes
    manifest.json             the run's
    scores.json               the run's
    episodes/<key>/outcome.json
    models/<key>.jsonl        answers by the hash of their question

``recorded/NAME`` means the recordings in the folder that ``TRADEASSAY_RECORDINGS`` names, else those of the
installed package ``tradeassay-recordings``, else those of the checkout: a folder per model, a file per run."""

from __future__ import annotations

import io
import lzma
import os
import re
import shlex
import shutil
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.agents.own_file import NAME as OWN_FILE
from tradeassay.benchmarks import benchmarks
from tradeassay.benchmarks.code_protocol import CodeSpec
from tradeassay.core.closeness import close
from tradeassay.core.errors import UNDECODABLE, RunError, UserError
from tradeassay.core.files import data_home, write_atomic
from tradeassay.core.hashing import sha256_bytes, sha256_file, sha256_of
from tradeassay.core.registry import did_you_mean, newest
from tradeassay.core.secrets import looks_like_key, without_secrets
from tradeassay.core.time import SECOND, iso
from tradeassay.llm.budget import LEAST_SHARE, estimate_reply
from tradeassay.llm.cassette import (
    RecordedQuestion,
    cassette_faults,
    content_id,
    parse_cassette,
    read_cassette,
    without_texts,
)
from tradeassay.play.dialogue_log import read_dialogue, whole_messages
from tradeassay.runs.play.programs import recorded_code_spec, reopen
from tradeassay.runs.play.resume import run
from tradeassay.runs.spec.episode import Asking, describe_protocol, expand, with_protocol
from tradeassay.runs.spec.run_spec import RunSpec
from tradeassay.runs.store.folder import RunFolder
from tradeassay.runs.store.manifest import Manifest, RunManifest, encode_manifest, read_manifest
from tradeassay.runs.store.outcome import read_outcome
from tradeassay.runs.store.run import CodeRun, Run

RECORDING_FORMAT = 1
PREFIX = "recorded/"
SUFFIX = ".tar.xz"
AUDIT = ".audit"
"""The end of a file with a model's answers about its memory: a recording without a run."""
PACKAGE = "tradeassay_recordings"
FOLDER = "TRADEASSAY_RECORDINGS"
MOST_BYTES = 2**30
"""What a recording may unpack to."""
MOST_AT_ONCE = 2**26
"""What one file in it may have, and one header of the archive."""
MOST_FILES = 50_000
"""How many files it may have."""
SEASON = "season.json"
"""The file that a recorded season of the arena has instead of a manifest."""
_LABEL = "recording.json"


class RecordingLabel(msgspec.Struct, frozen=True, kw_only=True):
    """Whose answers a recording holds. ``files`` are the hashes of everything else in it.

    ``engine`` and ``precision`` are what whoever recorded it states; ``recorded`` is the day of the last answer.
    """

    format: int = RECORDING_FORMAT
    benchmarks: tuple[str, ...]
    models: tuple[str, ...]
    engine: str
    precision: str
    recorded: str
    python: str
    answers: int
    input_tokens: int
    output_tokens: int
    complete: bool
    command: str
    files: dict[str, str]


class RecordingInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One recording that can be named: by ``name``, which is what follows ``recorded/``."""

    name: str
    path: str
    megabytes: float
    label: RecordingLabel


class OpenRecording(msgspec.Struct, frozen=True, kw_only=True):
    """An unpacked recording: a folder that can be taken over as another run's cassettes."""

    folder: Path
    label: RecordingLabel

    @property
    def manifest(self) -> Manifest:
        """The run's manifest; raises :class:`RunError` where a season of the arena was recorded."""
        manifest = read_manifest(self.folder / "manifest.json")
        if not all(_PLAIN.fullmatch(one.key) and "/" not in one.key for one in manifest.episodes):
            raise RunError("the recording has an episode that no folder can be called after", hint="do not use it")
        return manifest

    @property
    def is_season(self) -> bool:
        return SEASON in self.label.files


def recorded_spec(folder: Path) -> RunSpec | CodeSpec:
    """Return what was run, from the manifest in a folder.

    Raises :class:`UserError` for an unknown benchmark, :class:`RunError` for one with a program of somebody's own.
    """
    manifest = read_manifest(folder / "manifest.json")
    if not isinstance(manifest, RunManifest):
        return recorded_code_spec(manifest)
    refuse_own_programs(manifest.spec)
    return manifest.spec


def refuse_own_programs(spec: RunSpec) -> None:
    """Raise :class:`RunError` for a spec in which a program from a file plays."""
    # A recording holds answers, and must never decide which file is executed where it arrives.
    if any(agent.name == OWN_FILE for agent in spec.agents):
        raise RunError(
            "a program from somebody's own file plays in it, which is not run here",
            hint="record the models by themselves",
        )


def pack_recording(folder: Path, file: Path, *, engine: str, precision: str, command: str = "") -> RecordingLabel:
    """Pack a run's answers into ``file``; the same run gives the same bytes.

    ``command`` records it again. Raises :class:`RunError` when the run is not there or no model played in it."""
    manifest = read_manifest(folder / "manifest.json")
    if isinstance(manifest, RunManifest):
        refuse_own_programs(manifest.spec)
    place = RunFolder(folder)
    found = {"manifest.json": place.manifest.read_bytes()}
    if place.scores.is_file():
        found["scores.json"] = place.scores.read_bytes()
    moment = 0.0
    for episode in manifest.episodes:
        if (outcome := place.outcome(episode.key)).is_file():
            found[outcome.relative_to(folder).as_posix()] = outcome.read_bytes()
        cassette = place.models / f"{episode.key}.jsonl"
        if not cassette.is_file():
            continue
        moment = max(moment, cassette.stat().st_mtime)
        # A cassette may hold what the episode asked before it was played anew: of these, only its own questions,
        # by step and messages (programs' cassettes number the questions of an episode, dialogues those of a step).
        lines = list(read_dialogue(place.dialogue(episode.key)))
        ids = [tuple(map(content_id, messages)) for messages in whole_messages(lines)]
        left = Counter((line.step, one) for line, one in zip(lines, ids, strict=True))

        def asked(question: RecordedQuestion, left: Counter[Any] = left) -> bool:
            left[question.step, question.messages] -= 1
            return left[question.step, question.messages] >= 0

        found[f"models/{episode.key}.jsonl"] = without_texts(cassette, asked if lines else lambda question: True)
    return write_recording(
        file,
        found,
        benchmarks=benchmarks_of(manifest),
        engine=engine,
        precision=precision,
        command=command,
        recorded=day_of(moment),
        python=manifest.versions.python,
        complete="scores.json" in found,
    )


def write_recording(file: Path, found: dict[str, bytes], **said: Any) -> RecordingLabel:
    """Write a recording of the given files; ``said`` is what its label says beside what is counted here.

    Raises :class:`RunError` when no model answered."""
    found = {name: without_secrets(content) for name, content in found.items()}
    counted = count_answers(found)
    if not counted["models"]:
        raise RunError(f"{file.name} would hold no recorded answers", hint="name a run that models played")
    files = {name: sha256_bytes(content) for name, content in sorted(found.items())}
    label = msgspec.convert({**said, **counted, "files": files}, RecordingLabel)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_packed(file, {_LABEL: without_secrets(_label_text(label))} | found)
    return label


def _label_text(label: RecordingLabel) -> bytes:
    return msgspec.json.format(msgspec.json.encode(label), indent=1) + b"\n"


def count_answers(found: Mapping[str, bytes]) -> dict[str, Any]:
    """Return what a label says of the answers in a recording's files: whose, how many, how many tokens."""
    lines = [
        line
        for name, content in found.items()
        if name.startswith("models/")
        for line in parse_cassette(Path(name), content).answers
    ]
    return {
        "models": tuple(sorted({line.asked.model for line in lines})),
        "answers": len(lines),
        "input_tokens": sum(line.reply.usage.input_tokens for line in lines),
        "output_tokens": sum(line.reply.usage.output_tokens for line in lines),
    }


def write_packed(file: Path, content: dict[str, bytes]) -> None:
    """Write an archive whose bytes depend on its content alone."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(content.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    write_atomic(file, lzma.compress(packed.getvalue(), preset=9))


def benchmarks_of(manifest: Manifest) -> tuple[str, ...]:
    # In the order of the manifest's records, sorted by name, which labels have; a spec's order is its author's.
    return tuple(manifest.benchmarks) if isinstance(manifest, RunManifest) else (manifest.benchmark,)


def list_recordings(suffix: str = SUFFIX) -> list[RecordingInfo]:
    """Return the recordings that can be named, sorted; with the suffix of audits, those about memory."""
    if configured := os.environ.get(FOLDER):
        roots = [Path(configured)]
    elif package := find_spec(PACKAGE):
        roots = [Path(one) for one in package.submodule_search_locations or ()]
    else:
        roots = [Path(__file__).parents[4] / "recordings" / "src" / PACKAGE]
    found = []
    for path in (one for root in roots for one in sorted(root.glob(f"*/*{suffix}"))):
        name, size = f"{path.parent.name}/{path.name.removesuffix(suffix)}", path.stat().st_size / 1e6
        found.append(RecordingInfo(name=name, path=str(path), megabytes=size, label=read_label(path)))
    return found


def find_recording(name: str, *benchmarks: str) -> Path:
    """Return the file of ``recorded/MODEL``, ``recorded/MODEL/RUN`` or of a path to one.

    With ``benchmarks`` it must be of one of them, which chooses among a model's recordings. Raises
    :class:`UserError` with near names."""
    if Path(name).is_file():
        chosen = [(name, Path(name), read_label(Path(name)))]
    else:
        wanted = name.removeprefix(PREFIX)
        known = list_recordings()
        found = [one for one in known if wanted in (one.name, one.name.partition("/")[0])]
        if not found:
            names = dict.fromkeys(part for one in known for part in (one.name.partition("/")[0], one.name))
            near = did_you_mean(wanted, list(names), "see tradeassay recordings list")
            raise UserError(f"there is no recording '{name}'", hint=near if known else GET_RECORDINGS)
        chosen = [(one.name, Path(one.path), one.label) for one in found]
    if benchmarks:
        ids = sorted({id for _, _, label in chosen for id in label.benchmarks})
        wanted_ids = {newest(one, ids) for one in benchmarks}
        has = ", ".join(ids)
        chosen = [one for one in chosen if set(one[2].benchmarks) & wanted_ids]
        if not chosen:
            raise UserError(f"nothing of '{name}' was recorded with '{benchmarks[-1]}'", hint=f"it has {has}")
    if len(chosen) > 1:
        several = ", ".join(PREFIX + one for one, _, _ in chosen)
        raise UserError(f"'{name}' means several recordings", hint=f"name one of {several}")
    return chosen[0][1]


def find_audit(name: str, dataset: str) -> Path:
    """Return the folder of the answers in ``recorded/MODEL`` to questions about a data set; it needs no network.

    Raises :class:`UserError` where that model was not asked about it."""
    known = {
        one.name.partition("/recall-")[2]: Path(one.path)
        for one in list_recordings(AUDIT)
        if one.name.startswith(f"{name.removeprefix(PREFIX)}/")
    }
    if dataset not in known:
        near = f"it was asked about {', '.join(sorted(known))}" if known else "see tradeassay recordings list"
        raise UserError(f"'{name}' was not asked what it remembers of {dataset}", hint=near)
    return open_recording(known[dataset]).folder / "models"


GET_RECORDINGS = f"in a checkout: pip install ./recordings; or name a folder of recordings in {FOLDER}"
"""What to do where there are none: the package is on no index."""


def open_recording(file: Path, home: Path | None = None) -> OpenRecording:
    """Unpack a recording into the user's folder and check it; one that is there and whole is taken as it is.

    Raises :class:`RunError` when it is damaged or is not what its label says."""
    folder = data_home(home) / "recordings" / sha256_file(file)[:16]
    if _damage(folder) is not None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            fresh, content = Path(temporary) / "fresh", dict(read_members(file))
            _label(content.get(_LABEL), file)  # one that is refused leaves nothing behind
            for name, data in content.items():
                target = fresh / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
    damage = _damage(folder)
    if damage is not None:
        shutil.rmtree(folder, ignore_errors=True)
        raise RunError(f"{damage} in {file.name} is not what its label says", hint="get the recording again")
    return OpenRecording(folder=folder, label=_label((folder / _LABEL).read_bytes(), file))


def _damage(folder: Path) -> str | None:
    """Return the first file of an unpacked recording that is not what its label says, or None."""
    if not (folder / _LABEL).is_file():
        return _LABEL
    label = _label((folder / _LABEL).read_bytes(), folder)
    for name, digest in label.files.items():
        if not (folder / name).is_file() or sha256_file(folder / name) != digest:
            return name
    return None


def read_label(file: Path) -> RecordingLabel:
    """Return a recording's label; raises :class:`RunError` for a file that is none."""
    return _label(next((content for name, content in read_members(file) if name == _LABEL), None), file)


def read_members(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive; raises :class:`RunError` for anything but plain files below it, each once."""
    seen: set[str] = set()
    left = MOST_BYTES
    try:
        with _Bounded(file) as packed, tarfile.open(fileobj=packed, mode="r:") as archive:
            for entry in archive:
                left -= entry.size
                source = archive.extractfile(entry) if entry.isfile() else None
                if source is None or not _PLAIN.fullmatch(entry.name) or entry.name in seen:
                    what = f"{file} holds {entry.name[:80]!a}, which is not a plain file"
                    raise RunError(what, hint="do not use it")
                if left < 0 or len(seen) == MOST_FILES:
                    raise RunError(f"{file} unpacks to too much", hint="do not use it")
                seen.add(entry.name)
                yield entry.name, source.read()
    except (tarfile.TarError, lzma.LZMAError, EOFError, *UNDECODABLE) as error:
        raise RunError(f"{file} is not a recording: {error}", hint="get it again") from error


_PLAIN = re.compile(r"(?!.*\.\.)[\w+=,@-][\w+=.,@-]{0,239}(/[\w+=,@-][\w+=.,@-]{0,239}){0,3}")
"""The name of a file below a folder, in the one way of writing it."""


class _Bounded(lzma.LZMAFile):
    """An archive's bytes, of which nobody gets more than there should be: a header can claim any size too."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self._left = 2 * MOST_BYTES

    def read(self, size: int | None = -1) -> bytes:
        size = -1 if size is None else size
        self._left -= max(0, size)
        if not 0 <= size <= MOST_AT_ONCE or self._left < 0:
            raise RunError("the archive has a part of more than 64 MB", hint="do not use it")
        return super().read(size)


def _label(content: bytes | None, file: Path) -> RecordingLabel:
    if content is None:
        raise RunError(f"{file} is not a recording", hint="pack one with tradeassay recordings record")
    try:
        label = msgspec.json.decode(content, type=RecordingLabel)
    except UNDECODABLE as error:
        raise RunError(f"the label of {file} cannot be read: {error}", hint="get the recording again") from None
    if label.format != RECORDING_FORMAT:
        raise RunError(f"{file} has format {label.format}", hint="use the version that wrote it")
    if not all(map(_PLAIN.fullmatch, label.files)):
        raise RunError(f"the label of {file} names a file that cannot be in it", hint="do not use it")
    return label


_OURS = re.compile(
    # No file elsewhere, no program of somebody's, no server that would be sent a key.
    r"(?!.*( [/~]|\.\./|\.py:|://(?!(localhost|127\.0\.0\.1)[:/])))"
    r"((tradeassay (recordings record|code run|arena run)|tar xf [\w.-]+ season\.json)[\w ./=,:@+'\"-]*( && |$))*"
)
_SAID_ELSEWHERE = frozenset(("--engine", "--precision", "--runs", "--concurrency", "--secret"))


def is_our_command(command: str) -> bool:
    """Return whether a command that claims to record again calls tradeassay alone: somebody may paste it."""
    return _OURS.fullmatch(command) is not None


def command_of(words: list[str]) -> str:
    """Return what a label says for a command that was given: without the folders of whoever gave it, and without
    what the label or the manifest says itself in words that a shell would read otherwise."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word.partition("=")[0] not in _SAID_ELSEWHERE:
            kept.append(Path(word).name if re.search(r"^[/~]|(^|/)\.\.(/|$)", word) else word)
        skip = word in _SAID_ELSEWHERE
    return shlex.join(["tradeassay", *kept])


def day_of(moment: float) -> str:
    return iso(int(moment * SECOND))[:10]


_HASHES = frozenset(["work_sha256", "events_sha256", "outcomes", "answers"])
"""Fields of scores and outcomes that say whether a model was live or replayed, or hash files which do."""


def replay_recording(
    opened: OpenRecording, folder: Path, *, workers: int | None = None, tasks: tuple[str, ...] = ()
) -> Run | CodeRun:
    """Play a recording's run again from its answers alone, or only some of its tasks; raises what a run raises."""
    asking = Asking(replay=True, cassettes=opened.folder)
    spec: Any = recorded_spec(opened.folder)
    spec = msgspec.structs.replace(spec, tasks=tasks) if tasks else spec
    done: Run | CodeRun = run(spec, folder, asking=asking, workers=workers)
    return done


def score_differences(opened: OpenRecording, replayed: Path, *, tasks: tuple[str, ...] = ()) -> list[str]:
    """Return where a replay's scores or outcomes differ from the recorded ones, numbers by more than 1e-9 of their
    size; of a replay of some tasks, only their outcomes."""
    found: list[str] = []
    for name in sorted(opened.label.files):
        of_some = any(f"__{task}__" in name for task in tasks)
        if (name == "scores.json" and not tasks) or (name.endswith("/outcome.json") and (of_some or not tasks)):
            before, after = (msgspec.json.decode((one / name).read_bytes()) for one in (opened.folder, replayed))
            found += unlike_recorded(after, before, "" if name == "scores.json" else name)
    return found


def manifest_differences(opened: OpenRecording, replayed: Path) -> list[str]:
    """Return where the manifest of a replay of the same spec says something else.

    Versions may differ, and so may how and when a data set was obtained: its hash says what it holds. A manifest
    written before runs of programs named their models claims nothing of them."""
    manifests: list[dict[str, Any]] = []
    for folder in (opened.folder, replayed):
        manifest = msgspec.json.decode((folder / "manifest.json").read_bytes())
        for record in manifest.get("datasets", {}).values():
            for name in ("query", "retrieved_at"):
                record["facts"].pop(name, None)
        manifests.append(manifest | {"versions": {}})
    if "models" not in manifests[0]:
        manifests[1].pop("models", None)
    return list(unlike_recorded(manifests[1], manifests[0], "manifest.json"))


def unlike_recorded(found: object, wanted: object, place: str) -> Iterator[str]:
    """Yield where what was played again differs from what was recorded.

    Not :func:`tradeassay.runs.verify.replay.differences`, which is exact: recordings are played again on other
    machines, whose last digits may differ, and with them the hashes over such numbers. And a recording comes from
    somebody else, so that a name it lacks is told apart from one that is null."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*found, *wanted}):
            if (key in found) != (key in wanted):
                yield f"{place}/{key} is {'new' if key in found else 'missing'}"
                continue
            hashes = wanted[key].values() if isinstance(wanted[key], dict) else [wanted[key]]
            hashed = all(
                isinstance(one, str) and re.fullmatch(r"[0-9a-f]{64}|live|replayed", one) for one in hashes
            )
            if key not in _HASHES or not hashed:
                yield from unlike_recorded(found[key], wanted[key], f"{place}/{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(found) == len(wanted):
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            yield from unlike_recorded(one, other, f"{place}/{number}")
    elif isinstance(wanted, float) and isinstance(found, float):
        if not close(found, wanted):
            yield f"{place} is {found!r}, recorded was {wanted!r}"
    elif found != wanted:
        yield f"{place} is {str(found)[:80]!r}, recorded was {str(wanted)[:80]!r}"


def recording_faults(opened: OpenRecording) -> list[str]:
    """Return what is wrong with a recording in itself, before anything is played again.

    Answers under keys that are not their question's, texts of questions, files that tradeassay did not write, a
    label that says something else than is in the files, and whatever is formed like a provider's key."""
    label, folder = opened.label, opened.folder
    paths = [path for path in folder.rglob("*") if path.is_file()]
    content = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    found = [
        f"{name} holds what looks like a key" for name, text in sorted(content.items()) if looks_like_key(text)
    ]
    if content.pop(_LABEL) != _label_text(label):
        found.append(f"{_LABEL} is not written as tradeassay writes it")
    found += [f"{name} is in it and not in its label" for name in sorted(content.keys() - label.files.keys())]
    tapes = sorted(name for name in content if name.startswith("models/"))
    counted, parts = count_answers(content), {SEASON, "prompts.json", "decisions.jsonl", "standings.json", *tapes}
    if opened.is_season:
        # A season says how often it asked for each of its decisions.
        asked = sum(int(calls) for calls in re.findall(rb'"calls":(\d+)', content.get("decisions.jsonl", b"")))
        if counted["answers"] > asked:
            found.append(f"it holds {counted['answers']} answers, and its season asked {asked} questions")
    else:
        manifest, place = opened.manifest, RunFolder(folder)
        keys = [episode.key for episode in manifest.episodes]
        parts = {f"models/{key}.jsonl" for key in keys} | {"manifest.json", "scores.json"}
        parts |= {place.outcome(key).relative_to(folder).as_posix() for key in keys}
        counted |= {"benchmarks": benchmarks_of(manifest), "complete": "scores.json" in content}
        counted |= {"python": manifest.versions.python}
        found += _manifest_faults(opened, content)
    found += [f"{name} is not part of a recording" for name in sorted(label.files.keys() - parts)]
    for name in tapes:
        path = folder / name
        found += [f"{path.name}: {fault}" for fault in (*cassette_faults(path), *_unlikely(path))]
    if not is_our_command(label.command):
        found.append("what its label names as the command that records it again is not one of tradeassay alone")
    said = {name: getattr(label, name) for name in counted}
    wrong = [name for name in said if said[name] != counted[name]]
    return found + [f"its label says {said[name]} for {name}, its files {counted[name]}" for name in wrong]


def _manifest_faults(opened: OpenRecording, content: Mapping[str, bytes]) -> Iterator[str]:
    """Yield what does not fit the manifest: episodes of another spec, answers that were not asked for."""
    manifest, place = opened.manifest, RunFolder(opened.folder)
    listed = [one.key for one in manifest.episodes]
    if isinstance(manifest, RunManifest):
        # Asked before the spec is expanded, which a spec of endless seeds would not end.
        few = len(manifest.spec.seeds) <= len(listed)
        meant = [one.key for one in expand(manifest.spec)] if few else []
    else:
        few = len(recorded_code_spec(manifest).seeds) <= len(listed)
        meant = [one.key for one in reopen(manifest).episodes()] if few else []
    if meant != listed:
        yield "the episodes of its manifest are not those of its spec"
    ours, theirs = (msgspec.json.decode(one) for one in (encode_manifest(manifest), content["manifest.json"]))
    # What is lost in reading is nothing of ours: somebody else put it there.
    yield from (line for line in unlike_recorded(ours, theirs, "manifest.json") if line.endswith(" is missing"))
    for key in listed if opened.label.complete else ():
        outcome, name = read_outcome(place.outcome(key)), f"models/{key}.jsonl"
        asked = outcome.spending.calls if outcome is not None and outcome.spending is not None else 0
        answers = len(parse_cassette(Path(name), content.get(name, b"")).answers)
        if answers != asked:
            yield f"{name} holds {answers} answers, and its run asked {asked} questions"


_FOREIGN = ("http/", "pipe/", "python/")
_MOST_TOKENS = 10**9


def _unlikely(path: Path) -> Iterator[str]:
    """Yield what a cassette holds that a recording does not."""
    contents = read_cassette(path)
    if contents.texts or contents.messages or contents.tools:
        yield "it holds texts that the model was asked"
    wrong = 0
    for line in contents.answers:
        usage, own = line.reply.usage, line.asked.model.startswith(_FOREIGN)
        counts = (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_tokens)
        possible = all(0 <= one <= _MOST_TOKENS for one in (*counts, usage.usd or 0.0))
        # A provider's count of too few tokens is replaced when it comes; somebody's own program may count nothing.
        enough = own or usage.output_tokens >= LEAST_SHARE * estimate_reply(line.reply)
        wrong += not possible or not enough or usage.cached_tokens > usage.input_tokens
    if wrong:
        yield f"{wrong} answers have tokens or dollars that cannot be true"


def changed_facts(opened: OpenRecording) -> list[str]:
    """Return what a recording was made with that is another thing here: prompts, rules, settings, tasks.

    Data sets that are not stored here are left out: a replay says so itself."""
    manifest = opened.manifest
    if isinstance(manifest, RunManifest):
        now = {
            f"the prompt {name}": digest
            for episode in manifest.episodes
            if episode.cell in manifest.protocols
            for name, digest in describe_protocol(
                with_protocol(benchmarks.get(episode.benchmark), episode.protocol)
            ).prompts.items()
        }
        now |= {f"benchmark '{name}'": sha256_of(benchmarks.get(name)) for name in manifest.benchmarks}
    else:
        now = dict(reopen(manifest).facts())
    then = manifest.facts
    return sorted(name for name in now if name in then and then[name] != now[name])
