"""Write cards: a run's results for a model's page, and the facts of a benchmark version.

The results card is Markdown after the ``model-index`` metadata that model hubs read. A benchmark's
card is Markdown and Croissant metadata (JSON-LD). Both state only the facts about the data that are
known here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core import __version__
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import sha256_of
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.benchmarks.code_protocol import code_benchmarks, find_protocol
from tradeassay_bench.benchmarks.rules_text import rules_text
from tradeassay_bench.data.datasets import list_datasets
from tradeassay_bench.report.paste_cells import PasteTable

_TERMS = (
    "citeAs column equivalentProperty extract field fileObject fileProperty fileSet format "
    "includes isLiveDataset "
    "jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate "
    "separator source "
    "subField transform"
)
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    **{name: {"@id": f"cr:{name}", "@type": "@json"} for name in ("data", "examples")},
    **{name: f"cr:{name}" for name in _TERMS.split()},
}
"""The complete vocabulary of Croissant 1.0, because its validator compares it."""
_BAR_FIELDS = (
    ("session", "sc:Date", "day of the market's calendar"),
    ("symbol", "sc:Text", "name of the instrument"),
    ("open", "sc:Float", "first price, as traded"),
    ("high", "sc:Float", "highest price"),
    ("low", "sc:Float", "lowest price"),
    ("close", "sc:Float", "last price"),
    ("volume", "sc:Float", "what was traded"),
)
_TASK_FIELDS = (
    ("id", "sc:Text", "the task's id"),
    ("text", "sc:Text", "the task of a program"),
    ("terms", "sc:Text", "market, bars, cash, commission, sizing"),
)


class BenchmarkCard(msgspec.Struct, frozen=True, kw_only=True):
    """The known facts about one benchmark version.

    ``sha256`` is the hash of its data, if the data is in the store.
    """

    id: str
    title: str
    description: str
    rules: str = ""
    rules_sha256: str | None = None
    dataset: str
    kind: str
    window: str = ""
    licence: str
    sha256: str | None = None
    biases: tuple[str, ...] = ()
    get: str
    fields: tuple[tuple[str, str, str], ...]


def results_card(tables: Sequence[PasteTable], body: str) -> str:
    """Return the card of a run: ``model-index`` metadata of every agent, then Markdown tables.

    The metadata omits measures without a value. ``verified`` is false, because the hub has not
    checked them.
    """
    models: dict[str, list[str]] = {}
    for table in tables:
        for row in table.rows:
            lines = [
                f"    - {{type: {_text(title)}, value: {cell.value!r}, name: {_text(cell.text)}, "
                "verified: false}"
                for title, cell in zip(table.columns, row, strict=True)
                if cell.value is not None and title not in ("#", "tier")
            ]
            about = [
                '  - task: {type: "other", name: "trading"}',
                f'    dataset: {{name: {_text(table.title)}, type: "tradeassay"}}',
                f'    source: {{name: "tradeassay {__version__}"}}',
                "    metrics:",
            ]
            if lines:
                models.setdefault(row[table.named].text, []).extend((*about, *lines))
    index: list[str] = []
    for name, results in models.items():
        index.extend((f"- name: {_text(name)}", "  results:", *results))
    head = ['tags: ["tradeassay"]', *(["model-index:"] if index else []), *index]
    return "\n".join(["---", *head, "---", "", body])


def _text(text: str) -> str:
    return json.dumps(" ".join(text.split()), ensure_ascii=False)  # JSON text is also valid YAML


def write_cards(folder: Path, name: str | None = None) -> list[Path]:
    """Write ``ID.md`` and ``ID.croissant.json`` for one benchmark version, or for all.

    Returns the paths of the files.
    """
    code = set(code_benchmarks())
    if name is None:
        names = sorted({*benchmarks.names(), *code})
    else:
        names = [name if name in code else benchmarks.get(name).id]
    stored = {info.name: info for info in list_datasets()}
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for benchmark_id in names:
        if benchmark_id in code:
            kind = find_protocol(benchmark_id)
            about = BenchmarkCard(
                id=benchmark_id,
                title=kind.title,
                description="Tasks in words, a reference program for each, and markets drawn from "
                "a run's secret.",
                dataset="the tasks of this package",
                kind="written for this package, judged on synthetic markets",
                licence="Apache-2.0",
                get=kind.listing,
                fields=_TASK_FIELDS,
            )
        else:
            benchmark = benchmarks.get(benchmark_id)
            info, synthetic = (
                stored.get(benchmark.dataset),
                benchmark.dataset.startswith("synthetic/"),
            )
            about = BenchmarkCard(
                id=benchmark.id,
                title=benchmark.title,
                description=benchmark.description,
                rules=rules_text(benchmark),
                rules_sha256=sha256_of(benchmark),
                dataset=benchmark.dataset,
                kind="synthetic, made from a seed" if synthetic else "real",
                window=f"{benchmark.market.first} to {benchmark.market.last}",
                licence="generated; free to use"
                if synthetic
                else "the licence of the data's vendor",
                sha256=None if info is None or info.problem else info.sha256,
                biases=() if info is None else info.biases,
                get=f"tradeassay run {benchmark.id}"
                if synthetic
                else f"tradeassay data get {benchmark.dataset}",
                fields=_BAR_FIELDS,
            )
        described = json.dumps(croissant(about), indent=1) + "\n"
        for file, text in (
            (f"{benchmark_id}.md", data_card(about)),
            (f"{benchmark_id}.croissant.json", described),
        ):
            write_atomic(folder / file, text.encode("utf-8"))
            written.append(folder / file)
    return written


def data_card(about: BenchmarkCard) -> str:
    """Return a benchmark's card as Markdown."""
    rows = [
        ("data", about.dataset),
        ("kind", about.kind),
        ("window", about.window),
        ("licence", about.licence),
        ("sha256 of the data here", about.sha256 or "not in the store of this machine"),
        ("sha256 of the rules", about.rules_sha256 or "in the manifest of every run"),
        ("known biases", "; ".join(about.biases) or "none stated"),
        ("get it", f"`{about.get}`"),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows if value)
    rules = f"\n## Rules\n\n{about.rules.strip()}\n" if about.rules else ""
    return (
        f"# {about.id}\n\n{about.title}. {about.description}\n\n| | |\n|---|---|\n{table}\n{rules}"
    )


def croissant(about: BenchmarkCard) -> dict[str, Any]:
    """Return Croissant 1.0 metadata.

    Without a stored data set there is no file to list. The fields are then plain variables, because
    a record without a source is invalid.
    """
    described: dict[str, Any] = {
        "variableMeasured": [
            {"@type": "sc:PropertyValue", "name": name, "description": words}
            for name, _, words in about.fields
        ]
    }
    if about.sha256:
        stored = {
            "@type": "cr:FileSet",
            "@id": "snapshot",
            "name": "snapshot",
            "encodingFormat": "application/vnd.apache.arrow.file",
            "includes": "*.arrow",
            "description": f"snapshot with the hash {about.sha256}, in the local store",
        }
        fields = [
            {
                "@type": "cr:Field",
                "@id": f"records/{name}",
                "name": name,
                "description": words,
                "dataType": kind,
                "source": {"fileSet": {"@id": "snapshot"}, "extract": {"column": name}},
            }
            for name, kind, words in about.fields
        ]
        records = {"@type": "cr:RecordSet", "@id": "records", "name": "records", "field": fields}
        described = {"distribution": [stored], "recordSet": [records]}
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": about.id,
        "description": f"{about.title}. {about.description}",
        "license": about.licence,
        "version": f"{about.id.rpartition('-v')[2] if '-v' in about.id else '0'}.0.0",
        "creator": {"@type": "sc:Organization", "name": "The tradeassay developers"},
        "isLiveDataset": False,
        **described,
    }
