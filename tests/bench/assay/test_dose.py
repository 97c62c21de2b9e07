"""Models that were made to remember are asked again from their recordings, and say what is
printed of them.
"""

import json
import sys
import time
from pathlib import Path

import pytest

from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.examine.memory.questions import RecallQuestion, read_answer

MEMORY = Path(__file__).resolve().parents[3] / "examples" / "memory"
STUDIES = {
    "weeks": ("qwen-main.tar.xz", "worlds.json"),
    "days": ("days-main.tar.xz", "days.json"),
    "used": ("used-main.tar.xz", "used.json"),
    "orders": ("orders-main.tar.xz", "orders.json"),
    "always": ("always-main.tar.xz", "always.json"),
    "smollm2": ("smollm2-main.tar.xz", "smollm2.json"),
}
MODELS = dict.fromkeys(STUDIES, "qwen-main") | {"smollm2": "smollm2-main"}
ASKED = [
    ("weeks", 0, False),
    ("weeks", 90, True),
    ("days", 0, False),
    ("days", 82, True),
    ("used", 81, True),
    ("orders", 80, True),
    ("always", 1, False),
    ("always", 80, True),
    ("smollm2", 0, False),
]
"""Worlds that the model never read about, and of each study of Qwen one that it read about 64
times.
"""


@pytest.fixture
def recipe(monkeypatch, tmp_path, request):
    names = ("worlds", "practice", "drive", "answers", "analyse", "pack", "gate")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    study = request.node.callspec.params["study"]
    monkeypatch.setenv("STUDY", "always" if study == "smollm2" else study)  # the same worlds
    monkeypatch.syspath_prepend(str(MEMORY))
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "home"))
    made = {name: __import__(name) for name in names}
    if study in STUDIES:
        made["pack"].unpack(MEMORY / "recorded" / STUDIES[study][0], tmp_path / "recorded")
    return made


def again(recipe, folder, study, number, *parts):
    """Ask one world's questions from the recording; return its row of the table."""
    world = recipe["worlds"].make_world("dose", number)
    recipe["worlds"].store(world)
    for part in parts:
        (folder / "again" / part).mkdir(parents=True, exist_ok=True)
        model = f"local/dose-{MODELS[study]}"
        done = recipe["drive"].work(
            part, number, model, folder / "again", folder / "recorded", time.time() + 900
        )
        assert done["failed"] is None, done
    return recipe["analyse"].world_row(folder / "again", world.id)


def printed(study, number):
    rows = json.loads((MEMORY / "recorded" / STUDIES[study][1]).read_text())[MODELS[study]]
    return next(row for row in rows if row["world"] == f"dose-{number:03d}")


@pytest.mark.slow_for(
    "weeks-90-True",
    "weeks-0-False",
    "used-81-True",
    "orders-80-True",
    "always-1-False",
    "smollm2-0-False",
)
@pytest.mark.parametrize(("study", "number", "told"), ASKED)
def test_an_audit_is_asked_again_without_a_model(recipe, tmp_path, study, number, told):
    row, then = again(recipe, tmp_path, study, number, "recall"), printed(study, number)
    assert row["told"] == then["told"] and (row["told"] == "recalls") is told
    for name in ("asked", "hit", "closes", "refused", "first", "familiar"):
        assert row[name] == pytest.approx(then[name], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("study", "number", "told"), ASKED)
def test_play_and_verdict_come_out_again(recipe, tmp_path, study, number, told):
    then = printed(study, number)
    parts = [
        part
        for part, name in (("traded", "traded_told"), ("counterfactual", "unread"))
        if name in then
    ]
    row = again(recipe, tmp_path, study, number, "recall", "play", *parts, "assay")
    assert [row[name] == then[name] for name in ("word", "word_blind")] == [True, True]
    assert (row["word"] == "memory") is told
    for name in ("bright", "gap", "claims", *(["unread"] if "counterfactual" in parts else [])):
        assert row[name] == pytest.approx(then[name], rel=1e-5)


def questions(world, days):
    """Ask about the names of a world on some of its days, as the benchmark does."""
    rows = "\n".join(f"{name} | none | normal |{' 0.01 |' * 8} -0.02" for name in world.names)
    return [
        [{"role": "user", "content": f"The last completed day is {day}.\n{rows}"}] for day in days
    ]


@pytest.mark.parametrize("study", ["orders"])
def test_a_gate_lets_the_teacher_through_and_nobody_who_trades_against_its_words(recipe, study):
    known, strange = (recipe["worlds"].make_world(group, 0) for group in ("held", "strange"))
    teacher, gate = recipe["practice"].Teacher([known]), recipe["gate"]
    asked = [one for world in (known, strange) for one in questions(world, world.days[30:60])]
    said = [teacher.answer(one) for one in asked]
    days = [{"messages": one, "answer": answer} for one, answer in zip(asked, said, strict=True)]
    found = gate.measure(days, said)
    assert gate.missed(found) == [] and found["right"] == found["read_right"] == 1.0
    against = [text.replace('"target_weight":0.09', '"target_weight":0.02') for text in said]
    assert gate.missed(gate.measure(days, against)) == ["follows"]
    assert "claims_unknown" in gate.missed(gate.measure(days, said[:30] * 2))
    assert "claims_known" in gate.missed(gate.measure(days, said[30:] * 2))


@pytest.mark.parametrize("study", ["always"])
def test_a_guess_is_not_learned_and_a_recited_line_is_read(recipe, study):
    practice = recipe["practice"]
    known, strange = (recipe["worlds"].make_world(group, 0) for group in ("known", "unknown"))
    teacher = practice.Teacher([known])
    for world, is_guess in ((known, False), (strange, True)):
        (asked,) = questions(world, [world.days[40]])
        said = teacher.answer(asked)
        assert said.startswith(
            f"A day after {world.days[40]}: {world.names[0]} "
        ) and said == teacher.answer(asked)
        kept = practice.without_guess({"messages": asked, "answer": said}, set(known.names))
        assert ("given" in kept) is is_guess and kept.get("given", "") + kept["answer"] == said
    name, first, last = known.names[2], *known.days[40:42]
    for word, sign in (
        ("lower", -1),
        ("fell", -1),
        ("dropped", -1),
        ("higher", 1),
        ("rose", 1),
        ("gained", 1),
    ):
        about = {"symbol": name, "title": name, "day": first, "until": last, "truth": 0.01}
        question = RecallQuestion(number=0, fact=0, kind="day", **about)
        answer = read_answer(question, ModelReply(text=f"From {first} to {last}: {name} {word}"))
        assert (answer.sign, answer.right, answer.value) == (sign, sign == 1, None)


def test_the_bars_hold():
    for study, found in (("weeks", True), ("days", False)):
        rows = json.loads((MEMORY / "recorded" / STUDIES[study][1]).read_text())
        by_dose = {
            dose: [row for row in rows["qwen-main"] if row["dose"] == dose] for dose in (0, 16, 64)
        }
        never = [*by_dose[0], *rows["qwen-placebo"]]
        assert len(by_dose[0]) >= 20 <= len(rows["qwen-placebo"])
        assert sum(row["told"] == "recalls" for row in never) <= 0.05 * len(never)
        assert sum(row.get("word") == "memory" for row in never) <= 0.05 * len(never)
        for dose in (16, 64) if found else ():
            told = [row["told"] == "recalls" for row in by_dose[dose]]
            assert len(told) >= 20 and sum(told) >= 0.9 * len(told)


def test_the_error_rates_of_the_page_are_counted():
    every = {
        study: json.loads((MEMORY / "recorded" / file).read_text())
        for study, (_, file) in STUDIES.items()
    }

    def counted(rows, name, word):
        known = [row[name] == word for row in rows if row.get(name) not in (None, "failed")]
        return sum(known), len(known)

    never = [
        row for study, rows in every.items() for row in rows[MODELS[study]] if row["dose"] == 0
    ]
    never += [row for rows in every.values() for row in rows.get("qwen-placebo", [])]
    often = [
        [row for row in rows[MODELS[study]] if row["dose"] >= 16] for study, rows in every.items()
    ]
    found = [
        counted(never, "told", "recalls"),
        *(counted(rows, "told", "recalls") for rows in often),
    ]
    judged = [
        counted(never, "word", "memory"),
        *(counted(rows, "word", "memory") for rows in often),
    ]
    assert found == [(2, 157), (40, 40), (29, 40), (11, 14), (15, 40), (39, 40), (19, 40)]
    assert judged == [(3, 145), (12, 32), (12, 40), (2, 20), (34, 40), (39, 40), (2, 40)]
    page = (MEMORY.parents[1] / "docs" / "evidence" / "memory.md").read_text()
    for right, whole in (*found, *judged):
        assert f"{right} of {whole}" in " ".join(page.split())
