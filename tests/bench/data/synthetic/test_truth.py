"""The answer key is the truth: the planted parts make the printed returns, and can be measured
from outside.
"""

import gc
import types

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import DataError, UserError
from tradeassay.factors import FACTOR_NAMES, FactorBars, compute_all, standardise
from tradeassay_bench.data.synthetic import AnswerKey, NewsTruth, generate, preset


def latent(key: AnswerKey) -> np.ndarray:
    styles = np.einsum("tkn,tk->tn", key.exposures, key.styles)
    common = key.beta * key.market[:, None] + key.sectors[:, key.sector]
    return common + styles + key.news + key.alpha + key.decline + key.residual


@pytest.mark.parametrize("name", ["us", "crypto"])
def test_the_parts_add_up_to_the_printed_return(world, market, name):
    made = world(name)
    seen = market(made.panel)
    columns = [seen.column[symbol] for symbol in made.key.facts.symbols]
    gap = (seen.returns[:, columns] - latent(made.key)[1:])[np.isfinite(seen.returns[:, columns])]
    assert np.median(np.abs(gap)) < 2e-4
    assert np.mean(np.abs(gap) > 0.002) < 0.01


@pytest.mark.parametrize("name", ["us", "ashare", "crypto"])
def test_true_exposures_are_the_factors_of_the_printed_bars(world, market, name):
    made = world(name)
    seen = market(made.panel)
    columns = [seen.column[symbol] for symbol in made.key.facts.symbols]
    arrays = (seen.open, seen.high, seen.close, seen.volume, seen.amount)
    values = compute_all(FactorBars(*(array[:, columns] for array in arrays)))
    days = made.panel.sessions.astype(str)
    entries = [made.panel.listings[column] for column in columns]
    listed = np.stack(
        [(days >= e.listed) & (days <= (e.delisted or "9999")) for e in entries], axis=1
    )
    # From row 252 on, every window lies inside the panel; before it the hidden history still matters.
    for k, factor in enumerate(FACTOR_NAMES):
        raw = np.where(listed, values[factor], np.nan)[252:-1]
        scored = np.nan_to_num(standardise(raw))
        np.testing.assert_allclose(made.key.exposures[253:, k], scored, atol=1e-9, err_msg=factor)


def test_planted_style_returns_are_recovered_by_regression(world, market):
    made = world("us", 5, names=240, sessions=300)
    seen = market(made.panel)
    key = made.key
    columns = [seen.column[symbol] for symbol in key.facts.symbols]
    returns = seen.returns[:, columns]
    dummies = np.eye(len(key.facts.sectors))[key.sector]
    errors, estimates = [], []
    for t in range(returns.shape[0]):
        there = np.isfinite(returns[t])
        design = np.column_stack([key.beta, key.exposures[t + 1].T, dummies])[there]
        found = np.linalg.lstsq(design, returns[t, there], rcond=None)[0]
        estimates.append(found[1:10])
        errors.append(found[1:10] - key.styles[t + 1])
    estimate, error, truth = np.array(estimates), np.array(errors), key.styles[1:]
    for k, factor in enumerate(FACTOR_NAMES):
        t_value = error[:, k].mean() / error[:, k].std() * np.sqrt(error.shape[0])
        assert abs(t_value) < 4, factor
        slope = (estimate[:, k] * truth[:, k]).sum() / (truth[:, k] ** 2).sum()
        assert slope == pytest.approx(1.0, abs=0.2), factor
        assert np.corrcoef(estimate[:, k], truth[:, k])[0, 1] > 0.45, factor


def test_betas_are_recovered_by_regression(world, market):
    made = world("us")
    seen = market(made.panel)
    columns = [seen.column[symbol] for symbol in made.key.facts.symbols]
    factor = made.key.market[1:]
    found = []
    for column in columns:
        there = np.isfinite(seen.returns[:, column])
        found.append(np.polyfit(factor[there], seen.returns[there, column], 1)[0])
    assert np.corrcoef(found, made.key.beta)[0, 1] > 0.6
    assert np.mean(found) == pytest.approx(np.mean(made.key.beta), abs=0.1)


def test_a_key_survives_its_file_and_no_other_file_is_one(world, tmp_path):
    key = world("crypto").key
    path = key.save(tmp_path / "keys" / "crypto.key")
    back = AnswerKey.load(path)
    assert back.facts == key.facts
    for (
        field
    ) in "sessions market styles sectors exposures news decline residual beta alpha sector".split():
        assert np.array_equal(getattr(back, field), getattr(key, field)), field
    assert key.save(tmp_path / "again").read_bytes() == path.read_bytes()
    assert key.column(key.facts.symbols[3]) == 3
    with pytest.raises(UserError, match="no name 'NOPE'"):
        key.column("NOPE")
    (tmp_path / "snapshot" / "deep").mkdir(parents=True)
    (tmp_path / "snapshot" / "manifest.json").write_text("{}")
    with pytest.raises(UserError, match="outside"):
        key.save(tmp_path / "snapshot" / "deep" / "answers")
    for content in (None, b"", b"nonsense", b"PK\x03\x04"):
        if content is not None:
            (tmp_path / "bad").write_bytes(content)
        with pytest.raises(DataError, match="not an answer key"):
            AnswerKey.load(tmp_path / "bad")


def test_nothing_in_a_panel_leads_to_the_key():
    made = generate(preset("us", seed=3, names=20, sessions=80))
    secret = {id(made.key), *(id(truth) for truth in made.key.facts.news)}
    seen: set[int] = set()
    open_ends: list[object] = [made.panel]
    while open_ends:
        thing = open_ends.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType | types.FunctionType):
            continue
        seen.add(id(thing))
        assert id(thing) not in secret and not isinstance(thing, AnswerKey | NewsTruth)
        open_ends += gc.get_referents(thing)
    assert len(seen) > 1000


def test_skills_say_who_knows_what(world):
    for name in ("us", "crypto"):
        skills = {skill.name: skill for skill in world(name).key.facts.skills}
        assert all(skill.knows for skill in skills.values())
        assert (
            skills["news-informative"].edge > 0.003 and (skills["news-informative"].items or 0) > 50
        )
    assert msgspec.json.encode(world("us").key.facts)
