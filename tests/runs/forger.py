"""Attack ``verify`` on a recorded run of yours: every kind of field and byte is changed, and nothing may pass.

A change of a field is made as a forger would make it: the file is written in its own form again, and hashes, step
counts, sums and scores that depend on it are computed anew, so that the run agrees with itself. A change of a byte
is left as it is: that is a broken disk. What ``verify`` does not cover is listed with the reason.
"""

import random
import re
import shutil
import tempfile
from functools import partial
from pathlib import Path

import msgspec

from tradeassay.core.errors import UNDECODABLE, TradeassayError
from tradeassay.core.events import STEP_DECODER, TURN_DECODER
from tradeassay.core.hashing import canonical_json, sha256_bytes, sha256_of
from tradeassay.llm import cassette
from tradeassay.play.dialogue_log import Spending, read_dialogue
from tradeassay.play.journal import encode_line
from tradeassay.runs.play.programs import code_scores, reopen
from tradeassay.runs.play.trading import score_tasks
from tradeassay.runs.score import encode_scores, gather, score_agent
from tradeassay.runs.spec.run_spec import work_sha256
from tradeassay.runs.store.folder import RunFolder
from tradeassay.runs.store.manifest import CodeManifest, RunManifest, read_manifest
from tradeassay.runs.store.outcome import read_outcome, write_outcome
from tradeassay.runs.verify.replay import differences
from tradeassay.runs.verify.report import verify
from tradeassay.testing import CheckFailed

NOT_COVERED = (
    (r"manifest\.json versions\.", "the environment is stated by the runner"),
    (r"manifest\.json facts\.package ", "the environment is stated by the runner"),
    (r"manifest\.json spec\.slug", "the slug is only a name"),
    (r"manifest\.json agents\..*\.module", "our own code may move to another file"),
    (
        r"manifest\.json benchmarks\.[^ ]*\.config\.(title|description)",
        "what a benchmark is called may be reworded",
    ),
    (r"manifest\.json benchmarks\.[^.]*\.sha256", "the forger computes it again"),
    (r"outcome\.json traceback", "it names files and lines of the runner's machine"),
    (r"outcome\.json (model\.)?answers", "whether replies were live or replayed is stated by the runner"),
    (r"(models/.*|dialogue)\.jsonl \d+\.reply\..*", "what a model replied is a claim of the runner"),
)
"""Fields that a forger can change without being contradicted, and why; none of them moves a score by itself."""
_OTHER = {
    "BUY": "SELL",
    "SELL": "BUY",
    "done": "failed",
    "failed": "done",
    "sound": "paper",
    "paper": "sound",
    "synthetic": "real",
    "real": "synthetic",
    "scripted": "live",
    "live": "scripted",
    "replayed": "scripted",
    "ok": "failed",
    "user": "assistant",
    "assistant": "user",
    "passed": "failed",
    "stop": "length",
}
_HEX = re.compile(r"[0-9a-f]{16,}")


class KindShare(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the changes to one kind of file. ``missed`` are those that passed without a reason."""

    kind: str
    made: int
    contradicted: int
    marked: int
    not_covered: dict[str, int]
    missed: tuple[str, ...]

    @property
    def share(self) -> float | None:
        """The share of changes that were noticed, of those that should be; None when there were none."""
        wanted = self.made - sum(self.not_covered.values())
        return (wanted - len(self.missed)) / wanted if wanted else None

    def __str__(self) -> str:
        """Return it as one line."""
        share = "none to notice" if self.share is None else f"{self.share:.2%} noticed"
        passed = ", ".join(f"{count} not covered ({why})" for why, count in self.not_covered.items())
        return (
            f"{self.kind}: {self.made} changes, {share} ({self.contradicted} contradicted, {self.marked} marked)"
            f"{'; ' + passed if passed else ''}{'; MISSED: ' + ', '.join(self.missed[:5]) if self.missed else ''}"
        )


class VerifyCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What became of all changes, by kind of file."""

    folder: str
    kinds: tuple[KindShare, ...]

    @property
    def share(self) -> float | None:
        """The share of all changes that were noticed, of those that should be."""
        wanted = sum(one.made - sum(one.not_covered.values()) for one in self.kinds)
        return 1 - sum(len(one.missed) for one in self.kinds) / wanted if wanted else None

    def __str__(self) -> str:
        """Return one line per kind of file."""
        return "\n".join((f"{self.folder}: {self.share or 0:.2%}", *map(str, self.kinds)))


def check_verify(folder, *, home=None, most=20, part=None, seed=0, programs=True, least=0.99):
    """Change a copy of a recorded run in up to ``most`` fields, and as many bytes, per file, and verify each time.

    With ``part`` only the changes of these numbers are tried, in an order that is drawn: the same ``most`` and
    ``seed`` give the same order, so that all changes can be tried in parts.

    Raises :class:`CheckFailed` when the run itself is contradicted, or when fewer than ``least`` of the changes
    that should be noticed are.
    """
    with tempfile.TemporaryDirectory() as place:
        work = Path(place) / "run"
        examined = {}

        def look():
            return verify(work, home=home, workers=1, programs=programs, examined=examined)

        shutil.copytree(folder, work)
        honest = look()
        if honest.contradicted:
            raise CheckFailed(f"{folder} is contradicted before anything is changed: {honest.violations[0]}")
        planned = _planned(work, random.Random(seed), most)
        if part is not None:
            random.Random(seed).shuffle(planned)
            planned = planned[part.start : part.stop]
        tried = list(_attempts(work, home, look, honest, planned))
    return summed_up(str(folder), tried, least)


Tried = tuple[str, str, str]
"""The kind of file, what was changed, and what became of it: contradicted, marked, passed or crashed."""


def summed_up(folder, tried, least, not_covered=NOT_COVERED):
    """Count what became of all changes; ``not_covered`` pairs patterns with reasons.

    Raises :class:`CheckFailed` when fewer than ``least`` of the changes that should be noticed are.
    """
    kinds = dict.fromkeys(one[0] for one in tried)
    found = VerifyCheck(
        folder=folder,
        kinds=tuple(_kind_share(kind, [one for one in tried if one[0] == kind], not_covered) for kind in kinds),
    )
    if found.share is not None and found.share < least:
        raise CheckFailed(f"verify misses changes:\n{found}")
    return found


def why_uncovered(what, not_covered=NOT_COVERED):
    """Return why a change to a field need not be noticed; None where it must be."""
    return next((why for pattern, why in not_covered if re.match(pattern, what)), None)


def _kind_share(kind, tried, not_covered):
    reasons = {}
    missed = []
    for _, what, became in tried:
        if became.startswith("crashed"):
            missed.append(f"{what} ({became})")
        if became != "passed":
            continue
        reason = why_uncovered(what, not_covered)
        if reason is None:
            missed.append(what)
        else:
            reasons[reason] = reasons.get(reason, 0) + 1
    return KindShare(
        kind=kind,
        made=len(tried),
        contradicted=sum(one[2] == "contradicted" for one in tried),
        marked=sum(one[2] == "marked" for one in tried),
        not_covered=reasons,
        missed=tuple(missed),
    )


def _planned(work, rng, most):
    return [
        (kind, path, what, change)
        for path in sorted(work.rglob("*"))
        if path.is_file() and (kind := _kind_of(path, work)) is not None
        for what, change in _changes(path, path.read_bytes(), rng, most)
    ]


def _attempts(work, home, look, honest, planned):
    before = {path: path.read_bytes() for path in sorted(work.rglob("*")) if path.is_file()}
    for kind, path, what, change in planned:
        changed = change()
        if changed == before[path]:
            continue
        if changed is None:
            path.unlink()
        else:
            path.write_bytes(changed)
        if " byte " not in what:
            cover_tracks(work, path, home)
            if all(file.is_file() and file.read_bytes() == was for file, was in before.items()):
                continue  # a name that follows from the content: whoever computes it again undoes the change
        if " byte " in what and changed is not None:
            what = field_at(path, before[path], changed) or what
        yield kind, what if kind != "cassette" else f"models/{what}", _became(look, honest)
        for file, was in before.items():
            if not file.is_file() or file.read_bytes() != was:
                file.write_bytes(was)


def field_at(path, was, now):
    """Name the one field that a changed byte lies in; None where it is no field, or not the only one."""
    try:
        if path.suffix == ".jsonl":
            then, after = ([msgspec.json.decode(line) for line in text.splitlines()] for text in (was, now))
            found = [
                f"{number}.{where}"
                for number, (one, other) in enumerate(zip(then, after, strict=True))
                for where, _, _ in differences(one, other)
            ]
        else:
            found = [where for where, _, _ in differences(msgspec.json.decode(was), msgspec.json.decode(now))]
    except (ValueError, *UNDECODABLE):
        return None
    return f"{path.name} {found[0]} (a byte)" if len(found) == 1 else None


def _kind_of(path, work):
    if path.parent.name == "models":
        return "cassette"
    names = {"events.jsonl": "journal", "dialogue.jsonl": "dialogue", "outcome.json": "outcome"}
    if path.parent == work:
        return {"manifest.json": "manifest", "scores.json": "scores"}.get(path.name)
    return names.get(path.name)


def _became(look, honest):
    try:
        found = look()
    except TradeassayError:
        return "contradicted"  # one line that names the file: nothing of it is shown
    except Exception as error:
        return f"crashed: {type(error).__name__} {error}"
    if found.contradicted:
        return "contradicted"
    return "marked" if found.unchecked != honest.unchecked else "passed"


def _changes(path, content, rng, most):
    yield from _field_changes(path, content, rng, most)
    yield f"{path.name} byte all: removed", lambda: None
    yield f"{path.name} byte end: cut", lambda: content[:-7]
    yield f"{path.name} byte end: longer", lambda: content + b"}\n"
    lines = content.splitlines(keepends=True)
    if path.suffix == ".jsonl" and len(lines) > 2:
        at = rng.randrange(len(lines) - 1)
        yield f"{path.name} byte line {at}: twice", lambda: b"".join((*lines[: at + 1], *lines[at:]))
        yield (
            f"{path.name} byte line {at}: swapped",
            lambda: b"".join((*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :])),
        )
        yield f"{path.name} byte line {at}: left out", lambda: b"".join((*lines[:at], *lines[at + 1 :]))
    for name, signs in _CLASSES.items():
        places = [place for place, byte in enumerate(content) if byte in signs]
        for place in rng.sample(places, min(len(places), max(1, most // len(_CLASSES)))):
            other = rng.choice([sign for sign in signs if sign != content[place]] or [0x7F])
            yield f"{path.name} byte {place} ({name})", partial(_with_byte, content, place, other)


def _with_byte(content, place, other):
    return content[:place] + bytes([other]) + content[place + 1 :]


_CLASSES = {
    "digit": b"0123456789",
    "letter": b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "structure": b'{}[]":,',
    "space": b" \t\n",
    "other": b"-._+=/\\",
}


def _field_changes(path, content, rng, most):
    many = path.suffix == ".jsonl"
    values = (
        [msgspec.json.decode(line) for line in content.splitlines()] if many else [msgspec.json.decode(content)]
    )
    leaves = [(number, where) for number, value in enumerate(values) for where in _leaves(value)]
    # Every named field once, wherever it stands, before any is changed a second time.
    rng.shuffle(leaves)
    seen = set()
    first = []
    rest = []
    for leaf in leaves:
        name = tuple(part for part in leaf[1] if isinstance(part, str))
        (rest if name in seen else first).append(leaf)
        seen.add(name)
    for number, where in (first + rest)[:most]:
        shown = ".".join(map(str, where))
        what = f"{path.name} {number}.{shown}" if many else f"{path.name} {shown}"
        yield what, partial(_with_field, path, values, number, where, rng.random())


def _with_field(path, values, number, where, draw):
    changed = msgspec.json.decode(msgspec.json.encode(values[number]))
    _change(changed, where, random.Random(draw))
    if path.suffix != ".jsonl":
        return _written(path, changed)
    lines = [*values[:number], changed, *values[number + 1 :]]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def _written(path, value):
    if path.name == "outcome.json":
        return canonical_json(value)
    encoded = canonical_json(value) if path.name == "manifest.json" else msgspec.json.encode(value)
    return msgspec.json.format(encoded, indent=1) + b"\n"


def _leaves(value, where=()):
    """Yield the place of every value that is not a container, and of every container that can lose a member."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, (*where, key))
    elif isinstance(value, list):
        if value:
            yield where
        for number, one in enumerate(value):
            yield from _leaves(one, (*where, number))
    else:
        yield where


def _change(value, where, rng):
    for part in where[:-1]:
        value = value[part]
    value[where[-1]] = other_value(value[where[-1]], rng)


def other_value(value, rng):
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.01 + 0.01
    if value is None:
        return 1
    if isinstance(value, list):
        return value[:-1] if rng.random() < 0.5 else [*value, value[0]]
    if value in _OTHER:
        return _OTHER[value]
    if _HEX.fullmatch(value):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    day = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", value)
    return f"{day[1]}-{day[2]}-{'01' if day[3] != '01' else '02'}" if day else f"{value}x"


# -- the forger ---------------------------------------------------------------------------------------------------


def cover_tracks(work, path, home=None):
    """Make a changed run agree with itself: form, names, hashes, counts, sums and scores. What fails is left."""
    for step in (_cover_manifest, _cover_journal, _cover_cassette, _cover_spending):
        try:
            step(work, path)
        except (TradeassayError, ValueError, KeyError, TypeError, AttributeError, OSError, *UNDECODABLE):
            continue
    if path.name != "scores.json":
        try:
            rescore(work, home)
        except Exception:
            return  # a forger whose forgery cannot be scored keeps the old scores


def _cover_manifest(work, path):
    if path.name != "manifest.json":
        return
    raw = msgspec.json.decode(path.read_bytes())
    for record in raw.get("benchmarks", {}).values():
        record["sha256"] = sha256_of(record["config"])
    path.write_bytes(_written(path, raw))
    manifest = read_manifest(path)
    spec = work_sha256(manifest.spec) if isinstance(manifest, RunManifest) else sha256_of(reopen(manifest)[1])
    raw["work_sha256"] = spec
    path.write_bytes(_written(path, raw))


def _cover_journal(work, path):
    if path.name != "events.jsonl":
        return
    decoder = STEP_DECODER if isinstance(read_manifest(work / "manifest.json"), RunManifest) else TURN_DECODER
    lines = [encode_line(decoder.decode(line)) for line in path.read_bytes().splitlines()]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    end = path.with_name("outcome.json")
    outcome = read_outcome(end)
    if outcome is not None:
        digest = sha256_bytes(path.read_bytes())
        write_outcome(end, msgspec.structs.replace(outcome, events_sha256=digest, steps=len(lines)))


def _cover_cassette(work, path):
    if path.parent.name != "models":
        return
    renamed = {}
    written = []
    for text in path.read_bytes().splitlines():
        line = cassette.DECODER.decode(text)
        match line:
            case cassette.MessageLine(id=name, message=message):
                renamed[name] = cassette.content_id(message)
                line = msgspec.structs.replace(line, id=renamed[name])
            case cassette.ToolsLine(id=name, tools=tools):
                renamed[name] = cassette.content_id(tools)
                line = msgspec.structs.replace(line, id=renamed[name])
            case cassette.AnswerLine(asked=asked):
                names = tuple(renamed.get(name, name) for name in asked.messages)
                tools_name = None if asked.tools is None else renamed.get(asked.tools, asked.tools)
                question = msgspec.structs.replace(asked, messages=names, tools=tools_name)
                line = msgspec.structs.replace(line, asked=question, key=cassette.key_of(question))
            case _:
                pass
        written.append(cassette.ENCODER.encode(line) + b"\n")
    path.write_bytes(b"".join(written))


def _cover_spending(work, path):
    if path.name != "dialogue.jsonl":
        return
    spent = Spending()
    for line in read_dialogue(path):
        spent = spent.plus(line.reply.usage)
    end = path.with_name("outcome.json")
    outcome = read_outcome(end)
    if outcome is not None and not isinstance(outcome.model, msgspec.UnsetType):
        write_outcome(
            end, msgspec.structs.replace(outcome, model=msgspec.structs.replace(outcome.model, spending=spent))
        )


def rescore(work, home=None):
    """Score a run again as it now is, and write the scores."""
    manifest = read_manifest(work / "manifest.json")
    place = RunFolder(work)
    if isinstance(manifest, CodeManifest):
        place.scores.write_bytes(code_scores(reopen(manifest)[0], manifest, place))
        return
    tasks = score_tasks(place, None if home is None else str(home), manifest)
    parts = [score_agent(task) for task in tasks.values()]
    place.scores.write_bytes(encode_scores(gather(manifest.work_sha256, manifest.episodes, parts)))
