"""What the interface says of itself is true: generated requests find no failure, and answers
that fit.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tradeassay_arena.api.agent_api import AgentApi
from tradeassay_arena.web.app import Arena, create_app

pytestmark = pytest.mark.journey

QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.mark.slow_for("100")
@pytest.mark.parametrize("examples", [4, 100])
def test_generated_requests_find_no_failure(web_store, examples):
    import schemathesis  # not above: every worker collects this file
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    wanted = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    app = create_app(Arena(api=AgentApi(web_store), folder=Path("none"), register=True, apply=True))
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=(Phase.generate,),
            suppress_health_check=QUIET,
        )
        def one(case: schemathesis.Case) -> None:
            case.call_and_validate(checks=wanted)

        given(case=operation.as_strategy())(one)()
        tried += 1
    assert tried == 11
