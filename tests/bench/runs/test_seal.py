"""Seals: one file, one root; a changed byte or a strange name is refused; a plan binds its run."""

import hashlib
import json
import zipfile
from functools import partial

import pytest
import runs_world as world

from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import canonical_json
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.runs import run
from tradeassay_bench.runs.spec.run_spec import Window
from tradeassay_bench.runs.verify.plans import seal_plan, verify_anything
from tradeassay_bench.runs.verify.report import verify
from tradeassay_bench.runs.verify.seal import SEAL, merkle_root, open_seal, seal_run


@pytest.fixture(scope="module")
def small(home, tmp_path_factory):
    spec = world.tiny_spec(seeds=(0,), window=Window(first="2024-01-15", last="2024-01-19"))
    return run(spec, tmp_path_factory.mktemp("small") / "r", executor="inline", home=home)


def test_the_root_depends_on_every_path_and_content():
    files = {f"f{n}": f"{n:064d}" for n in range(5)}
    root = merkle_root(files)
    assert merkle_root(dict(reversed(files.items()))) == root
    assert merkle_root({**files, "f0": "1" * 64}) != root
    assert merkle_root({**{k: v for k, v in files.items() if k != "f4"}, "f5": files["f4"]}) != root
    assert merkle_root({"a": "0" * 64}) != merkle_root({"a": "0" * 64, "b": "0" * 64})


def test_a_sealed_run_is_verified_on_its_own(small, home, tmp_path):
    sealed = seal_run(small.folder, tmp_path / "r.seal")
    assert seal_run(small.folder, tmp_path / "again.seal").root == sealed.root
    assert (tmp_path / "r.seal").read_bytes() == (tmp_path / "again.seal").read_bytes()
    found, report = verify_anything(
        tmp_path / "r.seal", check=partial(verify, home=home, workers=1)
    )
    assert found.root == sealed.root
    assert report.exit_code == 0
    _, report = verify_anything(
        tmp_path / "r.seal", check=partial(verify, home=tmp_path / "empty", workers=1)
    )
    assert report.exit_code == 3
    recorded = small.manifest.datasets["tiny-us"].sha256
    assert any(recorded[:12] in one for one in report.unchecked), (
        "the data is asked for by its hash"
    )


def rewrite(source, target, changes):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            body = changes.pop(name, old.read(name))
            if body is not None:
                new.writestr(name, body)
        for name, body in changes.items():
            new.writestr(name, body or b"")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"scores.json": b"{}"}, "scores.json differs from the sealed file"),
        ({"scores.json": None}, "scores.json differs from"),
        ({"extra.json": b"{}"}, "extra.json differs from"),
        ({SEAL: None}, "is not a seal"),
        ({SEAL: b"{}"}, "is not a seal"),
        ({"../evil": b"x"}, "does not belong in a seal"),
        ({"/evil": b"x"}, "does not belong in a seal"),
        ({"a/../../evil": b"x"}, "does not belong in a seal"),
        ({"a\\evil": b"x"}, "does not belong in a seal"),
        ({"folder/": b""}, "does not belong in a seal"),
    ],
)
def test_a_broken_seal_is_refused(small, tmp_path, changes, complaint):
    seal_run(small.folder, tmp_path / "r.seal")
    rewrite(tmp_path / "r.seal", tmp_path / "bad.seal", dict(changes))
    with pytest.raises(RunError, match=complaint), open_seal(tmp_path / "bad.seal"):
        pass
    assert not (tmp_path.parent / "evil").exists()


def test_damage_is_refused(small, tmp_path):
    seal_run(small.folder, tmp_path / "r.seal")
    content = (tmp_path / "r.seal").read_bytes()
    for place in range(0, len(content), max(1, len(content) // 60)):
        damaged = content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :]
        (tmp_path / "bad.seal").write_bytes(damaged)
        try:
            with open_seal(tmp_path / "bad.seal") as (_, sealed):
                assert sealed.root, "only what no reader of the archive looks at may differ"
        except RunError:
            continue
    (tmp_path / "bad.seal").write_bytes(content[:-30])
    with pytest.raises(RunError, match="not a whole archive"), open_seal(tmp_path / "bad.seal"):
        pass


SHORT = Window(first="2024-01-15", last="2024-01-19")


@pytest.fixture(scope="module")
def planned(home, tmp_path_factory):
    """A sealed plan and the run that was made by it."""
    folder = tmp_path_factory.mktemp("planned")
    sealed, plan = seal_plan(
        world.tiny_spec(seeds=(0,), window=SHORT), folder / "p.seal", home=home
    )
    assert sealed.kind == "plan" and verify_anything(folder / "p.seal")[1] is None
    assert plan.open == () and "data set 'tiny-us'" in plan.facts
    run(plan.asked, folder / "kept", executor="inline", home=home)
    return folder / "p.seal", folder / "kept"


def under(plan, folder, home):
    found = verify_anything(folder, plan=plan, check=partial(verify, home=home, workers=1))[1]
    assert found is not None
    return found


def test_a_plan_binds_the_run(planned, home, tmp_path):
    plan, kept = planned
    found = under(plan, kept, home)
    assert found.exit_code == 0 and found.claims[-1].claim == "plan"
    with open_seal(plan) as (_, sealed):
        assert sealed.root in found.notes[-1]
    run(world.tiny_spec(seeds=(1,), window=SHORT), tmp_path / "other", executor="inline", home=home)
    found = under(plan, tmp_path / "other", home)
    assert found.exit_code == 1
    assert "the run's spec differs from the plan" in str(found.violations)


def test_a_run_on_other_data_than_was_planned_is_contradicted(planned, tmp_path):
    """The same spec on data of the same name whose prices are others, in a store that agrees
    with it.
    """
    world.write_world(tmp_path / "home", seed=3)
    plan, _ = planned
    run(
        world.tiny_spec(seeds=(0,), window=SHORT),
        tmp_path / "r",
        executor="inline",
        home=tmp_path / "home",
    )
    found = under(plan, tmp_path / "r", tmp_path / "home")
    assert found.exit_code == 1
    assert {one.check for one in found.violations} == {"plan"}
    assert all(
        "but the plan has" in one.what and "data set 'tiny-" in one.what for one in found.violations
    )


def test_a_plan_says_what_it_leaves_open(planned, home, tmp_path):
    spec = world.tiny_spec(seeds=(0,), window=SHORT)
    _, plan = seal_plan(spec, tmp_path / "p.seal", home=tmp_path / "empty")
    assert "data set 'tiny-us'" in plan.open and not any(
        name.startswith("data set") for name in plan.facts
    )
    found = under(tmp_path / "p.seal", planned[1], home)
    assert (found.exit_code, found.violations) == (3, ())
    assert any(
        "it does not commit to data set" in one and "'tiny-us'" in one for one in found.unchecked
    )


@pytest.mark.parametrize("lost", ["data set", "benchmark", "the venue", "the code of agent"])
def test_a_plan_that_commits_to_less_is_noticed(planned, home, tmp_path, lost):
    plan, kept = planned
    with zipfile.ZipFile(plan) as old:
        record = json.loads(old.read("plan.json"))
    record["facts"] = {
        name: one for name, one in record["facts"].items() if not name.startswith(lost)
    }
    sealed_again(plan, tmp_path / "f.seal", {"plan.json": canonical_json(record)})
    found = under(tmp_path / "f.seal", kept, home)
    assert found.exit_code == 1 and "the plan does not commit to" in str(found.violations)


def test_a_plan_is_not_verified_against_a_plan(planned):
    """A plan is not a run that a plan binds."""
    plan, _ = planned
    with pytest.raises(UserError, match="is a plan, not a run"):
        verify_anything(plan, plan=plan)
    assert main(["verify", str(plan), "--plan", str(plan)]) == 2


def sealed_again(source, target, changes):
    """Rewrite a seal as a forger would: with the root of the changed files."""
    with zipfile.ZipFile(source) as old:
        head = json.loads(old.read(SEAL))
    head["files"] |= {name: hashlib.sha256(body).hexdigest() for name, body in changes.items()}
    head["root"] = merkle_root(head["files"])
    rewrite(source, target, {SEAL: json.dumps(head).encode(), **changes})


def test_a_forged_plan_contradicts_itself(tmp_path):
    """A plan that shows one spec to readers and binds another, or says more than a plan does."""
    spec = world.tiny_spec(seeds=(0, 1, 2), window=Window(first="2024-01-15", last="2024-01-19"))
    seal_plan(spec, tmp_path / "p.seal")
    with zipfile.ZipFile(tmp_path / "p.seal") as old:
        plan = json.loads(old.read("plan.json"))
    plan["spec"]["seeds"] = [0]
    for body in (
        plan,
        {**plan, "spec": {**plan["spec"], "seeds": [0, 1, 2]}, "registered": "2024-01-01"},
    ):
        sealed_again(tmp_path / "p.seal", tmp_path / "f.seal", {"plan.json": canonical_json(body)})
        with pytest.raises(RunError, match="the plan contradicts itself"):
            verify_anything(tmp_path / "f.seal")


def test_a_sealed_summary_must_be_that_of_the_manifest(small, home, tmp_path):
    seal_run(small.folder, tmp_path / "r.seal")
    sealed_again(
        tmp_path / "r.seal", tmp_path / "f.seal", {"data.json": b'{"sp500":"' + b"0" * 64 + b'"}'}
    )
    with pytest.raises(RunError, match=r"data\.json does not match the manifest"):
        verify_anything(tmp_path / "f.seal", check=partial(verify, home=home, workers=1))
