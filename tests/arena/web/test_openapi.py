"""What the interface says of itself is true: generated requests find no failure, and answers that fit."""

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tradeassay.arena.api.doors import Doors
from tradeassay.arena.state.store import Store
from tradeassay.arena.web.app import Arena, create_app

CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def _check(store: Store, examples: int) -> int:
    app = create_app(Arena(doors=Doors(store), folder=Path("none"), register=True, apply=True))
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
            case.call_and_validate(checks=list(CHECKS))

        given(case=operation.as_strategy())(one)()
        tried += 1
    return tried


def test_generated_requests_find_no_failure(web_store):
    assert _check(web_store, 4) == 11


@pytest.mark.slow
def test_many_generated_requests_find_no_failure(web_store):
    assert _check(web_store, 100) == 11
