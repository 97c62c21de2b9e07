"""Numbers that are none: every option that takes a fraction refuses them in one line, and so do
settings.
"""

import click
import pytest
from test_one_style import EVERY

NO_NUMBERS = ("nan", "inf", "-inf", "1e400", "-1e400", "NaN", "Infinity")
FRACTIONS = {
    f"{name} {option.opts[-1]}": (name, option.opts[-1])
    for name, command in EVERY.items()
    for option in command.params
    if isinstance(option, click.Option) and isinstance(option.type, click.types.FloatParamType)
}


def test_the_options_that_take_fractions_are_found():
    known = {
        "memory counterfactual --share",
        "assay file --dividends",
        "run --max-usd",
        "power --ratio",
    }
    assert known <= set(FRACTIONS)


def test_the_help_names_no_bound_that_is_not_there(given):
    for line in ("run --help", "reproduce --help", "memory recall --help", "power --help"):
        assert "None]" not in given(line).out, line


@pytest.mark.parametrize("named", FRACTIONS)
def test_no_option_takes_a_number_that_is_none(tell, named):
    name, option = FRACTIONS[named]
    for text in NO_NUMBERS:
        said = tell([*name.split(), f"{option}={text}"], 2).err
        usage, *_, last = said.strip().splitlines()
        assert usage.startswith("Usage: ") and last.startswith("Error: "), said
        assert option in last and text in last


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize(
    "line",
    [
        "data import bars.csv -p volume_unit={}",
        "data import bars.csv -p amount_unit={}",
        "data doctor bars.csv -p volume_unit={}",
        "run daily-us-v1 -a momentum-12-1:k={}",
        "run daily-us-v1 -m scripted/sensible -p temperature={}",
        "mcp daily-us-v1 -p temperature={}",
    ],
)
def test_no_setting_is_a_number_that_is_none(given, tmp_path, line, text):
    (tmp_path / "bars.csv").write_text("date,close,volume\n2024-01-02,10,5\n2024-01-03,11,5\n")
    said = given(line.format(text), 2).err
    assert len(said.strip().splitlines()) == 1 and said.startswith("error: ")
    assert any(
        word in said for word in ("volume_unit", "amount_unit", "temperature", f"{text} is not")
    )
