"""Limits on single weights and on the number of positions."""

import msgspec

from tradeassay.account import Concentration


def test_max_weight(play, plain):
    play(
        plain().limited(max_weight=0.10),
        """
        2024-01-02 | A 10 10 10 10 1000 | a A to 10.1%; b A to 10%
            reject a A max_weight
            fill b A +100 @10 fee 0.00 cash -1000.00
        2024-01-03 | A 10 10 10 10 1000 | c BUY 1 A
            reject c A max_weight
        2024-01-04 | A 30 30 30 30 1000 | d SELL 20 A
            fill d A -20 @30 fee 0.00 cash +600.00
        2024-01-05 | A 30 30 30 30 1000 | e BUY 1 A
            reject e A max_weight
        """,
    )


def test_or_cut_to_the_limit(play, plain):
    play(
        plain(concentration=Concentration(max_weight=0.10, on_excess="trim")),
        """
        2024-01-02 | A 10 10 10 10 1000 | a A to 50%
            fill a A +100 @10 fee 0.00 cash -1000.00
            trim a A +500 to +100 max_weight
        2024-01-03 | A 10 10 10 10 1000 | b BUY 1 A
            reject b A max_weight
        """,
    )


def test_max_positions(play, plain, pair):
    # The sale of A makes room for B in the same batch, because sales go first.
    play(
        plain().limited(max_positions=1),
        """
        2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 1 A; b BUY 1 B
            fill a A +1 @10 fee 0.00 cash -10.00
            reject b B max_positions
        2024-01-03 | A 10 10 10 10 1000; B 10 10 10 10 1000 | c BUY 1 A; d BUY 1 B
            fill c A +1 @10 fee 0.00 cash -10.00
            reject d B max_positions
        2024-01-04 | A 10 10 10 10 1000; B 10 10 10 10 1000 | e BUY 1 B; f SELL 2 A
            fill f A -2 @10 fee 0.00 cash +20.00
            fill e B +1 @10 fee 0.00 cash -10.00
        """,
        instruments=pair,
    )


def test_limits_are_told_to_agents(plain):
    rules = plain().limited(max_weight=0.1, max_positions=20).rules(benchmark_index="IDX")
    assert (rules.max_weight, rules.max_positions, rules.benchmark_index) == (0.1, 20, "IDX")
    assert plain().limited() == plain()
    assert msgspec.json.decode(msgspec.json.encode(plain()), type=type(plain())) == plain()


def test_a_venues_own_limits_stay_and_the_stricter_wins(plain):
    own = plain(concentration=Concentration(max_weight=0.05, max_positions=8, on_excess="trim"))
    assert own.limited() == own
    assert own.limited(max_weight=0.10, max_positions=20) == own
    stricter = own.limited(max_weight=0.02, max_positions=5).concentration
    assert stricter == Concentration(max_weight=0.02, max_positions=5, on_excess="trim")
