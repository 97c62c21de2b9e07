"""Verifying pages: whatever is written from records is written again from them, and compared file by file.

A run's own page, a paper's page with its tables, and a published site hold nothing but what their records give.
Two things of a page belong to the place where it was written, and are compared apart: the path in its commands,
and how many runs lay in its folder. A path that is not what was checked is named: a page could send its readers
to somebody else's honest run. A page that names another version of tradeassay as its writer
may say the same numbers of the same agents in other words: nobody can check those here, which contradicts nobody.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import html
import re
import shlex
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from functools import partial
from itertools import product
from pathlib import Path

import msgspec

from tradeassay.assay.assay_file import brought_assay, check_assay, recorded_assay
from tradeassay.assay.judge import assay_run
from tradeassay.assay.papers import paper_page, paper_pages
from tradeassay.assay.probe import ProbeReport, probe_mask
from tradeassay.assay.verdict import LABELS
from tradeassay.assay.verdict.record import SOFT, VerdictConfig
from tradeassay.benchmarks import benchmarks
from tradeassay.benchmarks.exhibits import PaperPage
from tradeassay.core import __version__
from tradeassay.core.closeness import close_text
from tradeassay.core.errors import UNDECODABLE, RunError, TradeassayError
from tradeassay.core.files import is_litter, write_atomic
from tradeassay.core.hashing import canonical_json
from tradeassay.report.code_page import run_badges, shown_run
from tradeassay.report.page import render_html, write_html
from tradeassay.report.paper_page import write_paper
from tradeassay.report.shell import write_page
from tradeassay.report.site import write_site
from tradeassay.report.words import badge_words
from tradeassay.runs import CodeRun, Run, load_run
from tradeassay.runs.play.progress import CountListener
from tradeassay.runs.store.outcome import ClaimOutcome, Violation, Word
from tradeassay.runs.summary import summary_of
from tradeassay.runs.verify.attested import Attestation, VerdictWord
from tradeassay.runs.verify.report import NOT_RENDERED, VerifyReport, in_any_venue

PAPER = "paper.json"
_CARDS = "cards/*"
"""The scorecards beside a run's page."""
Badges = tuple[tuple[str, str], ...]
_HERE = re.compile(r"(?<=<code data-placed>tradeassay )(verify|resume|assay) ([^<>]+?)((?: --[a-z-]+)?)(?=<)")
"""A command about the place where a page was written: its name, the path, and an option."""
_COUNT = re.compile(r"(?:the only run|one of (\d+) runs) of ")
_WRITER = re.compile(r"(?<=<meta name=\"generator\" content=\"tradeassay)[^\"<>]*(?=\">)")
_UNSEEN = re.compile(r"<style>.*?</style>|<script>.*?</script>|<[^>]*>", re.DOTALL)
_NUMBER = re.compile(r"[-+\u2212]?\d[\d,.]*%?")
_LIVE = re.compile(
    r"<style\b.*?</style>|<script\b.*?</script>|<(?:base|embed|iframe|img|link|object)\b[^>]*>|\s(?:on\w+|style)=[^>]*",
    re.DOTALL | re.IGNORECASE,
)
"""What may make a browser show something else than a page's text."""
_CHIP = re.compile(r"<span class=\"chip[^>]*>(?:<span[^>]*>[^<]*</span> )?([^<]+)</span>")
_VERDICTS = frozenset((*LABELS.values(), *SOFT.values()))
_ASSAYED = "Every session's return is split into market, style, selection and trading"
_WHEN = re.compile(r"<updated>[^<]*</updated>")
_PACK = re.compile(r"(?<=>)\"?H4sI[A-Za-z0-9+/=]+\"?(?=<)")
_LARGEST = 1 << 28
"""Bytes of a pack that is opened."""


class PaperRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What lies beside ``paper.html``: the runs or seasons in its folder that it was made of, how, and what
    attackers of a mask recovered. ``replayed`` are the seasons whose models were not asked."""

    runs: tuple[str, ...]
    attribution: bool = True
    probe: ProbeReport | None = None
    replayed: tuple[str, ...] = ()


def check_beside(run: Run | CodeRun, found: VerifyReport) -> VerifyReport:
    """Make what lies beside a record that holds again, its assay and its page, and add what becomes of them."""
    if isinstance(run, Run) and (run.folder / "assay.json").is_file():
        found = check_assay(run, found)
    page = run.folder / "report.html"
    if not page.is_file():
        return _check_scorecards(run, found)
    notes = [note for note in found.notes if note != NOT_RENDERED]
    missing = [one.why for one in found.claims if one.claim == "data" and one.outcome != "re-derived"]
    wrong: list[str] = []
    worded = None
    strangers = {} if isinstance(run, CodeRun) else run.manifest.absent_benchmarks
    try:
        wrong, worded = ([], None) if missing else _other_page(run, found, page)
        if wrong and strangers:  # as it was written where they are registered
            with benchmarks.knowing(strangers):
                wrong, worded = _other_page(run, found, page)
            titled = "it is the record's, titled by the runner"
            missing = [f"{titled}: '{name}' is not registered here" for name in strangers]
        if wrong and isinstance(run, Run) and _lost_its_assay(run, page):
            wrong, unassayed = _other_page_without_assay(run, found, page)
            missing += [unassayed] if unassayed else []
        unsure = [one.why for one in found.claims if one.claim == "account" and one.outcome == "cannot be checked"]
        if wrong and unsure:  # a page tells a venue's rules, which are not the run's here
            wrong, missing = [], [f"{unsure[0]}: {wrong[0]}"]
    except TradeassayError as error:
        missing = [error.message]
        with contextlib.suppress(TradeassayError), benchmarks.knowing(strangers):
            pages = in_any_venue(strangers.values(), lambda: _other_page(run, found, page)[0])
            wrong = pages[0] if pages and pages[0] == pages[-1] else []
    outcome: Word = "contradicted" if wrong else "cannot be checked" if missing else "re-derived"
    made = run.manifest.versions.packages.get("tradeassay", __version__)
    why = next(iter((*wrong, *missing)), "")
    written = page.read_text(errors="replace")
    by = _WRITER.search(written)
    writer = "" if by is None else by[0].strip()
    if worded is not None and writer != __version__:
        whose = f"tradeassay {writer}" if writer else "an earlier tradeassay"
        why = f"report.html was written by {whose}, the same numbers in other words ({worded})"
        outcome = "cannot be checked"
        why = f"{why}; tradeassay report {shlex.quote(str(run.folder))} -o FILE writes it anew"
    elif wrong and __version__ not in (made, writer):
        outcome, why = "cannot be checked", f"the run was made with tradeassay {made}: {why}"
    then, now = _counted(written), _counted("" if found.freedom is None else found.freedom.sentence)
    if not wrong and now and then < now:
        notes.append(f"report.html counts {then} runs of its benchmark in the folder, there are {now}")
    if outcome == "re-derived":
        notes += _misleading(page, run.folder)
    claim = ClaimOutcome(claim="page", outcome=outcome, why=why)
    return found.and_claim(claim, notes)


def _check_scorecards(run: Run | CodeRun, found: VerifyReport) -> VerifyReport:
    """Make the scorecards beside a record without a page again, and add what becomes of them.

    They may be handed on without the page; that some were deleted says nothing."""
    cards = [card.name for card in sorted(run.folder.glob(_CARDS)) if not is_litter(card.name)]
    if not cards:
        return found
    patterns = tuple(f"cards/{glob.escape(name)}" for name in cards)
    wrong: list[str] = []
    missing = ""
    try:
        wrong = _other_page(run, found, run.folder / "report.html", patterns)[0]
    except TradeassayError as error:
        missing = error.message
    made = run.manifest.versions.packages.get("tradeassay", __version__)
    if wrong and made != __version__:
        wrong, missing = [], f"the run was made with tradeassay {made}: {wrong[0]}"
    outcome: Word = "contradicted" if wrong else "cannot be checked" if missing else "re-derived"
    why = next(iter(wrong), missing)
    return found.and_claim(ClaimOutcome(claim="scorecards", outcome=outcome, why=why), found.notes)


def _misleading(page: Path, folder: Path) -> Iterator[str]:
    """Yield the commands of a page that was compared and name another place than the one that was checked."""
    for command in dict.fromkeys(one.groups() for one in _HERE.finditer(page.read_text(errors="replace"))):
        name, path, _ = command
        (named,) = shlex.split(html.unescape(path))
        parts, place = Path(named).parts, folder.resolve()
        # Only the end of a path need be on a page: it may have been written from another folder.
        if place.parts[-len(parts) :] != parts and Path(named).resolve() != place:
            yield f"{page.name} tells its readers to {name} {named}, which is not what was checked"


def _other_page(
    run: Run | CodeRun, found: VerifyReport, page: Path, patterns: tuple[str, ...] = ("report.html", _CARDS)
) -> tuple[list[str], str | None]:
    """Return in what a run's page is none that this package writes: with its assay or without, verified or not.
    Also how it is worded otherwise; None where it tells something else, or more than the page differs.

    ``patterns`` are the files that are compared."""
    first: list[str] = []
    worded = None
    names = frozenset(() if isinstance(run, CodeRun) else run.names.values())
    told = None if isinstance(run, CodeRun) else (summary_of(run), paper_pages(run))
    brought = None if isinstance(run, CodeRun) else brought_assay(run)
    for assay, verified in product({id(brought): brought, id(None): None}.values(), (None, found)):
        with tempfile.TemporaryDirectory() as place:
            made = Path(place) / page.name
            if told is None:
                write_html(run, made, verified=verified)
            else:
                write_page(made, render_html(*told, verified, assay))
            called = None if isinstance(run, CodeRun) else {run.spec.slug, run.folder.name}
            wrong = list(_others(made.parent, run.folder, patterns, called))
            words = names | _VERDICTS | set(_CHIP.findall(made.read_text()))
            alone = [one.partition(" ")[0] for one in wrong] == [page.name]
            if alone and _told(made, words) == _told(page, words):
                worded = wrong[0].partition(": ")[2]
                if set(_LIVE.findall(page.read_text(errors="replace"))) - set(_LIVE.findall(made.read_text())):
                    worded += "; its scripts or styles are others, and may show anything"
        if not wrong:
            return [], None
        first = first or wrong
    return first, worded


def _lost_its_assay(run: Run, page: Path) -> bool:
    """Return whether a run's page shows an assay that is not in the run's folder any more."""
    return not (run.folder / "assay.json").is_file() and _ASSAYED in page.read_text(errors="replace")


def _other_page_without_assay(run: Run, found: VerifyReport, page: Path) -> tuple[list[str], str]:
    """Return in what a page whose assay was deleted is not the record's, and what of it cannot be checked.

    Lines that are the same with an assay made now and without one do not depend on the assay, so they must be in
    the page. The others may, and the assay's configuration went with its file."""
    told, papers = summary_of(run), paper_pages(run)
    made = assay_run(run, VerdictConfig())
    first: list[str] = []
    lines = partial(_lines, called={run.spec.slug, run.folder.name})
    given = Counter(lines(page))
    for verified in (None, found):
        with tempfile.TemporaryDirectory() as place:
            assayed, plain = Path(place) / "assayed.html", Path(place) / "plain.html"
            write_page(assayed, render_html(told, papers, verified, made))
            write_page(plain, render_html(told, papers, verified, None))
            made_lines, page_lines = lines(assayed), lines(page)
            if len(made_lines) == len(page_lines) and all(map(close_text, made_lines, page_lines)):
                return [], ""
            lost = Counter(lines(assayed)) & Counter(lines(plain))
            lost -= given
        if not lost:
            why = f"{page.name} shows an assay, and assay.json is not here"
            return [], f"{why}; tradeassay assay {shlex.quote(str(run.folder))} makes it again"
        first = first or [f"{page.name} is not what the record gives: it lacks {next(iter(lost)).strip()[:80]!r}"]
    return first, ""


def _told(page: Path, words: Set[str]) -> list[str]:
    """Return what a page tells that no version says otherwise, in order: numbers that it shows or holds packed,
    and texts that are one of ``words``, such as who is named and how it is judged."""
    found: list[str] = []
    for part in _UNSEEN.split("\n".join(_lines(page))):
        text = html.unescape(part).strip()
        found += [text] if text in words else _NUMBER.findall(text)
    return found


def compose_paper(folder: Path, record: PaperRecord) -> tuple[PaperPage, Badges]:
    """Put the runs of a paper together; with what a reader must know of them."""
    made = [load_run(folder / name) for name in record.runs]
    badges: dict[tuple[str, str], None] = {}
    for one in made:
        if isinstance(one, Run):
            for cell in dict.fromkeys(episode.cell for episode in one.episodes):
                badges |= dict.fromkeys(badge_words(one.cell_badges(cell)))
        else:
            badges |= dict.fromkeys(run_badges(one, shown_run(one)))
    return paper_page(made, attribution=record.attribution, probe=record.probe), tuple(badges)


def record_paper(folder: Path, record: PaperRecord, page: PaperPage, badges: Badges) -> Path:
    """Write a paper's page, and beside it what it was made of."""
    write_atomic(folder / PAPER, canonical_json(record))
    return write_paper(page, folder, badges)


def read_paper(folder: Path) -> PaperRecord:
    """Return what a paper's page was made of; raises :class:`RunError` where that cannot be read."""
    try:
        found = msgspec.json.decode((folder / PAPER).read_bytes(), type=PaperRecord)
    except (FileNotFoundError, *UNDECODABLE) as error:
        raise RunError(f"{folder / PAPER} cannot be read: {error}", hint="reproduce the paper again") from None
    if any(Path(name).name != name for name in found.runs):
        raise RunError(f"{folder / PAPER} names runs outside its folder", hint="do not believe the page")
    return found


def verify_paper(
    folder: Path,
    record: PaperRecord,
    verdict: Callable[[Path], Attestation],
    compose: Callable[[Path, PaperRecord], tuple[PaperPage, Badges]] = compose_paper,
) -> VerifyReport:
    """Verify the runs of a paper by ``verdict``, then make its page and its tables from them again and compare."""
    found: dict[str, Attestation] = {}
    for name in record.runs:
        try:
            found[name] = verdict(folder / name)
        except TradeassayError as error:
            found[name] = Attestation(root="", word="unverified", why=(error.message,))
    probed = [] if record.probe is None else [_probed(record)]
    wrong: list[str] = []
    notes: list[str] = []
    if all(one.word != "contradicted" for one in found.values()):
        with tempfile.TemporaryDirectory() as place:
            page, badges = compose(folder, record)
            write_paper(page, Path(place), badges)
            wrong = list(_others(Path(place), folder, ("paper.html", "tables/*"), None))
        if not wrong:
            notes += _misleading(folder / "paper.html", folder)
    return msgspec.structs.replace(_report(folder, found, wrong, probed), notes=tuple(notes))


def _probed(record: PaperRecord) -> ClaimOutcome:
    probe = record.probe
    assert probe is not None
    attackers = tuple(dict.fromkeys(row.attacker for row in probe.rows))
    if models := [name for name in attackers if "/" in name]:
        why = f"what {', '.join(models)} answered is as recorded"
        return ClaimOutcome(claim="probe", outcome="cannot be checked", why=why)
    again = probe_mask(probe.benchmark, attackers, dataset=probe.dataset, config=probe.config)
    same = canonical_json(again) == canonical_json(probe)
    return ClaimOutcome(claim="probe", outcome="re-derived" if same else "contradicted")


def verify_site(
    site: Path, runs: Path, *, workers: int | None = None, progress: CountListener | None = None
) -> VerifyReport:
    """Write a site again from the runs that it shows, each verified, and compare every file of it.

    Where ``runs`` holds others than the site shows, what differs is named and contradicts nobody: the site may be
    older. Raises :class:`RunError` where no run can be shown."""
    with tempfile.TemporaryDirectory() as place:
        done = write_site(runs, Path(place), workers=workers, progress=progress)
        wrong = list(_others(Path(place), site, ("**/*",)))
        then, now = (_slugs(folder / "runs.json") for folder in (site, Path(place)))
    loaded = [one for name in done.runs if isinstance(one := load_run(runs / name), Run)]
    unsure = [
        f"the assay of {one.folder.name} cannot be made again here"
        for one in loaded
        if wrong and (one.folder / "assay.json").is_file() and recorded_assay(one) is None
    ]
    if then is not None and now is not None and then != now:
        unsure.append(f"{runs} and the site do not hold the same runs ({', '.join(sorted(then ^ now))})")
    unlike = {name for name, one in done.runs.items() if one.word == "unverified"}
    unlike |= {one.folder.name for one in loaded if one.manifest.absent_benchmarks}
    if unlike and not unsure:  # pages of other runs do not depend on them
        sure = [one for one in wrong if one.startswith("runs/") and one.split("/")[1] not in unlike]
        wrong, unsure = sure or wrong, [] if sure else [f"not all of {', '.join(sorted(unlike))} is known here"]
    if not wrong or not unsure:
        return _report(site, done.runs, wrong)
    why = f"{'; '.join(unsure)}: {'; '.join(wrong[:3])}"
    return _report(site, done.runs, [], [ClaimOutcome(claim="pages", outcome="cannot be checked", why=why)])


def _slugs(file: Path) -> set[str] | None:
    try:
        return {str(one["slug"]) for one in msgspec.json.decode(file.read_bytes())}
    except (OSError, KeyError, TypeError, *UNDECODABLE):
        return None


def _report(
    folder: Path, runs: Mapping[str, Attestation], wrong: Iterable[str], more: Iterable[ClaimOutcome] = ()
) -> VerifyReport:
    outcomes: dict[VerdictWord, Word] = {
        **{"verified": "re-derived", "named": "consistent"},
        **{"unverified": "cannot be checked", "contradicted": "contradicted"},
    }
    claims = [
        ClaimOutcome(claim=name, outcome=outcomes[one.word], why="; ".join(one.why)) for name, one in runs.items()
    ]
    wrong, more = list(wrong), list(more)
    if not any(one.claim == "pages" for one in more):
        claims.append(ClaimOutcome(claim="pages", outcome="contradicted" if wrong else "re-derived"))
    return VerifyReport(
        folder=str(folder),
        episodes=len(runs),
        steps=0,
        counted="run",
        claims=(*claims, *more),
        violations=tuple(Violation(check="pages", what=what) for what in wrong),
    )


def _others(
    made: Path, given: Path, patterns: tuple[str, ...], called: Collection[str] | None = ()
) -> Iterator[str]:
    """Yield the files below ``given`` that are not those which were ``made``, are missing, or nobody's.

    ``called`` are the names of the folder that a page's commands are about; None: it has none of its own."""
    lines = partial(_lines, called=called)

    def files(folder: Path) -> dict[str, Path]:
        found = (path for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file())
        return {path.relative_to(folder).as_posix(): path for path in found if not is_litter(path.name)}

    ours, theirs = files(made), files(given)
    for name in sorted({*ours, *theirs}):
        if name not in theirs:
            yield f"{name} is missing"
        elif name not in ours:
            yield f"{name} is not among what is written"
        elif theirs[name].is_symlink():
            yield f"{name} is a link"
        elif ours[name].read_bytes() != theirs[name].read_bytes():
            pairs = zip(lines(theirs[name]), lines(ours[name]), strict=False)
            differ = ((at, then, now) for at, (then, now) in enumerate(pairs, 1) if not close_text(then, now))
            at, then, now = next(differ, (0, "", ""))
            if at:
                alike = zip(then, now, strict=False)  # to the end of the shorter one, where a page was cut
                start = next((n for n, (a, b) in enumerate(alike) if a != b), min(len(then), len(now)))
                then, now = (text[max(0, start - 15) : start + 25] for text in (then, now))
                yield f"{name} is not what the record gives: line {at} has {then!r} for {now!r}"
            elif len(lines(theirs[name])) != len(lines(ours[name])):
                yield f"{name} is longer or shorter than what the record gives"


def _lines(path: Path, called: Collection[str] | None = None) -> list[str]:
    text = _HERE.sub(partial(_placeless, called=called), path.read_text(errors="surrogateescape"))
    text = _WHEN.sub("", text)
    text = _WRITER.sub("", text)
    text = _PACK.sub(_opened, text)
    return _COUNT.sub("a run of ", text).splitlines()


def _placeless(command: re.Match[str], called: Collection[str] | None) -> str:
    """Return a command without its path, which is another wherever the run lies, and with a name that is none of
    the run's. Anything but one path, which readers would paste into a shell, stays as it is."""
    name, path, option = command.groups()
    said = html.unescape(path)
    try:
        words = shlex.split(said)
    except ValueError:  # a quotation without end
        return command[0]
    if [shlex.quote(word) for word in words] != [said]:
        return command[0]
    folder = Path(words[0]).name
    stranger = "" if called is None or folder in called else f" {folder}"
    return f"{name}{stranger}{option}"


def _opened(pack: re.Match[str]) -> str:
    """Return what a page holds packed: Pythons write other headers, and libraries pack otherwise."""
    unpack = zlib.decompressobj(wbits=31)
    try:
        inside = unpack.decompress(base64.b64decode(pack[0].strip('"'), validate=True), _LARGEST)
    except (ValueError, zlib.error):
        return pack[0]
    return inside.decode(errors="replace") if unpack.eof and not unpack.unused_data else pack[0]


def _counted(text: str) -> int:
    said = _COUNT.search(text)
    return 0 if said is None else int(said[1] or 1)
