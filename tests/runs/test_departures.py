"""What a run departs in from its registered benchmark; the rules of a score belong to the benchmark's id."""

from pathlib import Path
from unittest import mock

import msgspec
import pytest

from tradeassay.benchmarks.programs import CodeSpec
from tradeassay.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay.benchmarks.systrade.benchmark import SystradeProtocol
from tradeassay.benchmarks.systrade.spec import SystradeSpec
from tradeassay.cli import main
from tradeassay.code.evaluation import EvaluateConfig
from tradeassay.code.gates import GateConfig
from tradeassay.code.scores import ScoreConfig
from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig
from tradeassay.runs import AgentSpec, RunSpec, Window, run
from tradeassay.runs.verify.freedom import code_departures, trading_departures
from tradeassay.runs.verify.report import verify

WIDE = SystradeSpec(
    models=("scripted/away",), strategies=("turtle",), score=ScoreConfig(gates=GateConfig(tolerance=1e9))
)


def test_a_run_as_registered_departs_in_nothing_and_every_choice_is_listed() -> None:
    plain = RunSpec(slug="x", benchmarks=("ktdfin-v1",), agents=(AgentSpec(name="cash"),))
    assert trading_departures(plain) == ()
    chosen = msgspec.structs.replace(
        plain,
        window=Window(first="2022-03-01", last="2022-03-02"),
        seeds=(4,),
        datasets={"ktdfin-v1": ("synthetic/ashare:9",)},
        index="none",
        universe="top-5",
        protocol={"mask": ("bright", "blinded"), "mode": "open-research"},
        bootstrap=BootstrapConfig(level=0.5),
    )
    found = trading_departures(chosen)
    fields = ["dataset", "window", "seeds", "index", "universe", "protocol.mask", "bootstrap.level"]
    assert [one.field for one in found] == fields and not any(one.rule for one in found)
    assert str(found[1]) == "window is 2022-03-01 .. 2022-03-02, registered is 2022-02-07 .. 2024-01-31"


@pytest.mark.parametrize(
    ("spec", "rules"),
    [
        (WIDE, {"score.gates.tolerance"}),
        (
            QuantCodeSpec(models=("scripted/away",), turns=3, evaluate=EvaluateConfig(leak=False)),
            {"evaluate.leak"},
        ),
    ],
)
def test_rules_are_told_from_what_is_free_and_other_rules_are_refused(
    spec: CodeSpec, rules: set[str], tmp_path: Path
) -> None:
    found = code_departures(spec)
    assert {one.field for one in found if one.rule} == rules
    assert {one.field for one in found if not one.rule} in ({"strategies"}, {"turns"})
    with pytest.raises(UserError, match=f"that is not '{spec.benchmark}'"):
        run(spec, tmp_path / "r")


def test_a_record_made_under_other_rules_is_named_and_not_scored_by_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mock.patch.object(SystradeProtocol, "fixed", ()):  # as somebody who edits the program would run it
        folder = run(WIDE, tmp_path / "r").folder
    found = verify(folder)
    why = "these are not the rules of 'systrade-v1': score.gates.tolerance is 1000000000.0, registered is 1e-06"
    assert found.exit_code == 3 and not found.violations
    assert {(one.claim, one.outcome) for one in found.claims if one.why == why} == {
        (claim, "cannot be checked") for claim in ("rules", "programs", "conversation", "scores")
    }
    assert main(["verify", str(folder)]) == 3
    assert "score.gates.tolerance" in capsys.readouterr().out
