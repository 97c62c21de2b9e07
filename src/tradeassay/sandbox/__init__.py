"""Run untrusted code, and know what it tried.

``with SandboxPool(workers=2) as pool: result = pool.run(Job(source=..., columns=...))``. The walls are the
kernel's (namespaces, Landlock, seccomp, limits); nothing inside Python counts as one. Where they are missing,
code is not run.
"""

from tradeassay.sandbox.executor import (
    TrustedCodeInProcess as TrustedCodeInProcess,
    open_executor as open_executor,
)
from tradeassay.sandbox.failures import (
    BadResult as BadResult,
    ChildClaim as ChildClaim,
    CpuTimeout as CpuTimeout,
    Crashed as Crashed,
    Failure as Failure,
    FileAttempt as FileAttempt,
    ForbiddenImport as ForbiddenImport,
    HostVerdict as HostVerdict,
    NetworkAttempt as NetworkAttempt,
    OomKilled as OomKilled,
    OutputLimit as OutputLimit,
    PrivilegedAttempt as PrivilegedAttempt,
    ProcessAttempt as ProcessAttempt,
    RefusedCall as RefusedCall,
    SupervisorFault as SupervisorFault,
    SyntaxFault as SyntaxFault,
    WallTimeout as WallTimeout,
    decided_by_host as decided_by_host,
    kind_of as kind_of,
)
from tradeassay.sandbox.feed import FrameFeed as FrameFeed
from tradeassay.sandbox.job import (
    Job as Job,
    JobExecutor as JobExecutor,
    JobLimits as JobLimits,
    JobResult as JobResult,
    JobUsage as JobUsage,
)
from tradeassay.sandbox.sandbox import Sandbox as Sandbox, SandboxPool as SandboxPool
from tradeassay.sandbox.sandbox_config import SandboxConfig as SandboxConfig
from tradeassay.sandbox.tier import (
    Kernel as Kernel,
    SandboxRefused as SandboxRefused,
    Tier as Tier,
    ask_kernel as ask_kernel,
    refusal as refusal,
)
