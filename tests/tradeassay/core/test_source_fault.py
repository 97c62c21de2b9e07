"""What is wrong with a source is said in words of ours, which do not depend on the interpreter
that reads it.
"""

import ast

import pytest

from tradeassay.core.syntax import SourceFault, program_tree


@pytest.mark.parametrize(
    ("source", "error", "line", "words"),
    [
        ("x = 1\ny = (2,\nz = 3\n", "SyntaxError", 2, "'(' is not closed: y = (2,"),
        ("x = 1)\n", "SyntaxError", 1, "')' closes nothing: x = 1)"),
        ("x = [1,\n2)\n", "SyntaxError", 2, "')' does not close the '[' of line 1: 2)"),
        ("x = 'a\ny = 1", "SyntaxError", 1, "a string that begins here is not closed: x = 'a"),
        (
            'x = f"""a\n{b}\n',
            "SyntaxError",
            1,
            'a string that begins here is not closed: x = f"""a',
        ),
        ("x = = 2\n", "SyntaxError", 1, "this cannot be read as Python: x = = 2"),
        ("return 1\n", "SyntaxError", 1, "this cannot stand here: return 1"),
        ("def f():\npass\n", "IndentationError", 2, "the indentation fits no block: pass"),
        (
            "if x:\n\ty = 1\n        z = 1\n",
            "TabError",
            3,
            "tabs and spaces are mixed in the indentation: z = 1",
        ),
        ("a = 1\nb = '\0'\n", "SyntaxError", 2, "a null character: b = '\0'"),
        ("def f():", "IndentationError", 1, "the indentation fits no block: def f():"),
        ("y = f'{a + }'\n", "SyntaxError", 1, "this cannot be read as Python: y = f'{a + }'"),
    ],
)
def test_a_fault_has_its_kind_its_line_and_our_words(source, error, line, words):
    found = program_tree(source)
    assert isinstance(found, SourceFault) and found.syntax
    assert (found.error, found.line) == (error, line)
    assert words is None or found.words == words


@pytest.mark.parametrize(
    "source",
    [
        "x = f'{a!r:>{width}} {{b}} {c[\"d\"]}'",
        "x = f'\\N{BULLET} {a} \\\\ {b:%Y-%m-%d}'",
        "x = rf'\\d{a}\\{b}' f\"{c}\" 'd'",
        'x = f"""{\n a}"""',
        "x = F'{a if b else c}' if f'' else Rb'{'",
        "x = f'{a = }' + f'{(lambda b: b)(1)}' + f'{ {1: 2}[1] }'",
        "s = '''it's \"\"\" here'''  # an apostrophe's ( comment\r\ny = 1\r\n",
        "x = 'a\\\nb'\nif x:\n    y = x[1:2]\n",
    ],
)
def test_a_program_is_what_the_interpreter_reads(source):
    found = program_tree(source)
    assert isinstance(found, ast.Module)
    assert ast.dump(found) == ast.dump(ast.parse(source))


def test_a_long_line_is_cut_and_a_deep_program_is_given_up():
    found = program_tree("x = 1 1" + " " * 5 + "+ 2" * 500)
    assert isinstance(found, SourceFault) and len(found.words) < 250
    assert isinstance(program_tree("x = " + "(" * 5_000 + ")" * 5_000), SourceFault)
    assert isinstance(program_tree("x = " + "-" * 100_000 + "1"), SourceFault)


@pytest.mark.parametrize(
    "deep",
    [
        lambda levels: "x = " + " + ".join(["1"] * levels) + "\n",
        lambda levels: "x = a" + ".b" * levels + "\n",
        lambda levels: "x = " + "-" * levels + "1\n",
        lambda levels: "x = " + "a if b else " * levels + "1\n",
        lambda levels: "x = " + "lambda: " * levels + "1\n",
        lambda levels: "if a:\n    pass\n" + "elif a:\n    pass\n" * levels,
    ],
)
def test_how_deep_a_program_may_be_nested_does_not_depend_on_the_interpreter(deep):
    """3.11 gives up a little before 1,000 levels, 3.13 at 10,000, and some of them with a
    MemoryError.
    """
    assert isinstance(program_tree(deep(780)), ast.Module)
    for levels in (801, 1_400, 5_000, 20_000):
        for compiles in (True, False):
            found = program_tree(deep(levels), compiles=compiles)
            assert found == SourceFault("RecursionError", None, "the parser gave up on it")


def test_a_program_need_not_compile_to_be_parsed():
    assert isinstance(program_tree("return 1", compiles=False), ast.Module)
    assert isinstance(program_tree("return 1"), SourceFault)
