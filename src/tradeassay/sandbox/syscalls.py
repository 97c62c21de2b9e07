"""Which system calls a sandboxed child may make, and what the refused ones are called.

Three answers: *allowed* calls run at full speed; *watched* calls name a path and are shown to the host, which
lets them go on or refuses them; every other call is refused, and the host is told. ``QUIET`` calls are refused
without a word, because libc asks them by itself and falls back.
"""

from __future__ import annotations

import errno
from typing import Final, Literal

from tradeassay.sandbox.syscall_table import AUDIT_ARCH, SYSCALLS

Family = Literal["network", "process", "file", "memory", "privileged", "other"]
"""What a refused call was after."""

ALLOWED: Final[frozenset[str]] = frozenset(
    # Memory and the interpreter's own life.
    "brk mmap munmap mprotect mremap madvise msync exit exit_group futex set_robust_list set_tid_address "
    "restart_syscall getrandom sched_yield sched_getaffinity getcpu "
    # Descriptors it already has.
    "read write readv writev pread64 pwrite64 preadv pwritev close close_range lseek dup dup2 dup3 pipe pipe2 "
    "poll ppoll select pselect6 sendfile copy_file_range ftruncate fallocate fsync fdatasync flock fadvise64 "
    # Looking at files it can reach.
    "fstat getdents getdents64 getcwd fchdir statfs fstatfs umask "
    # Time and its own signals.
    "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times alarm setitimer getitimer pause "
    "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack "
    # Asking who it is; waiting for children it cannot have.
    "getpid gettid getppid getpgrp getpgid getsid getuid geteuid getgid getegid getresuid getresgid getgroups "
    "capget getrlimit getrusage getpriority sysinfo uname wait4 waitid".split()
)

STAT: Final[frozenset[str]] = frozenset("stat lstat newfstatat statx access faccessat faccessat2".split())
"""Calls that only tell whether a path exists. Landlock does not cover them: watched where there is no private
root.
"""

WATCHED: Final[frozenset[str]] = frozenset(
    "open openat creat mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 chdir "
    "readlink readlinkat".split()
)
"""Calls that name a path. The kernel (Landlock) decides; the host records the ones that reach outside."""

QUIET: Final[dict[str, int]] = {"clone3": errno.ENOSYS, "rseq": errno.ENOSYS, "openat2": errno.ENOSYS}
"""Refused without a report. glibc falls back from clone3 to clone, which *is* reported."""

CONTROL_FD: Final = 5
"""The only descriptor a child may ``sendmsg`` on. It is closed before untrusted code runs, and no socket can be
made.
"""

_TTY_AND_CLOEXEC: Final = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
_DUP_FLAGS_LOCKS_SEALS: Final = (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1034)
SIGABRT: Final = 6

ALLOWED_INT: Final[dict[str, tuple[int, tuple[int, ...]]]] = {
    "ioctl": (1, _TTY_AND_CLOEXEC),
    "fcntl": (1, _DUP_FLAGS_LOCKS_SEALS),
    "prctl": (0, (15, 16)),
    "sendmsg": (0, (CONTROL_FD,)),
}
"""Call -> (argument, its allowed values). The kernel reads these arguments as 32-bit integers, so 32 bits are
compared.
"""

_FAMILIES: Final[dict[Family, str]] = {
    "network": "socket socketpair connect accept accept4 bind listen sendto recvfrom sendmsg recvmsg "
    "sendmmsg recvmmsg shutdown getsockname getpeername setsockopt getsockopt",
    "process": "clone clone3 fork vfork execve execveat kill tkill tgkill ptrace "
    "process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_open "
    "pidfd_send_signal pidfd_getfd kcmp rt_sigqueueinfo "
    "rt_tgsigqueueinfo setpgid setsid setpriority sched_setaffinity sched_setscheduler sched_setparam "
    "sched_setattr ioprio_set",
    "file": "open openat openat2 creat mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 chdir "
    "readlink readlinkat stat lstat newfstatat statx access faccessat faccessat2 link linkat symlink symlinkat "
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat truncate utime utimes utimensat futimesat "
    "mknod mknodat setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr "
    "removexattr lremovexattr fremovexattr setxattrat getxattrat listxattrat removexattrat "
    "inotify_init inotify_init1 inotify_add_watch sync syncfs",
    "memory": "memfd_create memfd_secret shmget shmat shmctl shmdt mlock mlock2 mlockall mq_open mq_unlink semget "
    "semop semctl semtimedop msgget msgsnd msgrcv msgctl remap_file_pages vmsplice",
    "privileged": "mount umount2 pivot_root chroot unshare setns setuid setgid setreuid setregid "
    "setresuid setresgid setgroups setfsuid setfsgid capset prctl prlimit64 setrlimit personality "
    "seccomp bpf perf_event_open "
    "userfaultfd keyctl add_key request_key io_uring_setup io_uring_enter io_uring_register init_module "
    "finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl quotactl_fd "
    "settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname iopl ioperm modify_ldt "
    "name_to_handle_at open_by_handle_at fanotify_init fanotify_mark landlock_create_ruleset "
    "landlock_add_rule landlock_restrict_self fsopen fsconfig fsmount fspick open_tree move_mount "
    "mount_setattr syslog nfsservctl lookup_dcookie vhangup",
}
_FAMILY_OF: Final[dict[str, Family]] = {
    name: family for family, names in _FAMILIES.items() for name in names.split()
}


def machines() -> tuple[str, ...]:
    """Return the machines whose calls are known, as ``platform.machine()`` names them."""
    return tuple(SYSCALLS)


def number(machine: str, name: str) -> int:
    """Return a call's number; raises KeyError when the machine has no such call."""
    return SYSCALLS[machine][name]


def name_of(machine: str, nr: int) -> str:
    """Return a call's name, or ``syscall 999`` for one that is not in the table."""
    return _names(machine).get(nr, f"syscall {nr}")


def family_of(name: str) -> Family:
    """Return what a refused call was after."""
    return _FAMILY_OF.get(name, "other")


def audit_arch(machine: str) -> int:
    """Return the value the kernel gives as ``seccomp_data.arch`` for this machine's own calls."""
    return AUDIT_ARCH[machine]


_NAMES: dict[str, dict[int, str]] = {}


def _names(machine: str) -> dict[int, str]:
    if machine not in _NAMES:
        _NAMES[machine] = {nr: name for name, nr in SYSCALLS[machine].items()}
    return _NAMES[machine]
