"""Money, weights and scores are added by ``plain_sum``: the builtin ``sum`` rounds otherwise since Python 3.12."""

import ast
from pathlib import Path

import tradeassay
from tradeassay.core.measure import plain_sum

PACKAGE = Path(tradeassay.__file__).parent
COUNTING = frozenset("len bool int any all ord isinstance startswith match search".split())
"""Functions that give whole numbers or truths."""
WHOLE = frozenset(
    """ENGLISH GAP GIVEN PER_MESSAGE a_start a_stop agents at b_start b_stop bars bit book calls codes
    compress_size correct_account count counts decisions drifted end ended episodes estimate_request
    estimate_tokens failed file_size input_tokens items least level long look_ahead marks model_calls
    most_tokens n nbytes not_cleared ok output_tokens passed reached_goal reads refused rough_tokens row rows
    said sessions size slots st_size start steps talks tasks tests tokens tokens_of tool_calls tricks unparsed
    unpriced valid words write""".split()
)
"""What counts something, wherever a sum of the package names it."""
ALLOWED = {
    "arena/queries/decisions.py": {"sum((right for _, right in here))"},  # truths
    "arena/web/status.py": {"sum(by('corrections', id).values())"},  # rows
    "arena/standings/variance.py": {"sum(effects)"},  # arrays, which numpy adds
    "assay/attribution.py": {"sum(trading.values(), np.zeros(daily.trading.size))"},
    "benchmarks/quantcode/scores.py": {"sum((Counter(getattr(cell, field)) for cell in cells), Counter[str]())"},
    "benchmarks/quantcode/tables.py": {"sum((getattr(row, name) for row in printed_rows))"},  # tasks
    "benchmarks/systrade/tables.py": {"sum(one[1])"},  # submissions
    "data/synthetic/events.py": {"sum(weights)"},  # whole percents
    "metrics/reliability.py": {"sum(group)"},  # truths
    "code/collapse.py": {"sum((counts[left] & counts[right]).values())"},
}


def whole(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Constant(value=value):
            return isinstance(value, int)
        case ast.BinOp(left=left, right=right, op=op):
            return not isinstance(op, ast.Div) and whole(left) and whole(right)
        case ast.Call(func=ast.Name(id="sum")):
            return counts(node)
        case ast.Call(func=ast.Attribute(attr="values" | "get", value=value)) | ast.Subscript(value=value):
            return whole(value)
        case ast.Call(func=ast.Name(id="max" | "min" | "abs"), args=args):
            return all(map(whole, args))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) | ast.Name(id=name):
            return name.lstrip("_") in COUNTING | WHOLE
        case ast.Attribute(attr=name):
            return name in WHOLE
    return False


def counts(call: ast.Call) -> bool:
    match call.args[0]:
        case ast.GeneratorExp(elt=elt) | ast.ListComp(elt=elt):
            return whole(elt)
        case ast.Call(func=ast.Name(id="map"), args=[function, *_]):
            return whole(function)
        case other:
            return whole(other)


def test_the_builtin_sum_adds_counts_only() -> None:
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        name, text = file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "sum(" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum":
                if not counts(node) and ast.unparse(node) not in ALLOWED.get(name, ()):
                    wrong.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert not wrong, "floats: use core.measure.plain_sum; counts: name them in this test\n" + "\n".join(wrong)


def test_floats_are_rounded_after_every_term() -> None:
    assert plain_sum([0.1] * 10) == 0.9999999999999999  # 1.0 when compensated
    assert plain_sum(iter(())) == 0 and plain_sum((1e308, 1e308, -1e308)) == float("inf")
