"""A run's secret: drawn once, kept in the manifest, taken over by replays, ignored by first
versions.
"""

import json

import msgspec
import pytest
import runs_code_toy as toy
import runs_talk as talk
from forger import cover_tracks

from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.core.run_secret import draw_secret, seed_from
from tradeassay_bench.runs import Asking, CodeRun, resume, run
from tradeassay_bench.runs.spec.run_spec import Window
from tradeassay_bench.runs.verify.report import OWN_SECRET, verify

SECRET = "00112233445566778899aabbccddeeff"
KEY = "tiny-talk-v2__tiny-us__tiny-good__s0"


def spec_of(version=2, **changes):
    talk.register()
    name = f"tiny-talk-v{version}"
    if name not in benchmarks:
        benchmarks.add(
            name,
            msgspec.structs.replace(benchmarks.get("tiny-talk-v1"), id=name, takes_secret=True),
        )
    window = Window(first="2024-01-15", last="2024-01-19")
    fields = {"benchmarks": (name,), "seeds": (0,), "window": window}
    return talk.talk_spec("tiny-good", **(fields | changes))


def alias(done, key=KEY):
    asked = next(iter(done.dialogue(key))).messages[1].text
    found = json.loads(asked.removeprefix("```json\n").removesuffix("\n```"))["alias"]
    return found


def test_seeds_differ_by_every_part_and_parts_do_not_run_into_each_other():
    assert seed_from(SECRET, "ab", "c") != seed_from(SECRET, "a", "bc")
    assert seed_from(SECRET, "a", 1) == seed_from(SECRET, "a", 1) != seed_from(SECRET, "a", 2)
    assert seed_from(SECRET, "a") != seed_from(draw_secret(), "a")
    assert 0 <= seed_from(SECRET) < 2**256


def test_which_benchmarks_take_one():
    drawn = {name for name, one in benchmarks.items() if one.takes_secret}
    assert {"ktdfin-v1", "daily-us-v1"} <= drawn and "tiny-us-v1" not in drawn


def test_it_is_drawn_once_kept_and_decides_the_aliases(home, tmp_path):
    one = run(spec_of(), tmp_path / "one", executor="inline", home=home)
    assert one.manifest.secret is not None
    again = run(spec_of(), tmp_path / "one", executor="inline", home=home)
    assert again.manifest.secret == one.manifest.secret, "the same command continues the run"
    assert (
        resume(tmp_path / "one", executor="inline", home=home).manifest.secret
        == one.manifest.secret
    )
    other = run(spec_of(), tmp_path / "other", executor="inline", home=home)
    assert alias(other) != alias(one)
    same = run(spec_of(secret=one.manifest.secret), tmp_path / "same", executor="inline", home=home)
    assert alias(same) == alias(one)
    asking = Asking(replay=True, recordings=one.folder)
    again = run(
        spec_of(), tmp_path / "again", executor="inline", home=home, asking=asking
    )  # takes it over
    assert (again.folder / "scores.json").read_bytes() == (one.folder / "scores.json").read_bytes()


def test_a_benchmark_without_one_ignores_it_to_the_byte(home, tmp_path):
    key = KEY.replace("v2", "v1")
    plain = run(spec_of(1), tmp_path / "plain", executor="inline", home=home)
    given = run(spec_of(1, secret=SECRET), tmp_path / "given", executor="inline", home=home)
    assert (plain.folder / "manifest.json").read_bytes() == (
        given.folder / "manifest.json"
    ).read_bytes()
    assert plain.manifest.secret is None
    assert alias(plain, key) == alias(given, key)


def test_a_run_of_programs_keeps_it_too(tmp_path):
    toy.fresh()
    done = run(toy.ToySpec(secret=SECRET), tmp_path / "toy")
    assert isinstance(done, CodeRun)
    assert done.manifest.secret == SECRET


@pytest.mark.parametrize("wrong", ["xyz", "00", "G" * 32, "0" * 129])
def test_a_bad_one_is_refused(wrong):
    with pytest.raises(UserError, match="hexadecimal"):
        spec_of(secret=wrong)
    with pytest.raises(UserError, match="hexadecimal"):
        toy.ToySpec(secret=wrong).validate_spec((), example="x")


def test_it_cannot_be_changed_afterwards_and_who_chose_it_is_said(home, tmp_path):
    done = run(spec_of(secret=SECRET), tmp_path / "one", executor="inline", home=home)
    honest = verify(done.folder, home=home, workers=1)
    assert honest.exit_code == 0 and OWN_SECRET in honest.notes
    path = done.folder / "manifest.json"
    path.write_bytes(path.read_bytes().replace(SECRET.encode(), SECRET[::-1].encode()))
    cover_tracks(done.folder, path, home)
    assert verify(done.folder, home=home, workers=1).exit_code == 1
