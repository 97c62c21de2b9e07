"""Verify the files next to a run's record: rewrite its page from the record and compare.

Two parts of a page depend on the place where it was written and are compared separately: the path
in its commands, and the number of runs in its folder. A path to a different run is reported,
because a page could refer its readers to an honest run of a different author.

A page from a different version of tradeassay may state the same numbers in different words. Such a
page cannot be checked here, and is not a contradiction. A paper's page is derived from the runs in
its folder, which are verified.
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
from tradeassay_bench.runs.store.outcome import ClaimOutcome, ClaimStatus, Violation
from tradeassay_bench.runs.summary import summary_of
from tradeassay_bench.runs.verify.report import (
    NOT_RENDERED,
    VerdictWord,
    VerifyReport,
    in_any_venue,
)

PAPER = "paper.json"
_CARDS = "cards/*"
"""The scorecards next to a run's page."""
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
"""Content that may make a browser display something different from a page's text."""
_CHIP = re.compile(r"<span class=\"chip[^>]*>(?:<span[^>]*>[^<]*</span> )?([^<]+)</span>")
_VERDICTS = frozenset((*LABELS.values(), *NOT_FIRM.values(), *OTHER_LABELS))
_ASSAYED = "Every session's return is split into market, style, selection and trading"
_PACK = re.compile(r"(?<=>)\"?H4sI[A-Za-z0-9+/=]+\"?(?=<)")
_LARGEST = 1 << 28
"""The maximum size of a pack that is opened, in bytes."""


class PaperRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record next to ``paper.html``: the runs or seasons of the page, and its options.

    ``replayed`` lists the seasons with replayed answers. ``probe`` contains the results of the
    attackers of a mask.
    """

    runs: tuple[str, ...]
    attribution: bool = True
    probe: ProbeReport | None = None
    replayed: tuple[str, ...] = ()


def check_beside(run: Run | CodeRun, report: VerifyReport) -> VerifyReport:
    """Recompute the assay and the page next to an intact record, and report their claims."""
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
        if wrong and unsure:  # the venue's rules on the page differ from the rules here
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
        why = (
            f"report.html was written by {whose}, with the same numbers in different words "
            f"({worded})"
        )
        outcome = "cannot be checked"
        why = f"{why}; tradeassay report {shlex.quote(str(run.folder))} -o FILE rewrites it"
    elif wrong and __version__ not in (made, writer):
        outcome, why = "cannot be checked", f"the run was made with tradeassay {made}: {why}"
    counted_then, counted_now = (
        _counted(written),
        _counted("" if report.freedom is None else report.freedom.sentence),
    )
    if not wrong and counted_now and counted_then < counted_now:
        notes.append(
            f"report.html counts {counted_then} runs of its benchmark in the folder, but there are "
            f"{counted_now}"
        )
    if outcome == "re-derived":
        notes += _misleading(page, run.folder)
    claim = ClaimOutcome(claim="page", outcome=outcome, why=why)
    return report.and_claim(claim, notes)


def _check_scorecards(run: Run | CodeRun, report: VerifyReport) -> VerifyReport:
    """Rewrite the scorecards next to a record without a page, and add their claim to the report.

    Scorecards may be shared without the page. Missing scorecards prove nothing.
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


def _outcome(wrong: Collection[str], missing: Collection[str]) -> ClaimStatus:
    if wrong:
        return "contradicted"
    return "cannot be checked" if missing else "re-derived"


def _misleading(page: Path, folder: Path) -> Iterator[str]:
    """Yield a sentence for every command of a compared page that refers to a different folder."""
    for command in dict.fromkeys(
        match.groups() for match in _HERE.finditer(page.read_text(errors="replace"))
    ):
        name, path, _ = command
        (target,) = shlex.split(html.unescape(path))
        parts, place = Path(target).parts, folder.resolve()
        # The page needs only the end of a path, because it may have been written from a different
        # folder.
        if place.parts[-len(parts) :] != parts and Path(target).resolve() != place:
            yield (
                f"{page.name} tells its readers to {name} {target}, which is not the run that "
                "was checked"
            )


def _other_page(
    run: Run | CodeRun,
    report: VerifyReport,
    page: Path,
    patterns: tuple[str, ...] = ("report.html", _CARDS),
) -> tuple[list[str], str | None]:
    """Return the differences of a run's page from every page that this package writes for the run.

    The pages are written with and without the assay, verified and not. The second value is the
    difference in wording. It is None if the page states different facts, or if more than the page
    differs. ``patterns`` are the files that are compared.
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
                    worded += "; its scripts or styles differ, and may display anything"
        if not wrong:
            return [], None
        first = first or wrong
    return first, worded


def _lost_its_assay(run: Run, page: Path) -> bool:
    """Return whether a run's page contains an assay that is no longer in the run's folder."""
    return not (run.folder / "assay.json").is_file() and _ASSAYED in page.read_text(
        errors="replace"
    )


def _other_page_without_assay(run: Run, report: VerifyReport, page: Path) -> tuple[list[str], str]:
    """Return the contradictions of a page with a lost assay, and a note on its unverifiable part.

    Lines that are equal with a new assay and without one do not depend on the assay, so they must
    be in the page. All other lines may depend on it. The assay's configuration was deleted with its
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
            why = f"{page.name} contains an assay, but assay.json is missing"
            return [], f"{why}; tradeassay assay {shlex.quote(str(run.folder))} recomputes it"
        first = first or [
            f"{page.name} does not match the record: it lacks "
            f"{next(iter(missing_lines)).strip()[:80]!r}"
        ]
    return first, ""


def _stated_facts(page: Path, words: Set[str]) -> list[str]:
    """Return the facts of a page that do not depend on the version of tradeassay, in order.

    These are displayed or packed numbers, and texts that are in ``words``, such as names and
    verdicts.
    """
    facts: list[str] = []
    for part in _UNSEEN.split("\n".join(_lines(page))):
        text = html.unescape(part).strip()
        facts += [text] if text in words else _NUMBER.findall(text)
    return facts


def compose_paper(folder: Path, record: PaperRecord) -> tuple[PaperPage, BadgeTexts]:
    """Return a paper's page from its runs, with their caveats."""
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
    """Return a paper's page from its seasons, with their caveats."""
    seasons = [export(folder / name) for name in record.runs]
    replayed = [name in record.replayed for name in record.runs]
    return ama_page(seasons), ama_badges(seasons, replayed)


def record_paper(folder: Path, record: PaperRecord, page: PaperPage, badges: BadgeTexts) -> Path:
    """Write a paper's page and, next to it, the record of its runs."""
    write_atomic(folder / PAPER, canonical_json(record))
    return write_paper(page, folder, badges)


def read_paper(folder: Path) -> PaperRecord:
    """Return the record of a paper's page. Raises :class:`RunError` if it cannot be read."""
    try:
        record = msgspec.json.decode((folder / PAPER).read_bytes(), type=PaperRecord)
    except (FileNotFoundError, *UNDECODABLE) as error:
        raise RunError(
            f"{folder / PAPER} cannot be read: {error}", hint="repeat tradeassay reproduce"
        ) from None
    if any(Path(name).name != name for name in record.runs):
        raise RunError(
            f"{folder / PAPER} refers to runs outside its folder", hint="do not trust the page"
        )
    return record


def verify_paper(
    folder: Path, record: PaperRecord, check: Callable[[Path], VerifyReport]
) -> VerifyReport:
    """Verify the runs of a paper's page with ``check``, and the results of the attackers of a
    mask.
    """
    outcomes: dict[VerdictWord, ClaimStatus] = {
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
        notes=("the paper's page and tables were not recomputed: reproduce rewrites them",),
    )


def _probed(probe: ProbeReport) -> ClaimOutcome:
    """Repeat the attack on a mask and compare."""
    attackers = tuple(dict.fromkeys(row.attacker for row in probe.rows))
    if models := [name for name in attackers if "/" in name]:
        why = f"the answers of {', '.join(models)} are as recorded"
        return ClaimOutcome(claim="probe", outcome="cannot be checked", why=why)
    again = probe_mask(probe.benchmark, attackers, dataset=probe.dataset, config=probe.config)
    same = close_line(canonical_json(again), canonical_json(probe))
    return ClaimOutcome(claim="probe", outcome="re-derived" if same else "contradicted")


def _different_files(
    made: Path, given: Path, patterns: tuple[str, ...], called: Collection[str] | None = ()
) -> Iterator[str]:
    """Yield the files below ``given`` that differ from ``made``, are missing, or are extra.

    ``called`` contains the names of the folder in a page's commands. It is None if the page has no
    commands.
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
            yield f"{name} does not belong to the written files"
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
                # Compare up to the end of the shorter page, because a page may have been cut.
                alike = zip(then, now, strict=False)
                start = next(
                    (n for n, (a, b) in enumerate(alike) if a != b), min(len(then), len(now))
                )
                then, now = (text[max(0, start - 15) : start + 25] for text in (then, now))
                yield f"{name} does not match the record: line {at} has {then!r} for {now!r}"
            elif len(lines(present[name])) != len(lines(written[name])):
                yield f"{name} is longer or shorter than the record requires"


def _lines(path: Path, called: Collection[str] | None = None) -> list[str]:
    text = _HERE.sub(partial(_placeless, called=called), path.read_text(errors="surrogateescape"))
    text = _WRITER.sub("", text)
    text = _PACK.sub(_opened, text)
    return _COUNT.sub("a run of ", text).splitlines()


def _placeless(command: re.Match[str], called: Collection[str] | None) -> str:
    """Return a command without the path to the run, with a placeholder for the run's name.

    Anything that is not a single path is unchanged, because readers would paste it into a shell.
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
    """Return the content of a pack.

    Its bytes vary: Python versions write different headers, and libraries compress differently.
    """
    unpack = zlib.decompressobj(wbits=31)
    try:
        inside = unpack.decompress(base64.b64decode(pack[0].strip('"'), validate=True), _LARGEST)
    except (ValueError, zlib.error):
        return pack[0]
    return inside.decode(errors="replace") if unpack.eof and not unpack.unused_data else pack[0]


def _counted(text: str) -> int:
    said = _COUNT.search(text)
    return 0 if said is None else int(said[1] or 1)
