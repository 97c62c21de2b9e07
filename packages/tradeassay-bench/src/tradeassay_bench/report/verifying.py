"""Verify the files beside a run's record: its page is written again from the record and compared.

Two parts of a page depend on the place where it was written and are compared apart: the path in its
commands, and the number of runs in its folder. A path to another run is reported, because a page
could send its readers to somebody else's honest run.

A page that was written by another version of tradeassay may state the same numbers in other words.
That cannot be checked here, and is no contradiction. A paper's page is made of the runs in its
folder, and these are verified.
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
from collections.abc import Callable, Collection, Iterator, Set
from functools import partial
from itertools import product
from pathlib import Path

import msgspec

from tradeassay.core import __version__
from tradeassay.core.errors import UNDECODABLE, TradeassayError
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import canonical_json
from tradeassay.core.measure import BadgeTexts
from tradeassay.report.shell import write_page
from tradeassay.report.words import badge_words
from tradeassay.verdict import LABELS
from tradeassay.verdict.record import NOT_FIRM, OTHER_LABELS, VerdictConfig
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.benchmarks.exhibits import PaperPage
from tradeassay_bench.core.closeness import close_line, close_text
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.files import is_litter
from tradeassay_bench.examine.assay_file import brought_assay, check_assay
from tradeassay_bench.examine.judge import assay_run
from tradeassay_bench.examine.probe import ProbeReport, probe_mask
from tradeassay_bench.papers import paper_page, paper_pages
from tradeassay_bench.papers.ama import SeasonExport, ama_badges, ama_page
from tradeassay_bench.report.code_page import run_badges, shown_run
from tradeassay_bench.report.paper_page import write_paper
from tradeassay_bench.report.run_html import render_html, write_html
from tradeassay_bench.runs import CodeRun, Run, load_run
from tradeassay_bench.runs.store.outcome import ClaimOutcome, Violation, Word
from tradeassay_bench.runs.summary import summary_of
from tradeassay_bench.runs.verify.report import (
    NOT_RENDERED,
    VerdictWord,
    VerifyReport,
    in_any_venue,
)

PAPER = "paper.json"
_CARDS = "cards/*"
"""The scorecards beside a run's page."""
_HERE = re.compile(
    r"(?<=<code data-placed>tradeassay )(verify|resume|assay) ([^<>]+?)((?: --[a-z-]+)?)(?=<)"
)
"""A command about the folder of a page: its name, the path, and an option."""
_COUNT = re.compile(r"(?:the only run|one of (\d+) runs) of ")
_WRITER = re.compile(r"(?<=<meta name=\"generator\" content=\"tradeassay)[^\"<>]*(?=\">)")
_UNSEEN = re.compile(r"<style>.*?</style>|<script>.*?</script>|<[^>]*>", re.DOTALL)
_NUMBER = re.compile(r"[-+\u2212]?\d[\d,.]*%?")
_LIVE = re.compile(
    r"<style\b.*?</style>|<script\b.*?</script>|<(?:base|embed|iframe|img|link|object)\b[^>]*>|\s(?:on\w+|style)=[^>]*",
    re.DOTALL | re.IGNORECASE,
)
"""Content that may make a browser show something else than a page's text."""
_CHIP = re.compile(r"<span class=\"chip[^>]*>(?:<span[^>]*>[^<]*</span> )?([^<]+)</span>")
_VERDICTS = frozenset((*LABELS.values(), *NOT_FIRM.values(), *OTHER_LABELS))
_ASSAYED = "Every session's return is split into market, style, selection and trading"
_PACK = re.compile(r"(?<=>)\"?H4sI[A-Za-z0-9+/=]+\"?(?=<)")
_LARGEST = 1 << 28
"""The largest pack that is opened, in bytes."""


class PaperRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record beside ``paper.html``: the runs or seasons of the page, and how it was made.

    ``replayed`` are the seasons whose models were not asked. ``probe`` is what attackers of a mask
    recovered.
    """

    runs: tuple[str, ...]
    attribution: bool = True
    probe: ProbeReport | None = None
    replayed: tuple[str, ...] = ()


def check_beside(run: Run | CodeRun, report: VerifyReport) -> VerifyReport:
    """Make the assay and the page beside an intact record again, and add their claims to the
    report."""
    if isinstance(run, Run) and (run.folder / "assay.json").is_file():
        report = check_assay(run, report)
    page = run.folder / "report.html"
    if not page.is_file():
        return _check_scorecards(run, report)
    notes = [note for note in report.notes if note != NOT_RENDERED]
    missing = [
        checked.why
        for checked in report.claims
        if checked.claim == "data" and checked.outcome != "re-derived"
    ]
    wrong: list[str] = []
    worded = None
    strangers = {} if isinstance(run, CodeRun) else run.manifest.absent_benchmarks
    try:
        wrong, worded = ([], None) if missing else _other_page(run, report, page)
        if wrong and strangers:  # the page was written where these benchmarks are registered
            with benchmarks.knowing(strangers):
                wrong, worded = _other_page(run, report, page)
            titled = "the page matches the record, with titles from the runner"
            missing = [f"{titled}: '{name}' is not registered here" for name in strangers]
        if wrong and isinstance(run, Run) and _lost_its_assay(run, page):
            wrong, unassayed = _other_page_without_assay(run, report, page)
            missing += [unassayed] if unassayed else []
        unsure = [
            checked.why
            for checked in report.claims
            if checked.claim == "account" and checked.outcome == "cannot be checked"
        ]
        if wrong and unsure:  # a page shows a venue's rules, and they are not the run's here
            wrong, missing = [], [f"{unsure[0]}: {wrong[0]}"]
    except TradeassayError as error:
        missing = [error.message]
        with contextlib.suppress(TradeassayError), benchmarks.knowing(strangers):
            pages = in_any_venue(strangers.values(), lambda: _other_page(run, report, page)[0])
            wrong = pages[0] if pages and pages[0] == pages[-1] else []
    outcome = _outcome(wrong, missing)
    made = run.manifest.versions.packages.get("tradeassay", __version__)
    why = next(iter((*wrong, *missing)), "")
    written = page.read_text(errors="replace")
    writer_match = _WRITER.search(written)
    writer = "" if writer_match is None else writer_match[0].strip()
    if worded is not None and writer != __version__:
        whose = f"tradeassay {writer}" if writer else "an earlier tradeassay"
        why = f"report.html was written by {whose}, the same numbers in other words ({worded})"
        outcome = "cannot be checked"
        why = f"{why}; tradeassay report {shlex.quote(str(run.folder))} -o FILE writes it anew"
    elif wrong and __version__ not in (made, writer):
        outcome, why = "cannot be checked", f"the run was made with tradeassay {made}: {why}"
    counted_then, counted_now = (
        _counted(written),
        _counted("" if report.freedom is None else report.freedom.sentence),
    )
    if not wrong and counted_now and counted_then < counted_now:
        notes.append(
            f"report.html counts {counted_then} runs of its benchmark in the folder, there are {counted_now}"
        )
    if outcome == "re-derived":
        notes += _misleading(page, run.folder)
    claim = ClaimOutcome(claim="page", outcome=outcome, why=why)
    return report.and_claim(claim, notes)


def _check_scorecards(run: Run | CodeRun, report: VerifyReport) -> VerifyReport:
    """Make the scorecards beside a record without a page again, and add their claim to the report.

    Scorecards may be passed on without the page. Missing ones prove nothing.
    """
    cards = [card.name for card in sorted(run.folder.glob(_CARDS)) if not is_litter(card.name)]
    if not cards:
        return report
    patterns = tuple(f"cards/{glob.escape(name)}" for name in cards)
    wrong: list[str] = []
    missing = ""
    try:
        wrong = _other_page(run, report, run.folder / "report.html", patterns)[0]
    except TradeassayError as error:
        missing = error.message
    made = run.manifest.versions.packages.get("tradeassay", __version__)
    if wrong and made != __version__:
        wrong, missing = [], f"the run was made with tradeassay {made}: {wrong[0]}"
    outcome = _outcome(wrong, missing)
    why = next(iter(wrong), missing)
    return report.and_claim(
        ClaimOutcome(claim="scorecards", outcome=outcome, why=why), report.notes
    )


def _outcome(wrong: Collection[str], missing: Collection[str]) -> Word:
    if wrong:
        return "contradicted"
    return "cannot be checked" if missing else "re-derived"


def _misleading(page: Path, folder: Path) -> Iterator[str]:
    """Yield the commands of a compared page that lead to another folder."""
    for command in dict.fromkeys(
        match.groups() for match in _HERE.finditer(page.read_text(errors="replace"))
    ):
        name, path, _ = command
        (target,) = shlex.split(html.unescape(path))
        parts, place = Path(target).parts, folder.resolve()
        # Only the end of a path need be on a page: it may have been written from another folder.
        if place.parts[-len(parts) :] != parts and Path(target).resolve() != place:
            yield f"{page.name} tells its readers to {name} {target}, which is not what was checked"


def _other_page(
    run: Run | CodeRun,
    report: VerifyReport,
    page: Path,
    patterns: tuple[str, ...] = ("report.html", _CARDS),
) -> tuple[list[str], str | None]:
    """Return how a run's page differs from every page that this package writes for it.

    The page is written with and without its assay, verified and not. Also returned is how the
    wording differs; None if the page states something else, or more than the page differs.
    ``patterns`` are the files that are compared.
    """
    first: list[str] = []
    worded = None
    names = frozenset(() if isinstance(run, CodeRun) else run.names.values())
    inputs = None if isinstance(run, CodeRun) else (summary_of(run), paper_pages(run))
    brought = None if isinstance(run, CodeRun) else brought_assay(run)
    for assay, verified in product({id(brought): brought, id(None): None}.values(), (None, report)):
        with tempfile.TemporaryDirectory() as place:
            written = Path(place) / page.name
            if inputs is None:
                write_html(run, written, verified=verified)
            else:
                write_page(written, render_html(*inputs, verified, assay))
            called = None if isinstance(run, CodeRun) else {run.spec.name, run.folder.name}
            wrong = list(_different_files(written.parent, run.folder, patterns, called))
            words = names | _VERDICTS | set(_CHIP.findall(written.read_text()))
            page_alone = [line.partition(" ")[0] for line in wrong] == [page.name]
            if page_alone and _stated_facts(written, words) == _stated_facts(page, words):
                worded = wrong[0].partition(": ")[2]
                if set(_LIVE.findall(page.read_text(errors="replace"))) - set(
                    _LIVE.findall(written.read_text())
                ):
                    worded += "; its scripts or styles are others, and may show anything"
        if not wrong:
            return [], None
        first = first or wrong
    return first, worded


def _lost_its_assay(run: Run, page: Path) -> bool:
    """Return whether a run's page shows an assay that is no longer in the run's folder."""
    return not (run.folder / "assay.json").is_file() and _ASSAYED in page.read_text(
        errors="replace"
    )


def _other_page_without_assay(run: Run, report: VerifyReport, page: Path) -> tuple[list[str], str]:
    """Return how a page without its assay contradicts the record, and what cannot be checked.

    Lines that are the same with a new assay and without one do not depend on the assay, so they
    must be in the page. The other lines may, because the assay's configuration was deleted with its
    file.
    """
    summary, papers = summary_of(run), paper_pages(run)
    assay = assay_run(run, VerdictConfig())
    first: list[str] = []
    lines = partial(_lines, called={run.spec.name, run.folder.name})
    page_line_counts = Counter(lines(page))
    for verified in (None, report):
        with tempfile.TemporaryDirectory() as place:
            assayed, plain = Path(place) / "assayed.html", Path(place) / "plain.html"
            write_page(assayed, render_html(summary, papers, verified, assay))
            write_page(plain, render_html(summary, papers, verified, None))
            made_lines, page_lines = lines(assayed), lines(page)
            if len(made_lines) == len(page_lines) and all(map(close_text, made_lines, page_lines)):
                return [], ""
            missing_lines = Counter(lines(assayed)) & Counter(lines(plain))
            missing_lines -= page_line_counts
        if not missing_lines:
            why = f"{page.name} shows an assay, and assay.json is not here"
            return [], f"{why}; tradeassay assay {shlex.quote(str(run.folder))} makes it again"
        first = first or [
            f"{page.name} is not what the record gives: it lacks {next(iter(missing_lines)).strip()[:80]!r}"
        ]
    return first, ""


def _stated_facts(page: Path, words: Set[str]) -> list[str]:
    """Return the facts of a page that every version states alike, in order.

    These are the numbers that it shows or holds packed, and texts that are one of ``words``, such
    as names and verdicts.
    """
    facts: list[str] = []
    for part in _UNSEEN.split("\n".join(_lines(page))):
        text = html.unescape(part).strip()
        facts += [text] if text in words else _NUMBER.findall(text)
    return facts


def compose_paper(folder: Path, record: PaperRecord) -> tuple[PaperPage, BadgeTexts]:
    """Put the runs of a paper together with their caveats."""
    runs = [load_run(folder / name) for name in record.runs]
    badges: dict[tuple[str, str], None] = {}
    for run in runs:
        if isinstance(run, Run):
            for setting in dict.fromkeys(episode.setting for episode in run.episodes):
                badges |= dict.fromkeys(badge_words(run.setting_badges(setting)))
        else:
            badges |= dict.fromkeys(run_badges(run, shown_run(run)))
    return paper_page(runs, attribution=record.attribution, probe=record.probe), tuple(badges)


def compose_seasons(
    folder: Path, record: PaperRecord, export: Callable[[Path], SeasonExport]
) -> tuple[PaperPage, BadgeTexts]:
    """Put the seasons of a paper together with their caveats."""
    seasons = [export(folder / name) for name in record.runs]
    replayed = [name in record.replayed for name in record.runs]
    return ama_page(seasons), ama_badges(seasons, replayed)


def record_paper(folder: Path, record: PaperRecord, page: PaperPage, badges: BadgeTexts) -> Path:
    """Write a paper's page and, beside it, the record of its runs."""
    write_atomic(folder / PAPER, canonical_json(record))
    return write_paper(page, folder, badges)


def read_paper(folder: Path) -> PaperRecord:
    """Return the record of a paper's page. Raises :class:`RunError` if it cannot be read."""
    try:
        record = msgspec.json.decode((folder / PAPER).read_bytes(), type=PaperRecord)
    except (FileNotFoundError, *UNDECODABLE) as error:
        raise RunError(
            f"{folder / PAPER} cannot be read: {error}", hint="reproduce the paper again"
        ) from None
    if any(Path(name).name != name for name in record.runs):
        raise RunError(
            f"{folder / PAPER} names runs outside its folder", hint="do not believe the page"
        )
    return record


def verify_paper(
    folder: Path, record: PaperRecord, check: Callable[[Path], VerifyReport]
) -> VerifyReport:
    """Verify the runs of a paper's page with ``check``, and what attackers of a mask recovered."""
    outcomes: dict[VerdictWord, Word] = {
        **{"verified": "re-derived", "warning": "consistent"},
        **{"unverified": "cannot be checked", "contradicted": "contradicted"},
    }
    claims = list[ClaimOutcome]()
    for name in record.runs:
        try:
            report = check(folder / name)
        except TradeassayError as error:
            claims.append(ClaimOutcome(claim=name, outcome="cannot be checked", why=error.message))
            continue
        reasons = map(str, report.violations[:3]) if report.contradicted else report.unchecked
        claims.append(
            ClaimOutcome(claim=name, outcome=outcomes[report.word], why="; ".join(reasons))
        )
    if record.probe is not None:
        claims.append(_probed(record.probe))
    return VerifyReport(
        folder=str(folder),
        episodes=len(record.runs),
        steps=0,
        counted="run",
        claims=tuple(claims),
        violations=tuple(
            Violation(check=claim.claim, what=claim.why)
            for claim in claims
            if claim.outcome == "contradicted"
        ),
        notes=("the paper's page and tables were not made again: reproduce writes them anew",),
    )


def _probed(probe: ProbeReport) -> ClaimOutcome:
    """Make the attack on a mask again and compare."""
    attackers = tuple(dict.fromkeys(row.attacker for row in probe.rows))
    if models := [name for name in attackers if "/" in name]:
        why = f"what {', '.join(models)} answered is as recorded"
        return ClaimOutcome(claim="probe", outcome="cannot be checked", why=why)
    again = probe_mask(probe.benchmark, attackers, dataset=probe.dataset, config=probe.config)
    same = close_line(canonical_json(again), canonical_json(probe))
    return ClaimOutcome(claim="probe", outcome="re-derived" if same else "contradicted")


def _different_files(
    made: Path, given: Path, patterns: tuple[str, ...], called: Collection[str] | None = ()
) -> Iterator[str]:
    """Yield the files below ``given`` that differ from the ``made`` ones, are missing, or do not
    belong.

    ``called`` are the names of the folder in a page's commands; None if the page has none.
    """
    lines = partial(_lines, called=called)

    def files(folder: Path) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for pattern in patterns:
            for path in sorted(folder.glob(pattern)):
                if path.is_file() and not is_litter(path.name):
                    found[path.relative_to(folder).as_posix()] = path
        return found

    written, present = files(made), files(given)
    for name in sorted({*written, *present}):
        if name not in present:
            yield f"{name} is missing"
        elif name not in written:
            yield f"{name} is not among what is written"
        elif present[name].is_symlink():
            yield f"{name} is a link"
        elif written[name].read_bytes() != present[name].read_bytes():
            pairs = zip(lines(present[name]), lines(written[name]), strict=False)
            differ = (
                (at, then, now)
                for at, (then, now) in enumerate(pairs, 1)
                if not close_text(then, now)
            )
            at, then, now = next(differ, (0, "", ""))
            if at:
                # To the end of the shorter one, in case a page was cut.
                alike = zip(then, now, strict=False)
                start = next(
                    (n for n, (a, b) in enumerate(alike) if a != b), min(len(then), len(now))
                )
                then, now = (text[max(0, start - 15) : start + 25] for text in (then, now))
                yield f"{name} is not what the record gives: line {at} has {then!r} for {now!r}"
            elif len(lines(present[name])) != len(lines(written[name])):
                yield f"{name} is longer or shorter than what the record gives"


def _lines(path: Path, called: Collection[str] | None = None) -> list[str]:
    text = _HERE.sub(partial(_placeless, called=called), path.read_text(errors="surrogateescape"))
    text = _WRITER.sub("", text)
    text = _PACK.sub(_opened, text)
    return _COUNT.sub("a run of ", text).splitlines()


def _placeless(command: re.Match[str], called: Collection[str] | None) -> str:
    """Return a command without the path to the run, and with a placeholder for the run's name.

    Anything but one path stays, because readers would paste it into a shell.
    """
    name, path, option = command.groups()
    unescaped = html.unescape(path)
    try:
        words = shlex.split(unescaped)
    except ValueError:  # an unclosed quotation mark
        return command[0]
    if [shlex.quote(word) for word in words] != [unescaped]:
        return command[0]
    folder = Path(words[0]).name
    stranger = "" if called is None or folder in called else f" {folder}"
    return f"{name}{stranger}{option}"


def _opened(pack: re.Match[str]) -> str:
    """Return a pack's content. Python versions write other headers, and libraries compress
    differently."""
    unpack = zlib.decompressobj(wbits=31)
    try:
        inside = unpack.decompress(base64.b64decode(pack[0].strip('"'), validate=True), _LARGEST)
    except (ValueError, zlib.error):
        return pack[0]
    return inside.decode(errors="replace") if unpack.eof and not unpack.unused_data else pack[0]


def _counted(text: str) -> int:
    said = _COUNT.search(text)
    return 0 if said is None else int(said[1] or 1)
