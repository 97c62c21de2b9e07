"""The JSON interface's types for OpenAPI, written from the structs that are sent: one definition, two readers."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer, and what to do about it."""

    detail: str
    mend: str | None = None


_REF = "#/components/schemas/{name}"


def answers(type_: Any, what: str, *, missing: bool = True) -> dict[int | str, dict[str, Any]]:
    """Return the ``responses`` of an operation that sends a struct."""
    (shape,), _ = msgspec.json.schema_components([type_], ref_template=_REF)
    found: dict[int | str, dict[str, Any]] = {
        200: {"description": what, "content": {"application/json": {"schema": shape}}},
        422: problem("A parameter does not fit."),
    }
    if missing:
        found[404] = problem("There is no such season, entry, asset or decision.")
    return found


def problem(what: str) -> dict[str, Any]:
    """Return the description of an error answer."""
    return {
        "description": what,
        "content": {"application/json": {"schema": {"$ref": _REF.format(name="Problem")}}},
    }


def describe(app: FastAPI, types: tuple[Any, ...], about: str) -> None:
    """Let an application describe itself, with the given structs among the components."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, description=about, routes=app.routes)
            _, components = msgspec.json.schema_components([*types, Problem], ref_template=_REF)
            made.setdefault("components", {}).setdefault("schemas", {}).update(components)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the documented way to extend it
