"""The loop without a sandbox: what a writer is told, what is set aside, who marks, and how
answers are read.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tradeassay.core.measure import Measure, not_scored
from tradeassay_bench.core.dialogue import AskModel, ModelReply, Usage
from tradeassay_bench.core.drive import drive
from tradeassay_programs.benchmarks.systrade import load_spec
from tradeassay_programs.benchmarks.systrade.dialogue import (
    BuildSettings,
    ReviewWanted,
    ScoreWanted,
    build,
    read_halves,
)
from tradeassay_programs.benchmarks.systrade.spec import ScoredIteration, StrategyOutcome
from tradeassay_programs.benchmarks.systrade.wording import example_program
from tradeassay_programs.code.checks import Exhibit, convicted, passed
from tradeassay_programs.code.drift import DriftReport
from tradeassay_programs.code.gates import GATES, GateReport
from tradeassay_programs.code.scores import Scorecard, overall

SPEC = load_spec("bollinger")
SECRET = "the test year earned 77.7 %"


def answer(source: str = "class TradingStrategy: pass", card: str = '{"a": 1}') -> ModelReply:
    text = f"Here.\n```json\n{card}\n```\n```python\n{source}\n```\n"
    return ModelReply(text=text, usage=Usage(input_tokens=100, output_tokens=10, usd=0.01))


def card(*, reached: bool, gate: str | None = None, note: str = "") -> Scorecard:
    gates = tuple(
        (convicted([Exhibit(code="x", text="because of this")]) if one == gate else passed()).named(
            one
        )
        for one in GATES
    )
    who = {"strategy": SPEC.id, "submission": "m", "submission_sha256": ""}
    corrected = {
        d: Measure(value=9.0 if reached else 5.0, note=note or None)
        for d in ("D1", "D2", "D3", "D4")
    }
    return Scorecard(
        **who,
        gates=GateReport(**who, semantics_sha256="", bars="", rows=1, tier="", gates=gates),
        corrected=corrected,
        paper=dict.fromkeys(corrected, not_scored("no peer has marked it")),
        paper_parts={},
        overall=overall(corrected),
        regimes=(),
        year=None,
        year_reason="nothing",
        complexity=1.0,
        data="",
    )


def scored(
    drift: str = "", *, reached: bool = False, gate: str | None = None, **more: Any
) -> ScoredIteration:
    return ScoredIteration(
        scorecard=card(reached=reached, gate=gate, note=SECRET),
        develop=card(reached=reached, gate=gate),
        drift=DriftReport(kind=drift, **{"changed_lines": 1, **more}) if drift else None,  # type: ignore[arg-type]  # a kind
    )


def play(
    answers: list[ModelReply],
    found: list[ScoredIteration],
    reviewer: Callable[[AskModel], ModelReply] | None = None,
    **settings: Any,
) -> tuple[StrategyOutcome, list[AskModel], list[ScoreWanted]]:
    asked: list[AskModel] = []
    wanted: list[ScoreWanted] = []

    def said(request: Any) -> Any:
        if isinstance(request, ReviewWanted):
            assert reviewer is not None
            return reviewer(request.request)
        (asked if isinstance(request, AskModel) else wanted).append(request)
        return answers[len(asked) - 1] if isinstance(request, AskModel) else found[len(wanted) - 1]

    return drive(build(SPEC, "m", BuildSettings(**settings)), said), asked, wanted


def told(request: AskModel) -> str:
    return request.messages[-1].text


def numbered(count: int) -> list[ModelReply]:
    """Return as many answers, each with another program."""
    return [answer(f"class TradingStrategy: number = {n}") for n in range(count)]


def test_it_stops_at_the_target_and_asks_with_the_doc_and_the_frozen_semantics():
    outcome, asked, wanted = play([answer()], [scored(reached=True)])
    assert (
        outcome.stopped == "target"
        and len(asked) == 1
        and wanted[0].first is wanted[0].previous is None
    )
    rules = [rule.when for rule in SPEC.semantics.rules]
    assert SPEC.doc.strip().splitlines()[-1] in told(asked[0]) and all(
        rule in told(asked[0]) for rule in rules
    )
    assert outcome.usage.usd == pytest.approx(0.01)
    outcome, asked, _ = play(
        [answer()] * 2, [scored(reached=True)] * 2, iterations=2, early_stop=False
    )
    assert outcome.stopped == "iterations" and len(asked) == 2, "it may go on after the target"


def test_four_iterations_with_evidence_of_the_development_year_alone():
    outcome, asked, wanted = play(numbered(4), [scored(gate="audit")] * 4)
    assert outcome.stopped == "iterations" and len(outcome.iterations) == 4
    assert all("because of this" in told(one) and "audit: failed" in told(one) for one in asked[1:])
    assert not any(SECRET in message.text for one in asked for message in one.messages)
    assert "Sharpe ratio of at least" not in told(
        asked[2]
    ) and "Sharpe ratio of at least 1.5" in told(asked[3])
    assert "return of at least 10%" in told(asked[3])
    assert all(len(one.messages) == 4 for one in asked[1:]), (
        "evidence is about the last submission only"
    )
    assert wanted[1].first == wanted[1].previous == wanted[0].submission
    # Earlier programs are shown at the last iteration only; iteration 2 stands above as the one to patch.
    assert "number = 0" not in told(asked[2]) and "number = 2" in asked[3].messages[2].text
    assert all(f"number = {n}" in told(asked[3]) for n in (0, 1))
    for number, one in enumerate(
        asked
    ):  # what is asked comes last, and nothing is there for scripted models
        text = "\n".join(message.text for message in one.messages)
        assert "systrade.build" not in text and '"iteration"' not in text
        last = told(one).rstrip().rpartition("# What to write now")[2]
        assert "```python" in last or last.strip().startswith("Write the program")
        assert f'"iteration":{number}' in one.given.observation  # type: ignore[union-attr]  # it has one


def test_drift_is_set_aside_and_the_next_patch_starts_from_the_one_before():
    drift = scored(
        "drift", reached=True, card_changes=("parameter 'n' was 20 and is 30",), changed_lines=4
    )
    found = [scored(), drift, scored("repair", changed_lines=3)]
    outcome, asked, wanted = play(numbered(3), found, iterations=3)
    assert [one.set_aside for one in outcome.iterations] == [False, True, False]
    assert outcome.last is outcome.iterations[2].scored
    assert (
        "number = 0" in asked[2].messages[2].text and "number = 1" not in asked[2].messages[2].text
    )
    assert "set aside" in told(asked[2]) and "was 20 and is 30" in told(asked[2])
    assert wanted[2].previous == wanted[0].submission
    drifted = outcome.iterations[1].scored
    assert drifted is not None and drifted.scorecard.paper["D1"].value == 0.0
    only = play(numbered(2), found[:2], iterations=2)[0]
    assert only.last is only.iterations[0].scored, "a drifted last patch does not count"
    # Nor is a patch that is unknown or stops running ever the baseline.
    for bad in (scored("unknown"), scored("unchanged", gate="exec")):
        outcome, asked, wanted = play(numbered(3), [scored(), bad, bad], iterations=3)
        assert [one.set_aside for one in outcome.iterations] == [False, True, True]
        assert outcome.last is outcome.iterations[0].scored
        assert wanted[2].previous == wanted[0].submission and "set aside" in told(asked[2])


def test_reviews_are_blind_asked_again_once_and_shown_without_names():
    seen: list[AskModel] = []

    def reviewer(request: AskModel) -> ModelReply:
        seen.append(request)
        if len(seen) == 1:
            return ModelReply(text="I like it.")
        body = {"fidelity": 7, "risk": 4, "weaknesses": "no `limit`\nat all"}
        return ModelReply(text=msgspec.json.encode(body).decode(), usage=Usage(usd=0.5))

    found = [scored(), scored("unchanged")]
    outcome, asked, _ = play(
        [answer()] * 2, found, reviewer, iterations=2, reviewers=("other/reviewer",)
    )
    assert "class TradingStrategy" in seen[0].messages[-1].text
    assert not any(
        "other/reviewer" in m.text or " m " in m.text.split("<<")[0] for m in seen[0].messages
    )
    assert "fidelity 7, risk 4. no 'limit' at all" in told(
        asked[1]
    ) and "other/reviewer" not in told(asked[1])
    assert outcome.review_usage.usd is None, (
        "one answer has no known price, so that their sum has none"
    )
    last = outcome.iterations[0].scored
    assert last is not None and (
        last.scorecard.paper["D1"].value,
        last.scorecard.paper["D2"].value,
    ) == (7.0, 4.0)
    # Without marks it is a failure and no middle mark.
    unreadable = ModelReply(text='{"fidelity": 11, "risk": 1}')
    outcome, *_ = play(
        [answer()], [scored()], lambda _: unreadable, iterations=1, reviewers=("a/b",)
    )
    (review,) = outcome.iterations[0].reviews
    assert review.fidelity is None and "schema" in (review.failure or "")


def test_refusals_show_the_form_do_not_grow_and_end_when_repeated():
    echo = [ModelReply(text=f"I shall think about it, {n}.") for n in range(4)]
    outcome, asked, _ = play(echo, [])
    assert outcome.stopped == "no submission" and len(asked) == len(outcome.iterations) == 4
    assert all(len(one.messages) == 4 and "class TradingStrategy" in told(one) for one in asked[1:])
    outcome, asked, _ = play([echo[0]] * 4, [])
    assert outcome.stopped == "repeats itself" and len(asked) == 2 and outcome.last is None
    outcome, asked, _ = play([echo[0], answer()], [scored(reached=True)])
    assert outcome.stopped == "target" and "there is no Python program in it" in told(asked[1])
    outcome, *_ = play([ModelReply(text="", error="nobody", error_kind="unreachable")], [])
    assert outcome.stopped == "no answer" and outcome.last is None


def test_an_answer_that_was_cut_off_is_no_iteration_once():
    cut = ModelReply(text="The strategy is", stop="length")
    outcome, asked, _ = play([cut, answer()], [scored(reached=True)])
    assert (
        outcome.cut_off == 1 and len(outcome.iterations) == 1 and outcome.iterations[0].number == 0
    )
    assert "shorter" in told(asked[1])
    outcome, asked, _ = play([cut, cut, answer()], [scored(reached=True)])
    assert outcome.cut_off == 2 and [one.number for one in outcome.iterations] == [0, 1]


def test_reads_what_a_careful_person_would_read():
    program, card = (
        "```python\nclass TradingStrategy: pass\n```",
        '{"strategy": "b", "parameters": {}}',
    )
    for text, found in (
        (f"```\n{card}\n```\n{program}", True),
        (f"The card: {card}\n{program}", True),
        (f'```json\n{{"strategy": "example-hold"}}\n```\n{program}', False),
        ("```python\nclass TradingStrategy:\n    CARD = {'strategy': 1}\n```", False),
        ('```json\n{"strategy": "b"}\n```', False),
    ):
        read = read_halves(text)
        assert (read.program is not None and read.card is not None) == found == (not read.wrong), (
            text
        )


def test_asks_for_the_missing_half_alone_and_keeps_the_other():
    card = ModelReply(text='```json\n{"strategy": "bollinger", "parameters": {}}\n```')
    other = "class Other:\n    def run(self, a, b): return [], []"
    program = ModelReply(text=f"Now the program.\n```python\n{other}\n```")
    for first, second, wanted in ((card, program, "```python"), (program, card, "```json")):
        outcome, asked, _ = play([first, second], [scored(reached=True)])
        assert [one.number for one in outcome.iterations] == [0] and outcome.stopped == "target"
        made = outcome.iterations[0].submission
        assert (
            made is not None
            and "bollinger" in made.card
            and made.source.endswith("TradingStrategy = Other\n")
        )
        assert "is kept" in told(asked[1]) and wanted in told(asked[1]).rsplit("\n\n", 1)[1]
    outcome, asked, _ = play([card, card, program], [])
    assert outcome.stopped == "repeats itself" and len(asked) == 2
    others = [
        ModelReply(text=f'```json\n{{"strategy": "bollinger", "version": {n}}}\n```')
        for n in range(5)
    ]
    outcome, asked, _ = play(others, [])
    assert outcome.stopped == "no submission" and len(asked) == 5, (
        "the missing half is asked for once for nothing"
    )
    # A patch without a card keeps the card.
    bare = ModelReply(
        text="```python\nclass TradingStrategy:\n    def run(self, a, b): return [], []\n```"
    )
    outcome, asked, _ = play([answer(), bare, bare, bare], [scored(), *[scored("unchanged")] * 3])
    assert {one.submission.card for one in outcome.iterations if one.submission} == {'{"a": 1}'}
    assert told(asked[1]).rstrip().endswith("```json.")


def test_an_echo_of_the_example_and_a_program_cut_off_are_no_submissions():
    echo = f'```python\n{example_program()}\n```\n```json\n{{"strategy": "bollinger"}}\n```'
    assert read_halves(echo).program is None and "example" in read_halves(echo).wrong
    cut = '```json\n{"strategy": "b"}\n```\n```python\nclass TradingStrategy:\n    def run(self, a'
    assert (
        read_halves(cut).program is not None and "(cut off)" in read_halves(cut, cut_off=True).wrong
    )


def test_an_iteration_counts_every_answer_that_it_took():
    program = "class TradingStrategy: pass"
    alone = ModelReply(
        text=f"```python\n{program}\n```", usage=Usage(input_tokens=300, output_tokens=70, usd=0.02)
    )
    cut = ModelReply(
        text="I will", stop="length", usage=Usage(input_tokens=500, output_tokens=90, usd=0.03)
    )
    prose = ModelReply(text="No.", usage=Usage(input_tokens=40, output_tokens=4, usd=0.01))
    # The first is cut off and asked for again, then lacks its card; the second says nothing; the third is whole.
    answers = [cut, alone, answer(), prose, answer(program + " # more")]
    outcome, _, _ = play(answers, [scored(), scored("repair")], iterations=3)
    assert [one.usage.input_tokens for one in outcome.iterations] == [900, 40, 100]
    assert [one.usage.output_tokens for one in outcome.iterations] == [170, 4, 10]
    assert outcome.iterations[0].usage.usd == pytest.approx(0.06)
    assert (
        outcome.usage.input_tokens
        == sum(one.usage.input_tokens for one in outcome.iterations)
        == 1040
    )
