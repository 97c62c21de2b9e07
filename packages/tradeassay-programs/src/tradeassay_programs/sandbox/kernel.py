"""Make Linux calls that Python does not wrap, restrict paths by Landlock, and list allowed calls.

A call gets one of three answers. *Allowed* calls run at full speed. *Watched* calls name a path,
and the host permits or refuses each of them. Every other call is refused and reported to the host.
``QUIET`` calls are refused without a report, because libc makes them on its own and falls back.

The tables are facts of the Linux ABI. Names are listed in the order of their numbers, so the
position is the number, and ``-`` marks a number without a call. From 424 on, all machines share one
table.

Landlock limits the paths that a child may open. Rights that a kernel does not know yet are left
out. Operations that Landlock does not cover (chmod, utime, truncate by name, UDP) are refused by
seccomp.
"""

import ctypes
import errno
import functools
import os
import platform
import stat
import struct
from collections.abc import Iterable
from typing import Final, Literal

_X86_64: Final = """
read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction
rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select sched_yield
mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm
setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg recvmsg shutdown bind
listen getsockname getpeername socketpair setsockopt getsockopt clone fork vfork execve exit wait4
kill uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync fdatasync
truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink
readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage sysinfo times
ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid setreuid
setregid getgroups setgroups setresuid getresuid setresgid getresgid getpgid setfsuid setfsgid
getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime
mknod uselib personality ustat statfs fstatfs sysfs getpriority setpriority sched_setparam
sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min
sched_rr_get_interval mlock munlock mlockall munlockall vhangup modify_ldt pivot_root _sysctl
prctl arch_prctl adjtimex setrlimit chroot sync acct settimeofday mount umount2 swapon swapoff
reboot sethostname setdomainname iopl ioperm create_module init_module delete_module
get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg afs_syscall tuxcall security
gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr
flistxattr removexattr lremovexattr fremovexattr tkill time futex sched_setaffinity
sched_getaffinity set_thread_area io_setup io_destroy io_getevents io_submit io_cancel
get_thread_area lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old remap_file_pages
getdents64 set_tid_address restart_syscall semtimedop fadvise64 timer_create timer_settime
timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime clock_getres
clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes vserver mbind set_mempolicy
get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr kexec_load
waitid add_key request_key keyctl ioprio_set ioprio_get inotify_init inotify_add_watch
inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat newfstatat unlinkat
renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list
get_robust_list splice tee sync_file_range vmsplice move_pages utimensat epoll_pwait signalfd
timerfd_create eventfd fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2
epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg
fanotify_init fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs
sendmmsg setns getcpu process_vm_readv process_vm_writev kcmp finit_module sched_setattr
sched_getattr renameat2 seccomp getrandom memfd_create kexec_file_load bpf execveat userfaultfd
membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx
io_pgetevents rseq
"""

_AARCH64: Final = """
io_setup io_destroy io_submit io_cancel io_getevents setxattr lsetxattr fsetxattr getxattr
lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr getcwd
lookup_dcookie eventfd2 epoll_create1 epoll_ctl epoll_pwait dup dup3 fcntl inotify_init1
inotify_add_watch inotify_rm_watch ioctl ioprio_set ioprio_get flock mknodat mkdirat unlinkat
symlinkat linkat renameat umount2 mount pivot_root nfsservctl statfs fstatfs truncate ftruncate
fallocate faccessat chdir fchdir chroot fchmod fchmodat fchownat fchown openat close vhangup pipe2
quotactl getdents64 lseek read write readv writev pread64 pwrite64 preadv pwritev sendfile
pselect6 ppoll signalfd4 vmsplice splice tee readlinkat newfstatat fstat sync fsync fdatasync
sync_file_range timerfd_create timerfd_settime timerfd_gettime utimensat acct capget capset
personality exit exit_group waitid set_tid_address unshare futex set_robust_list get_robust_list
nanosleep getitimer setitimer kexec_load init_module delete_module timer_create timer_gettime
timer_getoverrun timer_settime timer_delete clock_settime clock_gettime clock_getres
clock_nanosleep syslog ptrace sched_setparam sched_setscheduler sched_getscheduler sched_getparam
sched_setaffinity sched_getaffinity sched_yield sched_get_priority_max sched_get_priority_min
sched_rr_get_interval restart_syscall kill tkill tgkill sigaltstack rt_sigsuspend rt_sigaction
rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigreturn setpriority getpriority
reboot setregid setgid setreuid setuid setresuid getresuid setresgid getresgid setfsuid setfsgid
times setpgid getpgid getsid setsid getgroups setgroups uname sethostname setdomainname getrlimit
setrlimit getrusage umask prctl getcpu gettimeofday settimeofday adjtimex getpid getppid getuid
geteuid getgid getegid gettid sysinfo mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
mq_getsetattr msgget msgctl msgrcv msgsnd semget semctl semtimedop semop shmget shmctl shmat shmdt
socket socketpair bind listen accept connect getsockname getpeername sendto recvfrom setsockopt
getsockopt shutdown sendmsg recvmsg readahead brk munmap mremap add_key request_key keyctl clone
execve mmap fadvise64 swapon swapoff mprotect msync mlock munlock mlockall munlockall mincore
madvise remap_file_pages mbind get_mempolicy set_mempolicy migrate_pages move_pages
rt_tgsigqueueinfo perf_event_open accept4 recvmmsg - - - - - - - - - - - - - - - - wait4 prlimit64
fanotify_init fanotify_mark name_to_handle_at open_by_handle_at clock_adjtime syncfs setns
sendmmsg process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr
renameat2 seccomp getrandom memfd_create bpf execveat userfaultfd membarrier mlock2
copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq
kexec_file_load
"""

_SHARED_FROM: Final = 424
_SHARED: Final = """
pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen
fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2
process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule
landlock_restrict_self memfd_secret process_mrelease futex_waitv set_mempolicy_home_node cachestat
fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount
lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat listxattrat
removexattrat open_tree_attr file_getattr file_setattr
"""


def _table(own: str) -> dict[str, int]:
    numbers = {name: number for number, name in enumerate(own.split()) if name != "-"}
    numbers |= {name: _SHARED_FROM + position for position, name in enumerate(_SHARED.split())}
    return numbers


SYSCALLS: Final[dict[str, dict[str, int]]] = {
    "x86_64": _table(_X86_64),
    "aarch64": _table(_AARCH64),
}
"""Call numbers by machine name (as returned by ``platform.machine()``) and call name."""

AUDIT_ARCH: Final[dict[str, int]] = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The value of ``seccomp_data.arch`` for native 64-bit calls, by machine name."""


Family = Literal["network", "process", "file", "memory", "privileged", "other"]
"""The kind of resource that a refused call tried to reach."""

ALLOWED: Final[frozenset[str]] = frozenset(
    # Memory and the interpreter's start and exit.
    "brk mmap munmap mprotect mremap msync exit exit_group futex set_robust_list set_tid_address "
    "restart_syscall getrandom sched_yield sched_getaffinity getcpu "
    # Existing descriptors.
    "read write readv writev pread64 pwrite64 preadv pwritev close close_range lseek dup dup2 dup3 "
    "poll ppoll select pselect6 sendfile copy_file_range ftruncate fallocate fsync fdatasync "
    # Metadata of reachable files.
    "fstat getdents getdents64 getcwd fstatfs umask "
    # Time and the process's own signals.
    "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times alarm setitimer "
    "getitimer pause "
    "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend "
    "sigaltstack "
    # The process's identity, and waiting for children (it cannot have any).
    "getpid gettid getppid getpgrp getpgid getsid getuid geteuid getgid getegid getresuid "
    "getresgid getgroups "
    "capget getrlimit getrusage getpriority uname wait4 waitid".split()
)

STAT: Final[frozenset[str]] = frozenset(
    "stat lstat newfstatat statx access faccessat faccessat2 statfs".split()
)
"""Calls that only report whether a path exists. Landlock does not cover them.

The kernel caches every looked-up name, and the next job could detect this by timing. The host
therefore answers for names that do not exist.
"""

WATCHED: Final[frozenset[str]] = frozenset(
    "open openat creat mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 chdir "
    "readlink readlinkat".split()
)
"""Calls that name a path.

The kernel (Landlock) allows or denies the call. The host records paths outside the directories
that the child may use.
"""

QUIET: Final[dict[str, int]] = {
    "rseq": errno.ENOSYS,
    "fadvise64": errno.ENOSYS,
    "sysinfo": errno.ENOSYS,
    "fchdir": errno.EPERM,
}
"""Calls refused without a report, because libraries make them on their own.

``fadvise64`` evicts pages of a shared file from memory, which the next job can detect by timing.
Two jobs exchanged 128 bits this way without an error. ``sysinfo`` reports memory that other
processes have taken. ``fchdir`` would make names relative to a folder that the host does not know.
"""

MISSING: Final[dict[str, int]] = {"clone3": errno.ENOSYS, "openat2": errno.ENOSYS}
"""Calls refused as if the kernel lacked them, and reported where possible.

libc then falls back to clone and openat.
"""

CONTROL_FD: Final = 5
"""The only descriptor on which a child may call ``sendmsg``.

It is closed before untrusted code runs, and no new socket can be created.
"""

_TTY_AND_CLOEXEC: Final = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
_DUP_FLAGS_SEALS: Final = (0, 1, 2, 3, 4, 1030, 1034)
"""Locks are excluded. A library's file belongs to the host, so a lock on it would have effects
outside.
"""
_OWN_MEMORY: Final = (0, 1, 2, 3, 4, 8, 14, 15, 16, 17)
"""Advice values that evict no pages of a shared file from memory. A file's owner may evict them."""
SIGABRT: Final = 6

ALLOWED_INT: Final[dict[str, tuple[int, tuple[int, ...]]]] = {
    "ioctl": (1, _TTY_AND_CLOEXEC),
    "fcntl": (1, _DUP_FLAGS_SEALS),
    "prctl": (0, (15, 16)),
    "madvise": (2, _OWN_MEMORY),
    "sendmsg": (0, (CONTROL_FD,)),
}
"""Call -> (argument index, its allowed values). The kernel compares them as 32-bit integers."""

_FAMILIES: Final[dict[Family, str]] = {
    "network": "socket socketpair connect accept accept4 bind listen sendto recvfrom sendmsg "
    "recvmsg "
    "sendmmsg recvmmsg shutdown getsockname getpeername setsockopt getsockopt",
    "process": "pipe pipe2 clone clone3 fork vfork execve execveat kill tkill tgkill ptrace "
    "process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_open "
    "pidfd_send_signal pidfd_getfd kcmp rt_sigqueueinfo "
    "rt_tgsigqueueinfo setpgid setsid setpriority sched_setaffinity sched_setscheduler "
    "sched_setparam "
    "sched_setattr ioprio_set",
    "file": "open openat openat2 creat mkdir mkdirat rmdir unlink unlinkat rename renameat "
    "renameat2 chdir "
    "readlink readlinkat stat lstat newfstatat statx access faccessat faccessat2 link linkat "
    "symlink symlinkat "
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat truncate utime utimes utimensat "
    "futimesat "
    "mknod mknodat setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr "
    "flistxattr "
    "removexattr lremovexattr fremovexattr setxattrat getxattrat listxattrat removexattrat "
    "inotify_init inotify_init1 inotify_add_watch sync syncfs flock fcntl",
    "memory": "memfd_create memfd_secret shmget shmat shmctl shmdt mlock mlock2 mlockall mq_open "
    "mq_unlink semget "
    "semop semctl semtimedop msgget msgsnd msgrcv msgctl remap_file_pages vmsplice",
    "privileged": "mount umount2 pivot_root chroot unshare setns setuid setgid setreuid setregid "
    "setresuid setresgid setgroups setfsuid setfsgid capset prctl prlimit64 setrlimit personality "
    "seccomp bpf perf_event_open "
    "userfaultfd keyctl add_key request_key io_uring_setup io_uring_enter io_uring_register "
    "init_module "
    "finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl "
    "quotactl_fd "
    "settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname iopl ioperm "
    "modify_ldt "
    "name_to_handle_at open_by_handle_at fanotify_init fanotify_mark landlock_create_ruleset "
    "landlock_add_rule landlock_restrict_self fsopen fsconfig fsmount fspick open_tree move_mount "
    "mount_setattr syslog nfsservctl lookup_dcookie vhangup",
}
FAMILY_OF: Final[dict[str, Family]] = {}
for _family, _names in _FAMILIES.items():
    FAMILY_OF.update(dict.fromkeys(_names.split(), _family))


def number(machine: str, name: str) -> int:
    """Return the number of a call. Raises KeyError if the machine has no such call."""
    return SYSCALLS[machine][name]


def name_of(machine: str, nr: int) -> str:
    return _NAMES[machine].get(nr, f"syscall {nr}")


def family_of(name: str) -> Family:
    return FAMILY_OF.get(name, "other")


_NAMES: Final = {
    machine: {nr: name for name, nr in table.items()} for machine, table in SYSCALLS.items()
}


CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18

_MNT_DETACH: Final = 2
_AT_FDCWD: Final = -100
_MOUNT_ATTR_RDONLY_NOSUID: Final = 0x1 | 0x2
_MOUNT_ATTR_NODEV: Final = 0x4
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_MADV_COLLAPSE: Final = 25
_CAPABILITY_V3: Final = 0x20080522


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def syscall(name: str, *arguments: int | bytes | None) -> int:
    """Make the system call ``name``. Raises OSError with its errno."""
    libc = _libc()
    # ctypes would pass a plain int as 32 bits.
    long = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = libc.syscall(ctypes.c_long(number(platform.machine(), name)), *long)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return int(result)


def collapse(address: int, length: int) -> None:
    """Move a span of this process's memory into pages of 2 MB. The content does not change."""
    syscall("madvise", address, length, _MADV_COLLAPSE)


def unshare(flags: int) -> None:
    syscall("unshare", flags)


def mount(
    source: str, target: str, kind: str | None, flags: int, options: str | None = None
) -> None:
    words = [
        None if text is None else os.fsencode(text) for text in (source, target, kind, options)
    ]
    syscall("mount", words[0], words[1], words[2], flags, words[3])


def make_read_only(target: str, *, allow_devices: bool = False) -> None:
    attributes = _MOUNT_ATTR_RDONLY_NOSUID | (0 if allow_devices else _MOUNT_ATTR_NODEV)
    packed = struct.pack("=QQQQ", attributes, 0, 0, 0)
    syscall("mount_setattr", _AT_FDCWD, os.fsencode(target), 0, packed, len(packed))


def enter_root(folder: str) -> None:
    """Make ``folder`` (a mount) the root of this mount namespace and detach the old one."""
    os.chdir(folder)
    syscall("pivot_root", b".", b".")
    syscall("umount2", b".", _MNT_DETACH)
    os.chdir("/")


def die_with_parent() -> None:
    """Request SIGKILL when the parent ends. Call it again after the user id changes."""
    syscall("prctl", _PR_SET_PDEATHSIG, 9, 0, 0, 0)


def no_new_privileges() -> None:
    syscall("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def drop_capabilities() -> None:
    syscall("capset", struct.pack("=Ii", _CAPABILITY_V3, 0), bytes(24))


def keep_capabilities() -> None:
    """Keep capabilities over the process's own namespaces through the next ``exec``.

    Without this call, ``exec`` drops them for every user except root.
    """
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        held = next(int(line.split()[1], 16) for line in status if line.startswith("CapPrm:"))
    low, high = held & 0xFFFFFFFF, held >> 32
    syscall(
        "capset",
        struct.pack("=Ii", _CAPABILITY_V3, 0),
        struct.pack("=6I", low, low, low, high, high, high),
    )
    for one in range(held.bit_length()):
        if held >> one & 1:
            syscall("prctl", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, one, 0, 0)


_VERSION_QUERY: Final = 1
_RULE_PATH_BENEATH: Final = 1

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_REG = 1 << 7, 1 << 8
_ALL_OF_ABI_1: Final = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_TCP_BIND_CONNECT: Final = 3
_SCOPE_ABSTRACT_SOCKET_SIGNAL: Final = 3

READ: Final = _READ_FILE | _READ_DIR
LIST: Final = _READ_DIR
READ_WRITE: Final = (
    READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _TRUNCATE
)
_OF_A_FILE: Final = _WRITE_FILE | _READ_FILE | _TRUNCATE


def landlock_abi() -> int:
    try:
        return syscall("landlock_create_ruleset", None, 0, _VERSION_QUERY)
    except OSError:
        return 0


def handled_rights(version: int) -> int:
    """Return every file right that this Landlock version can restrict."""
    rights = _ALL_OF_ABI_1
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        if version >= since:
            rights |= right
    return rights


def ruleset_attributes(version: int) -> bytes:
    """Return ``struct landlock_ruleset_attr`` in the size of this Landlock version.

    It covers files, TCP, abstract sockets and signals.
    """
    words = [handled_rights(version)]
    if version >= 4:
        words.append(_TCP_BIND_CONNECT)
    if version >= 6:
        words.append(_SCOPE_ABSTRACT_SOCKET_SIGNAL)
    return struct.pack(f"={len(words)}Q", *words)


def restrict(version: int, rules: Iterable[tuple[int, int]]) -> None:
    """Remove every right except ``rules`` (descriptor of a path, rights below it).

    This is irreversible.
    """
    attributes = ruleset_attributes(version)
    ruleset = syscall("landlock_create_ruleset", attributes, len(attributes), 0)
    handled = handled_rights(version)
    for descriptor, rights in rules:
        kept = rights & handled
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            kept &= _OF_A_FILE
        packed = struct.pack("=Qi", kept, descriptor)
        syscall("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, packed, 0)
    syscall("landlock_restrict_self", ruleset, 0)
    os.close(ruleset)
