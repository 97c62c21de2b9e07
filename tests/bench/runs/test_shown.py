"""What is shown of a run: a verdict for exactly its bytes, names that say no more than the
record, its freedom.
"""

import json
import shutil
from functools import partial

import msgspec
import pytest
import runs_talk as talk
import runs_world as world
from registries import replace_registered

from tradeassay.core.hashing import sha256_of
from tradeassay.verdict import Assay, VerdictConfig
from tradeassay_bench.account import venues
from tradeassay_bench.benchmarks.rules_text import rules_text
from tradeassay_bench.examine.assay_file import record_assay, recorded_assay
from tradeassay_bench.examine.judge import assay
from tradeassay_bench.llm.recording import DECODER, ENCODER, AnswerLine
from tradeassay_bench.report import paste, paste_tables, write_html, write_site
from tradeassay_bench.runs import Run, load_run, run
from tradeassay_bench.runs.spec.run_spec import AgentSpec, Window
from tradeassay_bench.runs.store.manifest import AgentRecord, RunManifest, encode_manifest
from tradeassay_bench.runs.store.run import shown_name, shown_title
from tradeassay_bench.runs.verify.plans import verify_anything
from tradeassay_bench.runs.verify.report import verify
from tradeassay_bench.runs.verify.seal import seal_run

SHORT = Window(first="2024-01-15", last="2024-01-19")


@pytest.fixture(scope="module")
def small(home, tmp_path_factory):
    agents = (
        AgentSpec(name="random", params={"k": 2}, label="openai-gpt-5"),
        AgentSpec(name="cash"),
    )
    spec = world.tiny_spec(seeds=(3,), window=SHORT, agents=agents, benchmarks=("tiny-us-v1",))
    return run(spec, tmp_path_factory.mktemp("runs") / "r", executor="inline", home=home)


@pytest.fixture
def runs(small, tmp_path):
    shutil.copytree(small.folder, tmp_path / "runs" / "r")
    return tmp_path / "runs"


def test_a_page_does_not_tell_rules_that_a_venue_got_later_as_those_of_the_run(
    small, tmp_path, monkeypatch
):
    (episode, *_) = small.episodes
    name = small.manifest.benchmark(episode).market.venue
    then = venues.get(name)
    page = write_html(small, tmp_path / "then.html").read_text()
    assert f"{then.fees.buy_bps:g} bp on purchases" in page and "have changed since" not in page

    fees = msgspec.structs.replace(then.fees, buy_bps=77.0)
    now = msgspec.structs.replace(then, fees=fees, title="Another market", currency="XTS")
    replace_registered(monkeypatch, venues, name, now)
    page = write_html(small, tmp_path / "now.html").read_text()
    assert not any(word in page for word in ("77 bp", "Another market", "bp on purchases"))
    assert "XTS (the venue&#39;s currency here) in cash" in page
    assert (
        f"changed since this was played ({sha256_of(then)[:12]} then, {sha256_of(now)[:12]} here)"
        in page
    )
    assert "77 bp on purchases" in rules_text(small.manifest.benchmark(episode)), (
        "a benchmark has the rules of today"
    )


def edit_scores(folder, value=9.99):
    """Write the scores again with another return, as a forger would."""
    found = json.loads((folder / "scores.json").read_bytes())
    for row in found["agents"]:
        row["measures"]["cumulative_return"]["median"]["value"] = value
    (folder / "scores.json").write_bytes(json.dumps(found, indent=1).encode())


def test_a_site_shows_what_was_verified_and_says_so_in_the_row(runs, home, tmp_path):
    shutil.copytree(runs / "r", runs / "forged")
    seal_run(runs / "r", runs / "r.seal")
    shutil.copyfile(runs / "r.seal", runs / "forged.seal")
    edit_scores(runs / "forged")
    done = write_site(runs, tmp_path / "site", home=home, workers=1)
    assert {slug: one.word for slug, one in done.runs.items()} == {"r": "verified"}
    ((slug, why),) = done.left_out
    assert slug == "forged" and "the recomputed scores differ" in why
    (told,) = json.loads((tmp_path / "site/runs.json").read_bytes())
    assert told["verdict"]["word"] == "verified" and told["sealed"] == "r.seal"
    assert "one of 2 runs of tiny-us-v1 in its folder" in told["freedom"]["words"]
    index = (tmp_path / "site/index.html").read_text()
    assert "<td>verified</td>" in index and "+999" not in index
    assert not (tmp_path / "site/runs/forged").exists()


def test_a_seal_of_other_bytes_is_not_offered(runs, home, tmp_path):
    seal_run(runs / "r", runs / "other.seal")
    shutil.copytree(runs / "r", runs / "other")
    manifest = load_run(runs / "other").manifest
    assert isinstance(manifest, RunManifest)
    spec = msgspec.structs.replace(manifest.spec, name="other")
    (runs / "other/manifest.json").write_bytes(
        encode_manifest(msgspec.structs.replace(manifest, spec=spec))
    )
    done = write_site(runs, tmp_path / "site", home=home, workers=1)
    assert list(done.runs) == ["r"] and "other.seal seals files that differ" in done.left_out[0][1]


def test_numbers_that_cannot_be_made_again_are_not_shown(runs, home, tmp_path):
    edit_scores(runs / "r")
    later = tmp_path / "no-data"
    done = write_site(runs, tmp_path / "site", home=later, workers=1)
    assert done.runs["r"].word == "unverified" and any("data" in one for one in done.runs["r"].why)
    assert "+999" not in (tmp_path / "site/index.html").read_text()
    assert json.loads((tmp_path / "site/runs.json").read_bytes())[0]["tables"] == []
    shutil.copytree(home, later, dirs_exist_ok=True)
    assert verify(runs / "r", home=later, workers=1).word == "contradicted"


@pytest.mark.parametrize(
    ("name", "params", "label", "shown"),
    [
        ("http", {"url": "http://h"}, "gpt-5", "program over HTTP: gpt-5"),
        ("pipe", {"command": "x"}, "gpt-5", "program on a pipe: gpt-5"),
        ("python", {"class": "m:C"}, "gpt-5", "Python class: gpt-5"),
        ("file", {"path": "m.py"}, "gpt-5", "rule from a file: gpt-5"),
        ("cash", {}, "openai-gpt-5", "rule cash: openai-gpt-5"),
        ("momentum-12-1", {"k": 3}, "momentum-12-1", "rule momentum-12-1-k=3: momentum-12-1"),
        ("momentum-12-1", {"k": 3}, None, "momentum-12-1-k=3"),
        ("model", {"model": "openai/gpt-5"}, "openai-gpt-5", "openai-gpt-5"),
        (
            *("model", {"model": "openai/gpt-5", "temperature": 2}, "openai-gpt-5"),
            "openai/gpt-5 temperature=2: openai-gpt-5",
        ),
        (
            "model",
            {"model": "scripted/sensible"},
            "openai-gpt-5",
            "scripted/sensible: openai-gpt-5",
        ),
    ],
)
def test_a_label_never_hides_the_kind(name, params, label, shown):
    assert shown_name(AgentSpec(name=name, params=params, label=label), None) == shown


def test_the_name_of_somebody_elses_agent_never_hides_its_kind():
    record = AgentRecord(module="plugin.rules")
    assert shown_name(AgentSpec(name="openai-gpt-5"), record) == "rule of plugin: openai-gpt-5"


def test_every_surface_uses_the_same_name(small, home, tell, monkeypatch):
    monkeypatch.setenv("TRADEASSAY_HOME", str(home))
    called = "rule random-k=2: openai-gpt-5"
    assert small.names["openai-gpt-5"] == called
    assert called in {row[table.named].text for table in paste_tables(small) for row in table.rows}
    assert called in paste(small, "card") and called in paste(small, "json")
    assert (
        json.loads(tell(["report", str(small.folder), "--json"]).out)["names"]["openai-gpt-5"]
        == called
    )
    assert called in (small.folder / "report.html").read_text()
    assert any(called in note for note in verify(small.folder, home=home, workers=1).notes)


def test_a_model_is_named_by_its_recorded_calls(home, tmp_path):
    place = run(talk.talk_spec("sensible"), tmp_path / "r", executor="inline", home=home).folder
    text = (place / "manifest.json").read_text()
    for episode in load_run(place).episodes:
        if episode.by_model:
            model = episode.model
    (place / "manifest.json").write_text(text.replace(model, "openai/gpt-5"))
    names = load_run(place).names.values()
    assert any(name.startswith("openai/gpt-5, no recorded call: ") for name in names)
    for tape in (place / "models").glob("*.jsonl"):
        lines = [DECODER.decode(line) for line in tape.read_bytes().splitlines()]
        for at, line in enumerate(lines):
            if isinstance(line, AnswerLine) and line.asked.model == model:
                asked = msgspec.structs.replace(line.asked, model="openai/gpt-5")
                lines[at] = msgspec.structs.replace(line, asked=asked, elsewhere=True)
        tape.write_bytes(b"".join(ENCODER.encode(line) + b"\n" for line in lines))
    assert any("queried at another server" in name for name in load_run(place).names.values())


def test_a_title_is_that_of_the_registry(small, runs, home):
    manifest = small.manifest
    record = manifest.benchmarks["tiny-us-v1"]
    grand = msgspec.structs.replace(record.config, title="Real-money account, audited")
    forged = msgspec.structs.replace(
        manifest, benchmarks={"tiny-us-v1": msgspec.structs.replace(record, config=grand)}
    )
    (runs / "r/manifest.json").write_bytes(encode_manifest(forged))
    again = Run.load(runs / "r", home=home)
    assert "audited" not in "".join(table.title for table in paste_tables(again))
    words = paste_tables(again)[0].notes[-1]
    assert 'title "Real-money account, audited" instead of' in words
    unknown = msgspec.structs.replace(grand, id="mine-v1")
    assert (
        shown_title(unknown, "synthetic/us:7")
        == 'mine-v1, not registered here ("Real-money account, audited")'
    )


def test_the_freedom_of_the_runner_is_said_on_every_surface(
    small, home, tmp_path, tell, monkeypatch
):
    monkeypatch.setenv("TRADEASSAY_HOME", str(home))
    monkeypatch.setenv("COLUMNS", "400")
    found = verify(small.folder, home=home, workers=1).freedom
    assert found.runs == 1
    assert {one.field for one in found.departures} >= {"window", "seeds"}
    window, *_, seeds, alone = found.words
    assert (
        window.startswith("window 2024-01-15 .. 2024-01-19 instead of")
        and "% of its days" in window
    )
    assert (seeds, alone) == ("one seed, chosen: 3", "the only run of tiny-us-v1 in its folder")
    assert found.sentence in tell(["verify", str(small.folder)]).err
    assert window in " ".join(tell(["report", str(small.folder)]).out.split())
    assert window in (small.folder / "report.html").read_text()
    assert window in paste(small, "card") and window in paste(small, "json")
    seal_run(small.folder, tmp_path / "r.seal")
    _, sealed = verify_anything(tmp_path / "r.seal", check=partial(verify, home=home, workers=1))
    assert sealed.freedom.runs is None


def test_where_a_page_was_cut_is_told(runs, home, tell, monkeypatch):
    monkeypatch.setenv("TRADEASSAY_HOME", str(home))
    tell(["report", str(runs / "r")])
    page = runs / "r/report.html"
    text = page.read_text()
    whole = next(line for line in text.splitlines()[20:] if len(line) > 60)
    page.write_text(text[: text.index(whole) + 30])
    told = "".join(tell(["verify", str(runs / "r")], 1).out.split("\n"))
    assert f"has {whole[15:30]!r} for {whole[15:55]!r}" in told


def test_an_assay_that_does_not_come_out_again_is_not_shown(small, home, tmp_path, monkeypatch):
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "mine"))
    shutil.copytree(small.folder, tmp_path / "r")
    run = Run.load(tmp_path / "r", home=home)
    made = assay(run, VerdictConfig(portfolios=0))
    file = record_assay(run, made)
    assert recorded_assay(run) == made
    file.write_bytes(file.read_bytes().replace(b'"title":"', b'"title":"skill'))
    assert recorded_assay(run) is None, "it was edited"
    record_assay(run, Assay(title="r", source="run", config=VerdictConfig(), agents=()))
    assert recorded_assay(run) is None, "it says something else, whoever wrote it"
    record_assay(run, made)
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "theirs"))
    assert recorded_assay(run) == made, "where it was made does not matter"
