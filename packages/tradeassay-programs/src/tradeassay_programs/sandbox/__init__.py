"""Run untrusted code in isolation, and report refused calls.

Use ``with SandboxPool(workers=2) as pool: result = pool.run(Job(source=..., columns=...))``.

The kernel isolates the code with namespaces, Landlock, seccomp and limits. No Python mechanism
counts as isolation. On a machine whose kernel lacks these mechanisms, the code does not run.
"""

from tradeassay_programs.sandbox.executor import (
    TimeoutTeller as TimeoutTeller,
    TrustedCodeInProcess as TrustedCodeInProcess,
    open_executor as open_executor,
)
from tradeassay_programs.sandbox.failures import (
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
from tradeassay_programs.sandbox.feed import FrameFeed as FrameFeed
from tradeassay_programs.sandbox.job import (
    Job as Job,
    JobExecutor as JobExecutor,
    JobLimits as JobLimits,
    JobResult as JobResult,
    JobUsage as JobUsage,
)
from tradeassay_programs.sandbox.sandbox import Sandbox as Sandbox, SandboxPool as SandboxPool
from tradeassay_programs.sandbox.sandbox_config import SandboxConfig as SandboxConfig
from tradeassay_programs.sandbox.tier import (
    Kernel as Kernel,
    SandboxRefused as SandboxRefused,
    Tier as Tier,
    ask_kernel as ask_kernel,
    refusal as refusal,
)
