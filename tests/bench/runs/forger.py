"""Attack ``verify`` on a recorded run: every kind of field and byte is changed, and nothing may
pass.

A change of a field is made as a forger would make it: the file is written in its own form again,
and hashes, step counts, sums and scores that depend on it are computed anew, so that the run agrees
with itself. A change of a byte is left as it is: that is a broken disk. What ``verify`` does not
cover is listed with the reason.
"""

import random
import re
import shutil
import tempfile
from collections import Counter
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path

import msgspec

from tradeassay.core.errors import UNDECODABLE, TradeassayError
from tradeassay.core.hashing import canonical_json, sha256_bytes, sha256_of
from tradeassay_bench.core.events import STEP_DECODER, TURN_DECODER
from tradeassay_bench.llm import recording
from tradeassay_bench.play.dialogue_log import Spending, read_dialogue
from tradeassay_bench.play.journal import encode_line
from tradeassay_bench.runs.play.programs import code_scores, recorded_code_spec, reopen
from tradeassay_bench.runs.play.trading import score_tasks
from tradeassay_bench.runs.score import encode_scores, gather, score_agent
from tradeassay_bench.runs.spec.run_spec import work_sha256
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import RunManifest, read_manifest
from tradeassay_bench.runs.store.outcome import read_outcome, write_outcome
from tradeassay_bench.runs.verify.replay import differences
from tradeassay_bench.runs.verify.report import verify

NOT_COVERED = {
    r"manifest\.json versions\.": "the environment is stated by the runner",
    r"manifest\.json facts\.package ": "the environment is stated by the runner",
    r"manifest\.json spec\.slug": "the name of a run is not part of its work",
    r"manifest\.json agents\..*\.module": "our own code may move to another file",
    r"manifest\.json benchmarks\.[^ ]*\.config\.(title|description)": "what a benchmark is called "
    "may be reworded",
    r"manifest\.json benchmarks\.[^.]*\.sha256": "the forger computes it again",
    r"outcome\.json traceback": "it names files and lines of the runner's machine",
    r"outcome\.json (model\.)?answers": "whether replies were live or replayed is stated by the "
    "runner",
    r"(models/.*|dialogue)\.jsonl \d+\.reply\..*": "the replies of a model are a claim of the "
    "runner",
}
"""Fields that a forger can change without being contradicted, and why; none of them moves a
score by itself.
"""
_PAIRS = (
    "BUY SELL",
    "done failed",
    "corrected paper",
    "synthetic real",
    "scripted live",
    "user assistant",
)
_OTHER = {one: other for pair in map(str.split, _PAIRS) for one, other in (pair, pair[::-1])}
_OTHER |= {"replayed": "scripted", "ok": "failed", "passed": "failed", "stop": "length"}
_KINDS = {
    **{"events.jsonl": "journal", "dialogue.jsonl": "dialogue", "outcome.json": "outcome"},
    **{"manifest.json": "manifest", "scores.json": "scores"},
}


Tried = tuple[str, str, str]
"""The kind of file, what was changed, and what became of it: contradicted, marked, passed or
crashed.
"""


def why_uncovered(what, not_covered=NOT_COVERED):
    """Return why a change to a field need not be noticed; None where it must be."""
    return next((why for pattern, why in not_covered.items() if re.match(pattern, what)), None)


def counted(tried, not_covered=NOT_COVERED):
    """Count what became of changes: made, contradicted, marked, ``not covered:

    WHY`` and ``MISSED: WHAT``.
    """
    found = Counter(made=len(tried))
    for _, what, became in tried:
        why = why_uncovered(what, not_covered) if became == "passed" else None
        noticed = became in ("contradicted", "marked")
        found[
            became if noticed else f"not covered: {why}" if why else f"MISSED: {what} ({became})"
        ] += 1
    return found


def share_noticed(found):
    """Return the share of counted changes that were noticed, of those that should be; None
    without any.
    """
    wanted = found["made"] - sum(
        count for name, count in found.items() if name.startswith("not covered")
    )
    return (found["contradicted"] + found["marked"]) / wanted if wanted else None


def attack(folder, *, home=None, most=20, part=None, seed=0):
    """Change a copy of a recorded run in up to ``most`` fields, and as many bytes, per file, and
    verify each time.

    With ``part`` only the changes of these numbers are tried, in an order that is drawn: the same
    ``most`` and ``seed`` give the same order, so that all changes can be tried in parts.
    """
    with tempfile.TemporaryDirectory() as place:
        work, examined, rng = Path(place) / "run", {}, random.Random(seed)
        shutil.copytree(folder, work)
        before = {path: path.read_bytes() for path in sorted(work.rglob("*")) if path.is_file()}

        def look():
            return verify(work, home=home, workers=1, examined=examined)

        honest, tried = look(), []
        assert not honest.contradicted, honest.violations
        planned = []
        for path, content in before.items():
            kind = "recording" if path.parent.name == "models" else _KINDS.get(path.name)
            planned += (
                [(kind, path, *one) for one in _changes(path, content, rng, most)] if kind else []
            )
        if part is not None:
            random.Random(seed).shuffle(planned)
            planned = planned[part.start : part.stop]
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
            elif changed is not None:
                what = field_at(path, before[path], changed) or what
            try:
                found = look()
                marked = "marked" if found.unchecked != honest.unchecked else "passed"
                became = "contradicted" if found.contradicted else marked
            except TradeassayError:
                became = "contradicted"  # one line that names the file: nothing of it is shown
            except Exception as error:
                became = f"crashed: {type(error).__name__} {error}"
            tried.append((kind, what if kind != "recording" else f"models/{what}", became))
            for file, was in before.items():
                if not file.is_file() or file.read_bytes() != was:
                    file.write_bytes(was)
    return tried


def field_at(path, was, now):
    """Name the one field that a changed byte lies in; None where it is no field, or not the only
    one.
    """
    try:
        if path.suffix == ".jsonl":
            then, after = (
                [msgspec.json.decode(line) for line in text.splitlines()] for text in (was, now)
            )
            pairs = zip(then, after, strict=True)
            found = [
                f"{at}.{where}"
                for at, pair in enumerate(pairs)
                for where, _, _ in differences(*pair)
            ]
        else:
            found = [
                where
                for where, _, _ in differences(msgspec.json.decode(was), msgspec.json.decode(now))
            ]
    except (ValueError, *UNDECODABLE):
        return None
    return f"{path.name} {found[0]} (a byte)" if len(found) == 1 else None


_CLASSES = {
    "digit": b"0123456789",
    "letter": b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "structure": b'{}[]":,',
    "space": b" \t\n",
    "other": b"-._+=/\\",
}


def _changes(path, content, rng, most):
    """Yield changes of a file: what is changed, and a function that returns the content then,
    None for no file.
    """
    yield from field_changes(path, content, rng, most)
    whole = f"{path.name} byte"
    yield f"{whole} all: removed", lambda: None
    yield f"{whole} end: cut", lambda: content[:-7]
    yield f"{whole} end: longer", lambda: content + b"}\n"
    lines = content.splitlines(keepends=True)
    if path.suffix == ".jsonl" and len(lines) > 2:
        at = rng.randrange(len(lines) - 1)
        yield f"{whole} line {at}: twice", lambda: b"".join((*lines[: at + 1], *lines[at:]))
        swapped = (*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :])
        yield f"{whole} line {at}: swapped", lambda: b"".join(swapped)
        yield f"{whole} line {at}: left out", lambda: b"".join((*lines[:at], *lines[at + 1 :]))
    for name, signs in _CLASSES.items():
        places = [place for place, byte in enumerate(content) if byte in signs]
        for place in rng.sample(places, min(len(places), max(1, most // len(_CLASSES)))):
            other = rng.choice([sign for sign in signs if sign != content[place]] or [0x7F])
            yield f"{whole} {place} ({name})", partial(_with_byte, content, place, other)


def _with_byte(content, place, other):
    return content[:place] + bytes([other]) + content[place + 1 :]


def field_changes(path, content, rng, most=None):
    """Yield changes of a file's fields: what is changed, and a function that returns the content
    then.
    """
    many = path.suffix == ".jsonl"
    values = [msgspec.json.decode(line) for line in (content.splitlines() if many else [content])]
    found = [(number, where) for number, value in enumerate(values) for where in leaves(value)]
    # Every named field once, wherever it stands, before any is changed a second time.
    rng.shuffle(found)
    first, rest, seen = [], [], set()
    for leaf in found:
        name = tuple(part for part in leaf[1] if isinstance(part, str))
        (rest if name in seen else first).append(leaf)
        seen.add(name)
    for number, where in (first + rest)[:most]:
        shown = ".".join(map(str, where))
        what = f"{path.name} {number}.{shown}" if many else f"{path.name} {shown}"
        yield what, partial(_with_field, path, values, number, where, rng.random())


def _with_field(path, values, number, where, draw):
    changed = msgspec.json.decode(msgspec.json.encode(values[number]))
    inside = changed
    for part in where[:-1]:
        inside = inside[part]
    inside[where[-1]] = other_value(inside[where[-1]], random.Random(draw))
    if path.suffix != ".jsonl":
        return _written(path, changed)
    lines = [*values[:number], changed, *values[number + 1 :]]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def _written(path, value):
    if path.name == "outcome.json":
        return canonical_json(value)
    encoded = canonical_json(value) if path.name == "manifest.json" else msgspec.json.encode(value)
    return msgspec.json.format(encoded, indent=1) + b"\n"


def leaves(value, where=()):
    """Yield the place of every value that is not a container, and of every list that can lose a
    member.
    """
    if not isinstance(value, dict) and value != []:
        yield where
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value if isinstance(value, list) else ())
    )
    for key, one in inside:
        yield from leaves(one, (*where, key))


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
    if re.fullmatch(r"[0-9a-f]{16,}", value):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    day = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", value)
    return f"{day[1]}-{day[2]}-{'01' if day[3] != '01' else '02'}" if day else f"{value}x"


# -- the forger ------------------------------------------------------------------------------------


def cover_tracks(work, path, home=None):
    """Make a changed run agree with itself: form, names, hashes, counts, sums and scores.

    What fails is left.
    """
    cover = {
        "manifest.json": _cover_manifest,
        "events.jsonl": _cover_journal,
        "dialogue.jsonl": _cover_spending,
    }
    with suppress(
        TradeassayError, ValueError, KeyError, TypeError, AttributeError, OSError, *UNDECODABLE
    ):
        (
            _cover_recording
            if path.parent.name == "models"
            else cover.get(path.name, lambda path: None)
        )(path)
    if path.name != "scores.json":
        with suppress(Exception):  # a forger whose forgery cannot be scored keeps the old scores
            rescore(work, home)


def _cover_manifest(path):
    raw = msgspec.json.decode(path.read_bytes())
    for record in raw.get("benchmarks", {}).values():
        record["sha256"] = sha256_of(record["config"])
    path.write_bytes(_written(path, raw))
    manifest = read_manifest(path)
    trades = isinstance(manifest, RunManifest)
    raw["work_sha256"] = (
        work_sha256(manifest.spec) if trades else sha256_of(recorded_code_spec(manifest))
    )
    path.write_bytes(_written(path, raw))


def _cover_journal(path):
    manifest = read_manifest(path.parents[2] / "manifest.json")
    decoder = STEP_DECODER if isinstance(manifest, RunManifest) else TURN_DECODER
    lines = [encode_line(decoder.decode(line)) for line in path.read_bytes().splitlines()]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    end = path.with_name("outcome.json")
    if (outcome := read_outcome(end)) is not None:
        digest = sha256_bytes(path.read_bytes())
        write_outcome(end, msgspec.structs.replace(outcome, events_sha256=digest, steps=len(lines)))


def _cover_recording(path):
    renamed, written = {}, []
    for text in path.read_bytes().splitlines():
        line = recording.DECODER.decode(text)
        match line:
            case (
                recording.MessageLine(id=name, message=content)
                | recording.ToolsLine(id=name, tools=content)
            ):
                renamed[name] = recording.content_id(content)
                line = msgspec.structs.replace(line, id=renamed[name])
            case recording.AnswerLine(asked=asked):
                names = tuple(renamed.get(name, name) for name in asked.messages)
                tools = None if asked.tools is None else renamed.get(asked.tools, asked.tools)
                question = msgspec.structs.replace(asked, messages=names, tools=tools)
                line = msgspec.structs.replace(line, asked=question, key=recording.key_of(question))
        written.append(recording.ENCODER.encode(line) + b"\n")
    path.write_bytes(b"".join(written))


def _cover_spending(path):
    end = path.with_name("outcome.json")
    outcome = read_outcome(end)
    if outcome is not None and not isinstance(outcome.model, msgspec.UnsetType):
        spent = reduce(
            Spending.plus, (line.reply.usage for line in read_dialogue(path)), Spending()
        )
        model = msgspec.structs.replace(outcome.model, spending=spent)
        write_outcome(end, msgspec.structs.replace(outcome, model=model))


def rescore(work, home=None):
    """Score a run again as it now is, and write the scores."""
    manifest, place = read_manifest(work / "manifest.json"), RunFolder(work)
    if isinstance(manifest, RunManifest):
        tasks = score_tasks(place, None if home is None else str(home), manifest)
        parts = [score_agent(task) for task in tasks.values()]
        content = encode_scores(
            gather(
                manifest.work_sha256, manifest.episodes, parts, level=manifest.spec.bootstrap.level
            )
        )
    else:
        content = code_scores(reopen(manifest), manifest, place)
    place.scores.write_bytes(content)
