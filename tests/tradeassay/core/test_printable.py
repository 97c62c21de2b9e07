"""Words of agents and programs steer neither a terminal nor a report."""

from tradeassay.core.printable import printable, printable_line

HOSTILE = "red\x1b[31m\x00\u202e, é\n\tand 90\xa0%\x7f"


def test_what_cannot_be_printed_is_a_question_mark_unless_it_is_kept():
    assert printable(HOSTILE) == "red?[31m??, é??and 90?%?"
    assert printable(HOSTILE, kept="\n\t") == "red?[31m??, é\n\tand 90?%?"
    assert printable(HOSTILE, kept="\n\t\xa0") == "red?[31m??, é\n\tand 90\xa0%?"


def test_one_line_has_single_blanks_and_nothing_to_obey():
    assert printable_line(f"  {HOSTILE}\r\nend ") == "red?[31m??, é and 90 %? end"
