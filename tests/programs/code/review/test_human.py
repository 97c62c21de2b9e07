"""People as reviewers: blind forms, ratings that are read or refused, agreement."""

import json

import pytest

from tradeassay.core.errors import UserError
from tradeassay_programs.code.review import (
    agreement_of,
    as_reviews,
    make_form,
    read_form,
    read_ratings,
    review_board,
)
from tradeassay_programs.code.submission import Submission

WORK = [
    ("bollinger", Submission(source=f"x = {n}", card="{}", name=f"vendor/model-{n}"))
    for n in range(4)
]
HEAD = "item,strategy,rater,fidelity,risk,comment\n"


def test_a_form_hides_the_authors_and_its_key_brings_them_back():
    form, key = make_form(WORK, seed=3)
    assert "vendor" not in form.as_json() and "vendor" not in form.as_csv()
    assert sorted(author for author, _ in key.values()) == [f"vendor/model-{n}" for n in range(4)]
    by_item = {entry.item: entry.source for entry in form.entries}
    assert all(by_item[item][-1] == author[-1] for item, (author, _) in key.items())
    assert make_form(WORK, seed=3)[1] == key != make_form(WORK, seed=4)[1]
    assert [line.split(",")[2] for line in form.as_csv("ann").splitlines()[1:]] == ["ann"] * 4


def test_ratings_come_back_and_raters_who_agree_have_alpha_one():
    form, key = make_form(WORK)
    filled = HEAD
    for mark, entry in enumerate(form.entries, 3):
        filled += f"{entry.item},{entry.strategy},ann,{mark},{mark},fine\n{entry.item},,bob,{mark},{10 - mark},\n"
    ratings = read_ratings("\ufeff" + filled)
    raters = agreement_of(ratings)
    assert (
        raters.fidelity.value == pytest.approx(1.0) and raters.raters == 2 and raters.ratings == 8
    )
    assert raters.risk.value is not None and raters.risk.value < 0.5
    board = review_board(as_reviews(ratings, key))
    last = key[form.entries[-1].item][0]
    assert board.fidelity[last].value == 6.0 and board.unanswered == 0
    as_list = json.dumps([{"item": "item-001", "rater": "ann", "fidelity": 7}])
    assert read_ratings(as_list)[0].risk is None
    assert as_reviews(read_ratings(as_list), key)[0].failure == "a mark is missing"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item,rater,fidelity\n", "no column 'risk'"),
        (HEAD + "item-001,x,ann,11,3,\n", "line 2: fidelity is 11"),
        (HEAD + "item-001,x,ann,good,3,\n", "line 2: 'good' is not a mark"),
        (HEAD + "item-001,x,,1,3,\n", "line 2 has no rater"),
        (HEAD + "item-001,x,ann,1,3,\nitem-001,x,ann,2,3,\n", "rated item-001 twice"),
        (HEAD + "item-001,x,ann,nan,3,\n", "line 2: fidelity is nan"),
        ('[{"item": "a", "rater": "b", "risk": 0}]', "cannot be read"),
    ],
)
def test_bad_ratings_are_refused_with_the_line(text, said):
    with pytest.raises(UserError, match=said):
        read_ratings(text)


def test_an_item_that_was_not_on_the_form():
    with pytest.raises(UserError, match="no submission 'item-9'"):
        as_reviews(read_ratings(HEAD + "item-9,x,ann,1,3,\n"), make_form(WORK)[1])


def test_a_form_goes_out_and_comes_back(tmp_path):
    handed = [
        ("spread", Submission(source=f"x = {n}", card="{}", name=name))
        for n, name in enumerate("ab")
    ]
    form, table, key = (tmp_path / name for name in ("form.json", "ratings.csv", "key.json"))
    made, names = make_form(handed, seed=3)
    for path, text in ((form, made.as_json()), (table, made.as_csv()), (key, json.dumps(names))):
        path.write_text(text, encoding="utf-8")
    assert "item-001" in form.read_text() and '"a"' not in form.read_text()
    lines = table.read_text().splitlines()
    filled = [
        lines[0],
        *(line.replace(",,,", f",eve,{5 + n},7,") for n, line in enumerate(lines[1:])),
    ]
    table.write_text("\n".join(filled))
    rated = read_form([table], key)
    assert rated.raters.ratings == 2 and rated.raters.raters == 1
    assert sorted(rated.board.fidelity) == ["a", "b"]
    with pytest.raises(UserError, match="not the key"):
        read_form([table], form)
    with pytest.raises(UserError, match="cannot be read"):
        read_form([tmp_path / "none.csv"], key)
