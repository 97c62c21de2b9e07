"""Executors of jobs by their names."""

from __future__ import annotations

from typing import Literal

from tradeassay.core.errors import UserError
from tradeassay.sandbox.job import JobExecutor
from tradeassay.sandbox.sandbox import SandboxPool
from tradeassay.sandbox.sandbox_config import SandboxConfig


def open_executor(
    kind: Literal["sandbox", "ray", "trusted-in-process"] = "sandbox",
    *,
    config: SandboxConfig | None = None,
    workers: int = 1,
) -> JobExecutor:
    if workers < 1:
        raise UserError(f"{workers} workers cannot run anything", hint="give 1 or more")
    if kind == "sandbox":
        return SandboxPool(config, workers=workers)
    if kind == "ray":
        from tradeassay.sandbox.on_ray import RaySandboxPool

        return RaySandboxPool(config, workers=workers)
    if kind == "trusted-in-process":
        from tradeassay.sandbox.trusted import TrustedCodeInProcess

        return TrustedCodeInProcess()
    raise UserError(f"no executor '{kind}'", hint="known: sandbox, ray, trusted-in-process")
