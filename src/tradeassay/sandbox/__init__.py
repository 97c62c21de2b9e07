"""Run untrusted code, and know what it tried.

``with SandboxPool(workers=2) as pool: result = pool.run(Job(source=..., columns=...))``. The walls are the
kernel's (namespaces, Landlock, seccomp, limits); nothing inside Python counts as one. Where they are missing,
code is not run.
"""

from tradeassay.sandbox.executor import TrustedCodeInProcess, open_executor
from tradeassay.sandbox.failures import (
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
    RefusedCall,
    SyntaxFault,
    WallTimeout,
    decided_by_host,
    kind_of,
)
from tradeassay.sandbox.feed import FrameFeed
from tradeassay.sandbox.job import Job, JobExecutor, JobLimits, JobResult, JobUsage
from tradeassay.sandbox.sandbox import Sandbox, SandboxPool
from tradeassay.sandbox.sandbox_config import SandboxConfig
from tradeassay.sandbox.tier import Kernel, SandboxRefused, Tier, ask_kernel, refusal
