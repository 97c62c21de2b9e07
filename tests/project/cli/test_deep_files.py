"""A file nested a hundred thousand deep ends in one line that names it, whatever command reads
it.
"""

import polars as pl
import pytest

DEEP = 100_000
JSON = "[" * DEEP + "]" * DEEP
OBJECTS = '{"a":' * DEEP + "1" + "}" * DEEP
TOML = f"a = {JSON}\n"
BENCH = "bench/cache/corporate_actions/AAPL.splits.json"

FILES = {
    "run deep.json": JSON,
    "run deep.toml": TOML,
    "seal --plan deep.toml -o out.plan": TOML,
    "run daily-us-v1 -m scripted/sensible --prices deep.toml": TOML,
    "run daily-us-v1 -m scripted/sensible": {"home/models.toml": TOML},
    "code run quantcode-v1 -m scripted/sensible --task-file deep.json": JSON,
    "code tasks --task-file deep.json": OBJECTS,
    "code review deep.csv --key deep.json": {
        "deep.csv": "item,rater,fidelity,risk\n",
        "deep.json": OBJECTS,
    },
    "arena run --season deep.toml": TOML,
    "arena run --season deep.json": f'{{"title": {JSON}}}',
    "assay deep.json": f'[{{"a": {OBJECTS}}}]',
    "assay runs/deep": {"runs/deep/manifest.json": OBJECTS},
    "report runs/deep": {"runs/deep/manifest.json": OBJECTS},
    "verify runs/deep": {"runs/deep/manifest.json": OBJECTS},
    "resume runs/deep": {"runs/deep/manifest.json": OBJECTS},
    "compare runs/deep runs/also": dict.fromkeys(
        ("runs/deep/manifest.json", "runs/also/manifest.json"), OBJECTS
    ),
    "site runs": {"runs/deep/manifest.json": OBJECTS},
    "data doctor snapshot": {"snapshot/manifest.json": OBJECTS},
    "run daily-us-v1 --dataset ./snapshot": {"snapshot/manifest.json": OBJECTS},
    "data import --layout stockbench bench": {BENCH: JSON},
}


@pytest.mark.parametrize("line", FILES)
def test_a_deep_file_is_one_line(tell, tmp_path, monkeypatch, line):
    content = FILES[line]
    named = next((word for word in line.split() if "deep" in word), "")
    files = content if isinstance(content, dict) else {named: content}
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    if "home/models.toml" in files:
        monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "home"))
    if BENCH in files:
        bar = {"date": ["2025-03-03"], "close": [1.0]}
        day = tmp_path / "bench/parquet/AAPL/day"
        day.mkdir(parents=True)
        pl.DataFrame(bar).write_parquet(day / "2025-03-03.parquet")
    said = tell(line.split(), 2).err
    last = said.strip().splitlines()[-1]
    assert last.startswith("error: ") and "Traceback" not in said
    assert len(last) < 600 and any(name.rpartition("/")[2] in last for name in files), last
    assert "recursion" in last or "deep" in last
