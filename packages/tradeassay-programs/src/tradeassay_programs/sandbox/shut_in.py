"""Isolate a running process, for code that needs a separate process without the limits of a job."""

import errno
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tradeassay_programs.sandbox import kernel, seccomp

_REFUSED: Final = (
    "socket socketpair ptrace process_vm_readv process_vm_writev pidfd_getfd open_by_handle_at "
    "io_uring_setup bpf "
    "mount open_tree setns unshare chroot"
).split()
"""Calls that reach the network, another process's memory, or files past Landlock."""


def shut_in(readable: Iterable[Path], listable: Iterable[Path]) -> None:
    """Remove this process's access to the disk, the network and other processes, permanently.

    Paths in ``readable`` stay readable, including all content of folders. The names in ``listable``
    folders can be listed. Paths that do not exist are ignored.
    """
    rules = [(path, kernel.READ) for path in readable] + [(path, kernel.LIST) for path in listable]
    descriptors = [
        (os.open(path, os.O_PATH | os.O_CLOEXEC), rights) for path, rights in rules if path.exists()
    ]
    kernel.no_new_privileges()
    kernel.restrict(kernel.landlock_abi(), descriptors)
    for descriptor, _ in descriptors:
        os.close(descriptor)
    seccomp.install(seccomp.refusing(platform.machine(), _REFUSED, errno.EPERM), listener=False)
