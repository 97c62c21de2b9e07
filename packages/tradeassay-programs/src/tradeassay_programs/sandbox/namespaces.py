"""Restrict a child's view of the machine: its readable files and its namespaces.

Only the standard library and the loaded packages are readable. Whole site-packages folders are not
readable, because they may contain data sets, and a strategy must not find future prices there.
"""

import os
import signal
import socket
import sys
import sysconfig
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import Final

import msgspec

from tradeassay.core.our_code import PACKAGES
from tradeassay_programs.sandbox import kernel
from tradeassay_programs.sandbox.sandbox_config import SandboxConfig

_SITE_NAMES: Final = frozenset({"site-packages", "dist-packages"})
_ZONES: Final = "/usr/share/zoneinfo"
DEVICES: Final = ("/dev/null", "/dev/zero")
"""Harmless device files that libraries open. Only the first is writable.

No device supplies randomness, because a program with random draws that cannot be repeated cannot be
examined twice.
"""


class LibraryRoots(msgspec.Struct, frozen=True, kw_only=True):
    """The readable paths of the libraries.

    ``stdlib`` are folders, and ``covered`` are the unreadable folders within them. ``packages`` are
    folders or files. Time-zone data are listed separately.
    """

    stdlib: tuple[str, ...]
    covered: tuple[str, ...]
    packages: tuple[str, ...]
    zones: tuple[str, ...]

    def readable(self) -> tuple[str, ...]:
        return (*self.stdlib, *self.packages, *self.zones)

    def readable_one_by_one(self) -> tuple[str, ...]:
        parts = []
        for folder in self.stdlib:
            for name in sorted(os.listdir(folder)):
                if name not in _SITE_NAMES:
                    parts.append(os.path.join(folder, name))
        return (*parts, *self.packages, *self.zones)


def find_roots() -> LibraryRoots:
    """Return the paths of the standard library and of the loaded packages."""
    paths = sysconfig.get_paths()
    stdlib = tuple(
        dict.fromkeys(paths[key] for key in ("stdlib", "platstdlib") if os.path.isdir(paths[key]))
    )
    # In a virtual environment sysconfig names the environment's lib folder, which has no standard
    # library.
    stdlib = tuple(
        folder for folder in stdlib if os.path.exists(os.path.join(folder, "os.py"))
    ) or (os.path.dirname(os.__file__),)
    covered = []
    for folder in stdlib:
        for name in _SITE_NAMES:
            covered.append(os.path.join(folder, name))
    sites, files = _sites(stdlib), list[str]()
    for module in list(sys.modules.values()):
        # A namespace package has no file. Some packages put objects into sys.modules with
        # attributes of arbitrary types.
        path, folders = getattr(module, "__file__", None), getattr(module, "__path__", ())
        files += [path] if isinstance(path, str) else []
        if isinstance(folders, Iterable):
            files += [os.path.join(folder, "") for folder in folders if isinstance(folder, str)]
    # Wheels store their shared libraries in folders such as numpy.libs, which no module names.
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        files += [line[line.index("/") :].rstrip("\n") for line in maps if "/" in line]
    packages = package_roots(sites, files) | {os.path.join(site, "tzdata") for site in sites}
    return LibraryRoots(
        stdlib=stdlib,
        covered=tuple(folder for folder in covered if os.path.isdir(folder)),
        packages=tuple(sorted(path for path in packages if os.path.exists(path))),
        zones=(_ZONES,) if os.path.isdir(_ZONES) else (),
    )


def _sites(stdlib: Iterable[str]) -> list[str]:
    """Return the folders of the search path that contain packages, in the order of the path."""
    return [
        entry
        for entry in dict.fromkeys(sys.path)
        if os.path.isdir(entry)
        and (
            os.path.basename(entry) in _SITE_NAMES
            or not any(f"{entry}/".startswith(folder.rstrip("/") + "/") for folder in stdlib)
        )
    ]


def package_roots(sites: Iterable[str], files: Iterable[str]) -> set[str]:
    """Return, for each of ``files``, the topmost folder or file below one of ``sites``.

    This project's packages are left out.
    """
    roots: set[str] = set()
    # The innermost site decides. A folder that contains another site must not be opened as if it
    # were a package.
    prefixes = sorted((site.rstrip("/") + "/" for site in sites), key=len, reverse=True)
    for path in files:
        prefix = next((one for one in prefixes if path.startswith(one)), None)
        if prefix is not None:
            top = path[len(prefix) :].partition("/")[0]
            if top and top not in PACKAGES:
                roots.add(prefix + top)
    return roots


def module_names(packages: Iterable[str]) -> set[str]:
    """Return the importable names of package roots, e.g. ``six`` for ``.../six.py``."""
    names = {
        os.path.basename(path).partition(".")[0] for path in packages if not path.endswith(".libs")
    }
    return {name for name in names if name.isidentifier()}


@cache
def warmed(roots: tuple[str, ...], view: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Read every file below ``roots`` into memory, and return all paths below ``roots``.

    Otherwise the first child to read or look up a path would leave a trace that the next child can
    detect. Tests of packages are left out. ``view`` maps each folder name that a child sees to the
    folder of this machine.
    """
    known = {}
    for root in roots:
        shown, here = next(
            (pair for pair in view if f"{root}/".startswith(f"{pair[0]}/")), ("", "")
        )
        known[root] = here + root[len(shown) :]
        for folder, folders, files in os.walk(known[root]):
            folders[:] = [
                name
                for name in folders
                if name not in _SITE_NAMES and name not in ("test", "tests")
            ]
            for path in (os.path.join(folder, name) for name in (*folders, *files)):
                known[shown + path[len(here) :]] = path
    _for_each_file(
        known.values(), lambda file: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
    )
    # Most file systems record the access time once a day. It is recorded here, and not when a child
    # reads first.
    _for_each_file(known.values(), lambda file: os.pread(file, 1, 0))
    return frozenset(known)


def _for_each_file(paths: Iterable[str], do: Callable[[int], object]) -> None:
    """Open each readable file and call ``do`` with its descriptor. Errors of ``do`` are ignored."""
    for path in paths:
        try:
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        with suppress(OSError):
            do(file)
        os.close(file)


NOBODY: Final = 65534
SCRATCH: Final = "/scratch"
"""The path of a child's private folder."""

_NEW_ROOT: Final = "/tmp"  # A tmpfs covers it in this mount namespace only.
_SPACES: Final = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWPID
)


def why_not(action: Callable[[], None]) -> str | None:
    """Return the reason why an irreversible action fails on this machine, or None.

    The action is tried in a temporary process.
    """
    mine, theirs = os.pipe()
    probe = os.fork()
    if probe == 0:
        words = b"it failed"
        try:
            action()
            words = b"fine"
        except OSError as error:
            words = str(error).encode()
        finally:
            os.write(theirs, words)
            os._exit(0)
    os.close(theirs)
    with open(mine, encoding="utf-8") as answer:
        said = answer.read()
    os.waitpid(probe, 0)
    return None if said == "fine" else said or "it was killed"


def why_not_leave() -> str | None:
    """Return the reason why namespaces are not allowed on this machine, or None."""

    def attempt() -> None:
        leave_host()
        enter_view(plan_view())

    return why_not(attempt)


def leave_host() -> None:
    """Enter new namespaces, including a user namespace if the process is not root.

    The next fork is process 1 of the new PID namespace.
    """
    uid, gid = os.geteuid(), os.getegid()
    try:
        if uid != 0:
            raise PermissionError
        kernel.unshare(_SPACES)
    except OSError:  # Root may lack CAP_SYS_ADMIN. A user namespace may be allowed.
        kernel.unshare(_SPACES | kernel.CLONE_NEWUSER)
        # Inside, the only user is nobody. Creating the namespaces gives this process the rights
        # over them.
        maps = {"setgroups": "deny", "uid_map": f"{NOBODY} {uid} 1", "gid_map": f"{NOBODY} {gid} 1"}
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    socket.sethostname("sandbox")


INTERPRETER: Final = f"{_NEW_ROOT}/base"
LIBRARIES: Final = f"{_NEW_ROOT}/env"
_FONTS: Final = f"{_NEW_ROOT}/fonts"


def plan_view() -> dict[str, str]:
    """Return neutral paths for the interpreter, the search path and the font list.

    A zygote sees the folders only under these paths.

    The paths reveal nothing about this machine. The mapping is empty if the interpreter is not
    stored with its library.
    """
    base = sys.base_prefix.rstrip("/")
    if not os.path.realpath(sys.executable).startswith(f"{base}/"):
        return {}
    view = {INTERPRETER: base}
    site = f"{LIBRARIES}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    for entry in _sites((os.path.dirname(os.__file__),)):
        first = os.path.basename(entry) == "site-packages" and site not in view
        # Texts name a module by the part of its path after this word, for every folder of the
        # search path.
        view[site if first else f"{LIBRARIES}/{len(view)}/site-packages"] = entry
    if fonts := os.environ.get("MPLCONFIGDIR"):
        view[_FONTS] = fonts
    return view


def enter_view(view: dict[str, str]) -> None:
    """Mount every folder of :func:`plan_view` under its neutral path.

    The mounts exist in this process's namespace only.
    """
    opened = {shown: os.open(path, os.O_PATH) for shown, path in view.items()}
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", _NEW_ROOT, "tmpfs", kernel.MS_NOSUID, "size=16m,mode=0755")
    for shown, descriptor in opened.items():
        os.makedirs(shown)
        kernel.mount(f"/proc/self/fd/{descriptor}", shown, None, kernel.MS_BIND | kernel.MS_REC)
        os.close(descriptor)


def leave(descriptor: int) -> str | None:
    """Enter new namespaces and restart the process there under neutral paths.

    Returns the reason if this is not possible. The mapping of the host's folders to neutral paths
    is first sent to the host through ``descriptor``. Few modules are imported before the restart,
    because all of them are imported again.
    """
    if sys.base_prefix == INTERPRETER:
        sys.prefix = LIBRARIES
        sys.exec_prefix = sys.prefix
        os.environ.pop("LD_LIBRARY_PATH")
        kernel.die_with_parent()
        return None
    with socket.socket(fileno=os.dup(descriptor)) as host:
        asked = msgspec.json.decode(host.recv(1 << 16, socket.MSG_PEEK), type=SandboxConfig)
        refused = why_not_leave() if asked.namespaces else "switched off"
        view = plan_view() if refused is None else {}
        host.send(msgspec.json.encode({"view": tuple(view.items())}))
    if refused is not None:
        return refused
    leave_host()
    inner = (
        os.fork()
    )  # Enter the new PID namespace. The outer process waits and passes on the status.
    if inner:
        os.close(descriptor)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _, status = os.waitpid(inner, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.die_with_parent()
    if view:
        start_again(view, descriptor)
    return None


def start_again(view: dict[str, str], descriptor: int) -> None:
    """Restart the process under the paths of ``view``.

    Code loaded afterwards knows no other paths.
    """
    named = {path: shown for shown, path in view.items()}
    executable = os.path.realpath(sys.executable).replace(view[INTERPRETER], INTERPRETER, 1)
    code = sys.orig_argv[sys.orig_argv.index("-c") + 1]
    parents = [named[entry] for entry in sys.argv[1:3]]
    folders = [
        named[entry]
        for entry in dict.fromkeys(sys.path)
        if entry in named and named[entry] not in parents
    ]
    environment = {**os.environ, "HOME": SCRATCH, "LD_LIBRARY_PATH": f"{INTERPRETER}/lib"}
    if _FONTS in view:
        environment["MPLCONFIGDIR"] = _FONTS
    if os.geteuid() != 0:
        kernel.keep_capabilities()
    arguments = [executable, *"-S -s -P -B -c".split(), code, *parents, str(descriptor), *folders]
    enter_view(view)  # Last, because the installation may be below the covered folder.
    os.execve(executable, arguments, environment)


def enter_private_root(roots: LibraryRoots) -> None:
    """Build a private root and make it this process's root.

    It has read-only binds, a few devices and an empty scratch folder. Paths are unchanged, so a
    loaded interpreter still finds its libraries.
    """
    shown = {
        path: os.open(path, os.O_PATH)
        for path in (*roots.readable(), *DEVICES)
        if os.path.exists(path)
    }
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", _NEW_ROOT, "tmpfs", kernel.MS_NOSUID, "size=1m,mode=0755")
    covered = set(roots.covered)
    # Outer folders come first. A cover must be in place before a package is bound inside it.
    for path in sorted({*shown, *covered}):
        target = _NEW_ROOT + path
        if path in covered:
            kernel.mount(
                "tmpfs", target, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=64k,mode=0755"
            )
        if path in shown:
            source = shown[path]
            device = path in DEVICES
            origin = f"/proc/self/fd/{source}"
            if os.path.isdir(origin):
                os.makedirs(target, mode=0o755, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
            kernel.mount(origin, target, None, kernel.MS_BIND)
            kernel.make_read_only(target, allow_devices=device)
    for path in covered:
        kernel.make_read_only(_NEW_ROOT + path)
    os.mkdir(_NEW_ROOT + SCRATCH)
    for descriptor in shown.values():
        os.close(descriptor)
    kernel.enter_root(_NEW_ROOT)
    kernel.make_read_only("/", allow_devices=True)


def become_nobody() -> None:
    """Switch the user id from root to nobody. Raises OSError if this is not possible."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def can_become_nobody() -> bool:
    """Return whether :func:`become_nobody` works.

    It does not work if an outer container maps only one user.
    """
    return os.geteuid() == 0 and why_not(become_nobody) is None


def enter_scratch(megabytes: int, files: int, owner: int) -> int:
    """Enter a private mount namespace with a bounded, empty folder, and return its descriptor."""
    kernel.unshare(kernel.CLONE_NEWNS)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    options = f"size={megabytes}m,nr_inodes={files},mode=0700,uid={owner},gid={owner}"
    kernel.mount("tmpfs", SCRATCH, "tmpfs", flags, options)
    os.chdir(SCRATCH)
    return os.open(SCRATCH, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
