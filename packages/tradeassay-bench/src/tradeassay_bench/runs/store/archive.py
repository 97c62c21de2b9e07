"""Pack a model's answers in a run into one file that can be shared and replayed: a recording.

A recording contains the run's manifest, its scores, the outcome of every episode, and the models'
answers. The questions are stored as hashes only, so that a recording contains no third-party text.
``recording.json`` states the model and the hash of every other file:

::

    recording.json            model, engine, precision, date, hashes
    manifest.json             the run's
    scores.json               the run's
    episodes/<key>/outcome.json
    models/<key>.jsonl        answers by the hash of their question

``recorded/NAME`` is a recording in the folder that the environment variable
``TRADEASSAY_RECORDINGS`` names, else in the installed package ``tradeassay-recordings``, else in
the checkout. Such a folder has a subfolder per model with a file per run.
"""

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
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.files import data_home, write_atomic
from tradeassay.core.hashing import sha256_bytes, sha256_file, sha256_of
from tradeassay.core.registry import did_you_mean, newest
from tradeassay.core.secrets import looks_like_key, without_secrets
from tradeassay_bench.agents.own_file import NAME as OWN_FILE
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.benchmarks.code_protocol import CodeSpec
from tradeassay_bench.core.closeness import close
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.time import SECOND, iso
from tradeassay_bench.llm.budget import LEAST_SHARE, estimate_reply
from tradeassay_bench.llm.recording import (
    RecordedQuestion,
    answer_faults,
    content_id,
    parse_recording,
    read_recording,
    without_texts,
)
from tradeassay_bench.play.dialogue_log import read_dialogue, whole_messages
from tradeassay_bench.runs.play.programs import recorded_code_spec, reopen
from tradeassay_bench.runs.play.resume import run
from tradeassay_bench.runs.spec.episode import Asking, describe_protocol, expand, with_protocol
from tradeassay_bench.runs.spec.run_spec import RunSpec
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import (
    Manifest,
    RunManifest,
    encode_manifest,
    read_manifest,
)
from tradeassay_bench.runs.store.outcome import read_outcome
from tradeassay_bench.runs.store.run import CodeRun, Run

RECORDING_FORMAT = 1
PREFIX = "recorded/"
SUFFIX = ".tar.xz"
AUDIT = ".audit"
"""The suffix of a file with a model's answers about its memory: a recording without a run."""
PACKAGE = "tradeassay_recordings"
FOLDER = "TRADEASSAY_RECORDINGS"
MOST_BYTES = 2**30
"""The maximum size of an unpacked recording, in bytes."""
MOST_AT_ONCE = 2**26
"""The maximum size of a single read from the archive, in bytes."""
MOST_FILES = 50_000
"""The maximum number of files in a recording."""
SEASON = "season.json"
"""The file that replaces the manifest in a recorded season of the arena."""
_LABEL = "recording.json"


class RecordingLabel(msgspec.Struct, frozen=True, kw_only=True):
    """The label of a recording.

    ``files`` contains the hashes of all other files in the recording, by name. ``engine`` and
    ``precision`` are stated by the person who made the recording. ``recorded`` is the day of the
    last answer. ``complete`` is true if the recording contains scores. ``command`` is the command
    that makes the recording again.
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
    """A named recording. ``name`` is the part after ``recorded/``."""

    name: str
    path: str
    megabytes: float
    label: RecordingLabel


class OpenRecording(msgspec.Struct, frozen=True, kw_only=True):
    """An unpacked recording: a folder whose answers another run can use."""

    folder: Path
    label: RecordingLabel

    @property
    def manifest(self) -> Manifest:
        """Return the run's manifest.

        Raises :class:`RunError` for a recorded season of the arena.
        """
        manifest = read_manifest(self.folder / "manifest.json")
        keys = [episode.key for episode in manifest.episodes]
        if not all(_PLAIN.fullmatch(key) and "/" not in key for key in keys):
            raise RunError(
                "the recording has an episode whose key is not a valid folder name",
                hint="do not use it",
            )
        return manifest

    @property
    def is_season(self) -> bool:
        """Return whether the recording contains a season of the arena."""
        return SEASON in self.label.files


def recorded_spec(folder: Path) -> RunSpec | CodeSpec:
    """Return the spec of the run in a folder.

    Raises :class:`UserError` for an unknown benchmark, and :class:`RunError` if an agent is a
    program from a file.
    """
    manifest = read_manifest(folder / "manifest.json")
    if not isinstance(manifest, RunManifest):
        return recorded_code_spec(manifest)
    refuse_own_programs(manifest.spec)
    return manifest.spec


def refuse_own_programs(spec: RunSpec) -> None:
    """Check that no agent of a spec is a program from a file.

    Raises :class:`RunError` otherwise.
    """
    # A recording contains answers. It must never determine which file is executed on a different
    # machine.
    if any(agent.name == OWN_FILE for agent in spec.agents):
        raise RunError(
            "the run contains a program from a user's own file, which is not executed here",
            hint="record the models without that program",
        )


def pack_recording(
    folder: Path, file: Path, *, engine: str, precision: str, command: str = ""
) -> RecordingLabel:
    """Pack a run's answers into ``file`` and return the label. The same run gives the same bytes.

    ``command`` is the command that makes the recording again. Raises :class:`RunError` if the
    folder does not contain a run, or if the run has no answers of models.
    """
    manifest = read_manifest(folder / "manifest.json")
    if isinstance(manifest, RunManifest):
        refuse_own_programs(manifest.spec)
    place = RunFolder(folder)
    content = {"manifest.json": place.manifest.read_bytes()}
    if place.scores.is_file():
        content["scores.json"] = place.scores.read_bytes()
    moment = 0.0
    for episode in manifest.episodes:
        if (outcome := place.outcome(episode.key)).is_file():
            content[outcome.relative_to(folder).as_posix()] = outcome.read_bytes()
        answers = place.models / f"{episode.key}.jsonl"
        if not answers.is_file():
            continue
        moment = max(moment, answers.stat().st_mtime)
        # The file may also contain answers from an earlier attempt at the episode. Only the
        # questions of its dialogue are packed, by step and messages (programs number the questions
        # of an episode, dialogues number the questions of a step).
        lines = list(read_dialogue(place.dialogue(episode.key)))
        ids = [tuple(map(content_id, messages)) for messages in whole_messages(lines)]
        left = Counter((line.step, messages) for line, messages in zip(lines, ids, strict=True))

        def is_in_dialogue(question: RecordedQuestion, left: Counter[Any] = left) -> bool:
            left[question.step, question.messages] -= 1
            return left[question.step, question.messages] >= 0

        content[f"models/{episode.key}.jsonl"] = without_texts(
            answers, is_in_dialogue if lines else lambda question: True
        )
    return write_recording(
        file,
        content,
        benchmarks=benchmarks_of(manifest),
        engine=engine,
        precision=precision,
        command=command,
        recorded=day_of(moment),
        python=manifest.versions.python,
        complete="scores.json" in content,
    )


def write_recording(file: Path, content: dict[str, bytes], **stated: Any) -> RecordingLabel:
    """Write a recording and return its label.

    ``content`` contains the files by name. ``stated`` contains the fields of the label that are not
    computed from the files. Raises :class:`RunError` if there are no answers.
    """
    content = {name: without_secrets(data) for name, data in content.items()}
    counted = count_answers(content)
    if not counted["models"]:
        raise RunError(
            f"{file.name} would contain no recorded answers", hint="give a run with models"
        )
    files = {name: sha256_bytes(data) for name, data in sorted(content.items())}
    label = msgspec.convert({**stated, **counted, "files": files}, RecordingLabel)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_packed(file, {_LABEL: without_secrets(_label_text(label))} | content)
    return label


def _label_text(label: RecordingLabel) -> bytes:
    return msgspec.json.format(msgspec.json.encode(label), indent=1) + b"\n"


def count_answers(content: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the fields of a label that are computed from the files.

    These are the models, and the numbers of answers and tokens.
    """
    lines = []
    for name, data in content.items():
        if name.startswith("models/"):
            lines.extend(parse_recording(Path(name), data).answers)
    return {
        "models": tuple(sorted({line.asked.model for line in lines})),
        "answers": len(lines),
        "input_tokens": sum(line.reply.usage.input_tokens for line in lines),
        "output_tokens": sum(line.reply.usage.output_tokens for line in lines),
    }


def write_packed(file: Path, content: dict[str, bytes]) -> None:
    """Write an archive whose bytes depend only on its content."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(content.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    write_atomic(file, lzma.compress(packed.getvalue(), preset=9))


def benchmarks_of(manifest: Manifest) -> tuple[str, ...]:
    """Return the ids of a manifest's benchmarks, in the order of the manifest's records."""
    return (
        tuple(manifest.benchmarks) if isinstance(manifest, RunManifest) else (manifest.benchmark,)
    )


def list_recordings(suffix: str = SUFFIX) -> list[RecordingInfo]:
    """Return the named recordings, sorted.

    ``suffix`` selects the recordings of runs (the default) or of memory audits (:data:`AUDIT`).
    """
    if configured := os.environ.get(FOLDER):
        roots = [Path(configured)]
    elif package := find_spec(PACKAGE):
        roots = [Path(folder) for folder in package.submodule_search_locations or ()]
    else:
        roots = [Path(__file__).parents[6] / "recordings" / "src" / PACKAGE]
    recordings = []
    for root in roots:
        for path in sorted(root.glob(f"*/*{suffix}")):
            name = f"{path.parent.name}/{path.name.removesuffix(suffix)}"
            size = path.stat().st_size / 1e6
            recordings.append(
                RecordingInfo(name=name, path=str(path), megabytes=size, label=read_label(path))
            )
    return recordings


def find_recording(name: str, *benchmarks: str) -> Path:
    """Return the file of ``recorded/MODEL``, ``recorded/MODEL/RUN`` or a path.

    With ``benchmarks``, only recordings with one of these benchmarks are considered. Raises
    :class:`UserError` if no recording matches, and if several do.
    """
    if Path(name).is_file():
        chosen = [(name, Path(name), read_label(Path(name)))]
    else:
        wanted = name.removeprefix(PREFIX)
        recordings = list_recordings()
        # A recording has the name MODEL/RUN. The model alone means all of its recordings.
        matching = [
            info for info in recordings if wanted in (info.name, info.name.partition("/")[0])
        ]
        if not matching:
            names: dict[str, None] = {}
            for info in recordings:
                names |= dict.fromkeys((info.name.partition("/")[0], info.name))
            near = did_you_mean(wanted, list(names), "see tradeassay recordings list")
            raise UserError(
                f"no recording is named '{name}'", hint=near if recordings else GET_RECORDINGS
            )
        chosen = [(info.name, Path(info.path), info.label) for info in matching]
    if benchmarks:
        ids = sorted(set(chain.from_iterable(label.benchmarks for _, _, label in chosen)))
        wanted_ids = {newest(benchmark, ids) for benchmark in benchmarks}
        has = ", ".join(ids)
        chosen = [entry for entry in chosen if set(entry[2].benchmarks) & wanted_ids]
        if not chosen:
            raise UserError(
                f"'{name}' has no recording with '{benchmarks[-1]}'", hint=f"it has {has}"
            )
    if len(chosen) > 1:
        several = ", ".join(PREFIX + title for title, _, _ in chosen)
        raise UserError(f"'{name}' matches several recordings", hint=f"give one of {several}")
    return chosen[0][1]


def find_audit(name: str, dataset: str) -> Path:
    """Return a folder with a model's recorded answers about its memory of a data set.

    Raises :class:`UserError` if there is no recorded audit of the model on that data set.
    """
    audits = {
        recording.name.partition("/recall-")[2]: Path(recording.path)
        for recording in list_recordings(AUDIT)
        if recording.name.startswith(f"{name.removeprefix(PREFIX)}/")
    }
    if dataset not in audits:
        near = (
            f"it has audits of {', '.join(sorted(audits))}"
            if audits
            else "see tradeassay recordings list"
        )
        raise UserError(f"'{name}' has no recorded memory audit of {dataset}", hint=near)
    return open_recording(audits[dataset]).folder / "models"


GET_RECORDINGS = (
    f"in a checkout: pip install ./recordings; or set a folder of recordings in {FOLDER}"
)
"""The hint if there are no recordings. Their package is not on a package index."""


def open_recording(file: Path, home: Path | None = None) -> OpenRecording:
    """Unpack a recording into the user's data folder, check it, and return it.

    If there is an intact unpacked copy, it is used. Raises :class:`RunError` if the recording is
    damaged or does not match its label.
    """
    folder = data_home(home) / "recordings" / sha256_file(file)[:16]
    if _damage(folder) is not None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            fresh, content = Path(temporary) / "fresh", dict(read_members(file))
            _label(content.get(_LABEL), file)  # raises before anything is written
            for name, data in content.items():
                target = fresh / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
    damage = _damage(folder)
    if damage is not None:
        shutil.rmtree(folder, ignore_errors=True)
        raise RunError(
            f"{damage} in {file.name} does not match its label", hint="download the recording again"
        )
    return OpenRecording(folder=folder, label=_label((folder / _LABEL).read_bytes(), file))


def _damage(folder: Path) -> str | None:
    """Return the first file of an unpacked recording that does not match its label, or None."""
    if not (folder / _LABEL).is_file():
        return _LABEL
    label = _label((folder / _LABEL).read_bytes(), folder)
    for name, digest in label.files.items():
        if not (folder / name).is_file() or sha256_file(folder / name) != digest:
            return name
    return None


def read_label(file: Path) -> RecordingLabel:
    """Return a recording's label. Raises :class:`RunError` if the file is not a recording."""
    return _label(
        next((content for name, content in read_members(file) if name == _LABEL), None), file
    )


def read_members(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive.

    Raises :class:`RunError` for a repeated name, and for any entry that is not a plain file below
    the archive's root.
    """
    seen: set[str] = set()
    left = MOST_BYTES
    try:
        with _Bounded(file) as packed, tarfile.open(fileobj=packed, mode="r:") as archive:
            for entry in archive:
                left -= entry.size
                source = archive.extractfile(entry) if entry.isfile() else None
                if source is None or not _PLAIN.fullmatch(entry.name) or entry.name in seen:
                    what = f"{file} contains {entry.name[:80]!a}, which is not a plain file"
                    raise RunError(what, hint="do not use it")
                if left < 0 or len(seen) == MOST_FILES:
                    raise RunError(f"{file} is too large when unpacked", hint="do not use it")
                seen.add(entry.name)
                yield entry.name, source.read()
    except (tarfile.TarError, lzma.LZMAError, EOFError, *UNDECODABLE) as error:
        raise RunError(f"{file} is not a recording: {error}", hint="get it again") from error


_PLAIN = re.compile(r"(?!.*\.\.)[\w+=,@-][\w+=.,@-]{0,239}(/[\w+=,@-][\w+=.,@-]{0,239}){0,3}")
"""The canonical form of the name of a file below a folder."""


class _Bounded(lzma.LZMAFile):
    """A decompressed archive with limits on its size, because a header can state any size."""

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
        raise RunError(
            f"{file} is not a recording", hint="pack one with tradeassay recordings record"
        )
    try:
        label = msgspec.json.decode(content, type=RecordingLabel)
    except UNDECODABLE as error:
        raise RunError(
            f"the label of {file} cannot be read: {error}", hint="download the recording again"
        ) from None
    if label.format != RECORDING_FORMAT:
        raise RunError(
            f"{file} has format {label.format}", hint="use the version of tradeassay that wrote it"
        )
    if not all(map(_PLAIN.fullmatch, label.files)):
        raise RunError(f"the label of {file} has an invalid file name", hint="do not use it")
    return label


_OURS = re.compile(
    # A safe command does not use a file in a different folder, a different program, or a remote
    # server, which would receive a key.
    r"(?!.*( [/~]|\.\./|\.py:|://(?!(localhost|127\.0\.0\.1)[:/])))"
    r"((tradeassay (recordings record|code run|arena run)"
    r"|tar xf [\w.-]+ season\.json)[\w ./=,:@+'\"-]*( && |$))*"
)
_OMITTED_OPTIONS = frozenset(("--engine", "--precision", "--runs", "--concurrency", "--secret"))


def is_our_command(command: str) -> bool:
    """Return whether a command calls only tradeassay, so that it is safe to paste into a shell."""
    return _OURS.fullmatch(command) is not None


def command_of(words: list[str]) -> str:
    """Return the arguments of ``tradeassay`` as the command for the label of a recording.

    Paths outside the current folder are reduced to their last part. Options whose values are in the
    label or the manifest are left out.
    """
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word.partition("=")[0] not in _OMITTED_OPTIONS:
            kept.append(Path(word).name if re.search(r"^[/~]|(^|/)\.\.(/|$)", word) else word)
        skip = word in _OMITTED_OPTIONS
    return shlex.join(["tradeassay", *kept])


def day_of(moment: float) -> str:
    """Return the UTC day of a moment, given in seconds since 1970, as an ISO date."""
    return iso(int(moment * SECOND))[:10]


_HASHES = frozenset(["work_sha256", "events_sha256", "outcomes", "answers"])
"""Fields of scores and outcomes that may differ in a replay: hashes, and the source of answers."""


def replay_recording(
    opened: OpenRecording, folder: Path, *, workers: int | None = None, tasks: tuple[str, ...] = ()
) -> Run | CodeRun:
    """Replay the run of a recording with the recorded answers, and return the new run.

    ``folder`` is the folder of the new run. ``tasks`` selects some tasks of a run of programs.
    Raises the same errors as :func:`~tradeassay_bench.runs.play.resume.run`.
    """
    asking = Asking(replay=True, recordings=opened.folder)
    spec: Any = recorded_spec(opened.folder)
    spec = msgspec.structs.replace(spec, tasks=tasks) if tasks else spec
    done: Run | CodeRun = run(spec, folder, asking=asking, workers=workers)
    return done


def score_differences(
    opened: OpenRecording, replayed: Path, *, tasks: tuple[str, ...] = ()
) -> list[str]:
    """Return the differences between a replay and the recording in scores and outcomes, as texts.

    ``replayed`` is the folder of the replay. Numbers are different if their relative difference
    exceeds 1e-9. If only some ``tasks`` were replayed, only the outcomes of these tasks are
    compared.
    """
    differences: list[str] = []
    for name in sorted(opened.label.files):
        of_some = any(f"__{task}__" in name for task in tasks)
        if (name == "scores.json" and not tasks) or (
            name.endswith("/outcome.json") and (of_some or not tasks)
        ):
            before, after = (
                msgspec.json.decode((place / name).read_bytes())
                for place in (opened.folder, replayed)
            )
            differences += unlike_recorded(after, before, "" if name == "scores.json" else name)
    return differences


def manifest_differences(opened: OpenRecording, replayed: Path) -> list[str]:
    """Return the differences between the manifest of a replay and the recorded manifest, as texts.

    Versions are not compared. The query and the retrieval date of a data set are not compared
    either, because the hash identifies the content. Models are not compared if the recorded
    manifest does not list models, as in older runs of programs.
    """
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


def unlike_recorded(replayed: object, recorded: object, place: str) -> Iterator[str]:
    """Yield the differences between a replayed value and the recorded value, as texts.

    ``place`` is the path of the values. Recordings are replayed on different machines, so the last
    digits of numbers may differ, and hashes over such numbers are not compared. Unlike in
    :func:`tradeassay_bench.runs.verify.replay.differences`, a missing key is always a difference,
    because the author of a recording is unknown.
    """
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        for key in sorted({*replayed, *recorded}):
            if (key in replayed) != (key in recorded):
                yield f"{place}/{key} is {'new' if key in replayed else 'missing'}"
                continue
            hashes = recorded[key].values() if isinstance(recorded[key], dict) else [recorded[key]]
            hashed = all(
                isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}|live|replayed", value)
                for value in hashes
            )
            if key not in _HASHES or not hashed:
                yield from unlike_recorded(replayed[key], recorded[key], f"{place}/{key}")
    elif (
        isinstance(recorded, list) and isinstance(replayed, list) and len(replayed) == len(recorded)
    ):
        for number, (value, recorded_value) in enumerate(zip(replayed, recorded, strict=True)):
            yield from unlike_recorded(value, recorded_value, f"{place}/{number}")
    elif isinstance(recorded, float) and isinstance(replayed, float):
        if not close(replayed, recorded):
            yield f"{place} is {replayed!r}, recorded was {recorded!r}"
    elif replayed != recorded:
        yield f"{place} is {str(replayed)[:80]!r}, recorded was {str(recorded)[:80]!r}"


def recording_faults(opened: OpenRecording) -> list[str]:
    """Return the faults of a recording that can be found without a replay, as texts.

    The checks find answers whose key does not match their question, texts of questions, files that
    do not belong in a recording, a label that contradicts the files, an unsafe command, and texts
    that look like a provider's key.
    """
    label, folder = opened.label, opened.folder
    paths = [path for path in folder.rglob("*") if path.is_file()]
    content = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    faults = [
        f"{name} contains what looks like a key"
        for name, text in sorted(content.items())
        if looks_like_key(text)
    ]
    if content.pop(_LABEL) != _label_text(label):
        faults.append(f"{_LABEL} is not in tradeassay's format")
    faults += [
        f"{name} is not listed in its label" for name in sorted(content.keys() - label.files.keys())
    ]
    tapes = sorted(name for name in content if name.startswith("models/"))
    counts, parts = (
        count_answers(content),
        {SEASON, "prompts.json", "decisions.jsonl", "standings.json", *tapes},
    )
    if opened.is_season:
        # A season records the number of questions of each decision.
        questions = sum(
            int(calls)
            for calls in re.findall(rb'"calls":(\d+)', content.get("decisions.jsonl", b""))
        )
        if counts["answers"] > questions:
            faults.append(
                f"it contains {counts['answers']} answers, but its season has {questions} questions"
            )
    else:
        manifest, place = opened.manifest, RunFolder(folder)
        keys = [episode.key for episode in manifest.episodes]
        parts = {f"models/{key}.jsonl" for key in keys} | {"manifest.json", "scores.json"}
        parts |= {place.outcome(key).relative_to(folder).as_posix() for key in keys}
        counts |= {"benchmarks": benchmarks_of(manifest), "complete": "scores.json" in content}
        counts |= {"python": manifest.versions.python}
        faults += _manifest_faults(opened, content)
    faults += [f"{name} is not part of a recording" for name in sorted(label.files.keys() - parts)]
    for name in tapes:
        path = folder / name
        faults += [f"{path.name}: {fault}" for fault in (*answer_faults(path), *_unlikely(path))]
    if not is_our_command(label.command):
        faults.append("the command in its label calls more than tradeassay")
    stated = {name: getattr(label, name) for name in counts}
    contradicted = [name for name in stated if stated[name] != counts[name]]
    return faults + [
        f"its label states {stated[name]} for {name}, but its files have {counts[name]}"
        for name in contradicted
    ]


def _manifest_faults(opened: OpenRecording, content: Mapping[str, bytes]) -> Iterator[str]:
    """Yield contradictions with the manifest: wrong episodes, and wrong numbers of answers."""
    manifest, place = opened.manifest, RunFolder(opened.folder)
    listed = [entry.key for entry in manifest.episodes]
    if isinstance(manifest, RunManifest):
        # A spec with an unlimited number of seeds must not be expanded.
        plausible = len(manifest.spec.seeds) <= len(listed)
        expected = [entry.key for entry in expand(manifest.spec)] if plausible else []
    else:
        plausible = len(recorded_code_spec(manifest).seeds) <= len(listed)
        expected = [entry.key for entry in reopen(manifest).episodes()] if plausible else []
    if expected != listed:
        yield "the episodes of its manifest do not match its spec"
    known, stated = (
        msgspec.json.decode(entry)
        for entry in (encode_manifest(manifest), content["manifest.json"])
    )
    # A field that is lost when the manifest is read was not written by tradeassay.
    yield from (
        line
        for line in unlike_recorded(known, stated, "manifest.json")
        if line.endswith(" is missing")
    )
    for key in listed if opened.label.complete else ():
        outcome, name = read_outcome(place.outcome(key)), f"models/{key}.jsonl"
        questions = (
            outcome.spending.calls if outcome is not None and outcome.spending is not None else 0
        )
        answers = len(parse_recording(Path(name), content.get(name, b"")).answers)
        if answers != questions:
            yield f"{name} contains {answers} answers, but its run has {questions} questions"


_FOREIGN = ("http/", "pipe/", "python/")
_MOST_TOKENS = 10**9


def _unlikely(path: Path) -> Iterator[str]:
    """Yield the faults of a file of answers in a packed recording."""
    contents = read_recording(path)
    if contents.texts or contents.messages or contents.tools:
        yield "it contains texts of questions"
    implausible = 0
    for line in contents.answers:
        usage, foreign = line.reply.usage, line.asked.model.startswith(_FOREIGN)
        counts = (
            usage.input_tokens,
            usage.output_tokens,
            usage.reasoning_tokens,
            usage.cached_tokens,
        )
        possible = all(0 <= number <= _MOST_TOKENS for number in (*counts, usage.usd or 0.0))
        # A count that is too low is replaced when the answer arrives. A user's own program may
        # report no counts.
        plausible = foreign or usage.output_tokens >= LEAST_SHARE * estimate_reply(line.reply)
        implausible += not possible or not plausible or usage.cached_tokens > usage.input_tokens
    if implausible:
        yield f"{implausible} answers have impossible tokens or dollars"


def changed_facts(opened: OpenRecording) -> list[str]:
    """Return the names of the facts of a recording that differ here: prompts, rules, tasks.

    Data sets are not compared, because a replay reports changed data.
    """
    manifest = opened.manifest
    if isinstance(manifest, RunManifest):
        now = {}
        for episode in manifest.episodes:
            if episode.setting in manifest.protocols:
                for name, digest in describe_protocol(
                    with_protocol(benchmarks.get(episode.benchmark), episode.protocol)
                ).prompts.items():
                    now[f"the prompt {name}"] = digest
        now |= {
            f"benchmark '{name}'": sha256_of(benchmarks.get(name)) for name in manifest.benchmarks
        }
    else:
        now = dict(reopen(manifest).facts())
    then = manifest.facts
    return sorted(name for name in now if name in then and then[name] != now[name])
