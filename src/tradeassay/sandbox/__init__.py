"""Run untrusted code, and know what it tried.

``with SandboxPool(workers=2) as pool: result = pool.run(Job(source=..., columns=...))``. The walls are the
kernel's (namespaces, Landlock, seccomp, limits); nothing inside Python counts as one. Where they are missing,
code is not run.
"""

from __future__ import annotations

from tradeassay.sandbox.config import SandboxConfig
from tradeassay.sandbox.executor import Executor, open_executor
from tradeassay.sandbox.failures import (
    Attempt,
    BadResult,
    ChildClaim,
    CpuTimeout,
    Crashed,
    Failure,
    FileAttempt,
    ForbiddenImport,
    HostVerdict,
    NetworkAttempt,
    OomKilled,
    OutputLimit,
    PrivilegedAttempt,
    ProcessAttempt,
    SyntaxFault,
    WallTimeout,
    decided_by_host,
    kind_of,
)
from tradeassay.sandbox.feed import Feed
from tradeassay.sandbox.job import Job, Limits
from tradeassay.sandbox.result import JobResult, Usage
from tradeassay.sandbox.sandbox import Sandbox, SandboxPool
from tradeassay.sandbox.tier import Kernel, SandboxRefused, Tier, ask_kernel, refusal
from tradeassay.sandbox.trusted import TrustedCodeInProcess

__all__ = [
    "Attempt",
    "BadResult",
    "ChildClaim",
    "CpuTimeout",
    "Crashed",
    "Executor",
    "Failure",
    "Feed",
    "FileAttempt",
    "ForbiddenImport",
    "HostVerdict",
    "Job",
    "JobResult",
    "Kernel",
    "Limits",
    "NetworkAttempt",
    "OomKilled",
    "OutputLimit",
    "PrivilegedAttempt",
    "ProcessAttempt",
    "Sandbox",
    "SandboxConfig",
    "SandboxPool",
    "SandboxRefused",
    "SyntaxFault",
    "Tier",
    "TrustedCodeInProcess",
    "Usage",
    "WallTimeout",
    "ask_kernel",
    "decided_by_host",
    "kind_of",
    "open_executor",
    "refusal",
]
