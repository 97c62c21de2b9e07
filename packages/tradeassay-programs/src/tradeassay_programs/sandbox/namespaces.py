"""A child's own view of the machine: which files it may read, and the namespaces it lives in.

Only the standard library and the packages already loaded are readable; nothing else is needed. Whole
site-packages folders stay shut: they may hold data sets, and a strategy must not find future prices there.
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
"""Device files that are harmless and that libraries open; the first may be written to. None gives randomness: a
program whose draws nobody can repeat cannot be examined twice.
"""


class LibraryRoots(msgspec.Struct, frozen=True, kw_only=True):
    """``stdlib`` folders, ``covered`` folders in them that stay shut, ``packages`` (folders or files), zones."""

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
    paths = sysconfig.get_paths()
    stdlib = tuple(
        dict.fromkeys(paths[key] for key in ("stdlib", "platstdlib") if os.path.isdir(paths[key]))
    )
    # In a virtual environment sysconfig names its own lib folder, which holds no standard library.
    stdlib = tuple(
        folder for folder in stdlib if os.path.exists(os.path.join(folder, "os.py"))
    ) or (os.path.dirname(os.__file__),)
    covered = []
    for folder in stdlib:
        for name in _SITE_NAMES:
            covered.append(os.path.join(folder, name))
    sites, files = _sites(stdlib), list[str]()
    for module in list(sys.modules.values()):
        # A namespace package has no file of its own. Some packages put objects into sys.modules whose attributes
        # are anything at all.
        path, folders = getattr(module, "__file__", None), getattr(module, "__path__", ())
        files += [path] if isinstance(path, str) else []
        if isinstance(folders, Iterable):
            files += [os.path.join(folder, "") for folder in folders if isinstance(folder, str)]
    # Wheels carry their shared libraries in folders like numpy.libs, which no module names.
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
    """Return the folders of the search path that hold packages, in its order."""
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
    """Return the topmost folder or file below one of ``sites`` for each of ``files``, except our packages."""
    roots: set[str] = set()
    # The innermost site counts: a folder that holds another site must not be opened as if it were a package.
    prefixes = sorted((site.rstrip("/") + "/" for site in sites), key=len, reverse=True)
    for path in files:
        prefix = next((one for one in prefixes if path.startswith(one)), None)
        if prefix is not None:
            top = path[len(prefix) :].partition("/")[0]
            if top and top not in PACKAGES:
                roots.add(prefix + top)
    return roots


def module_names(packages: Iterable[str]) -> set[str]:
    """Return the importable names behind package roots, e.g. ``six`` for ``.../six.py``."""
    names = {
        os.path.basename(path).partition(".")[0] for path in packages if not path.endswith(".libs")
    }
    return {name for name in names if name.isidentifier()}


@cache
def warmed(roots: tuple[str, ...], view: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Return every path below ``roots``, each file of which is put into memory: what a child could be the first to
    read, or to look for, would tell the next one that it had been there. Tests of packages are left out. ``view``
    says which folder of this machine stands behind a name that a child sees.
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
    # Most file systems note the time of a reading once a day: here, and not when a child is the first to read.
    _for_each_file(known.values(), lambda file: os.pread(file, 1, 0))
    return frozenset(known)


def _for_each_file(paths: Iterable[str], do: Callable[[int], object]) -> None:
    """Open each file that can be read, and do something with its descriptor that may fail."""
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
"""Where a child finds its private folder."""

_NEW_ROOT: Final = "/tmp"  # covered by a tmpfs in our mount namespace only; the machine's own folder is not touched
_SPACES: Final = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWPID
)


def why_not(action: Callable[[], None]) -> str | None:
    """Return why something that cannot be undone does not work here; tried in a throw-away process."""
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
    """Return why namespaces are not allowed here."""

    def attempt() -> None:
        leave_host()
        enter_view(plan_view())

    return why_not(attempt)


def leave_host() -> None:
    """Enter new namespaces (a user one when not root); the next fork is process 1 of the new PID namespace."""
    uid, gid = os.geteuid(), os.getegid()
    try:
        if uid != 0:
            raise PermissionError
        kernel.unshare(_SPACES)
    except (
        OSError
    ):  # root without CAP_SYS_ADMIN too, as in most containers: a user namespace may be allowed
        kernel.unshare(_SPACES | kernel.CLONE_NEWUSER)
        # Inside, the only user is nobody; the rights over the new namespaces come from having created them.
        maps = {"setgroups": "deny", "uid_map": f"{NOBODY} {uid} 1", "gid_map": f"{NOBODY} {gid} 1"}
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    socket.sethostname("sandbox")


INTERPRETER: Final = f"{_NEW_ROOT}/base"
LIBRARIES: Final = f"{_NEW_ROOT}/env"
_FONTS: Final = f"{_NEW_ROOT}/fonts"


def plan_view() -> dict[str, str]:
    """Return under which names, which say nothing of this machine, a zygote finds the interpreter, each folder of
    its search path and the list of fonts. Empty where the interpreter does not lie with its own library.
    """
    base = sys.base_prefix.rstrip("/")
    if not os.path.realpath(sys.executable).startswith(f"{base}/"):
        return {}
    view = {INTERPRETER: base}
    site = f"{LIBRARIES}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    for entry in _sites((os.path.dirname(os.__file__),)):
        first = os.path.basename(entry) == "site-packages" and site not in view
        # Texts name a module by what follows this word, in whichever folder of the search path it lies.
        view[site if first else f"{LIBRARIES}/{len(view)}/site-packages"] = entry
    if fonts := os.environ.get("MPLCONFIGDIR"):
        view[_FONTS] = fonts
    return view


def enter_view(view: dict[str, str]) -> None:
    """Mount every folder of :func:`plan_view` under its new name, in this process's namespace only."""
    opened = {shown: os.open(path, os.O_PATH) for shown, path in view.items()}
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", _NEW_ROOT, "tmpfs", kernel.MS_NOSUID, "size=16m,mode=0755")
    for shown, descriptor in opened.items():
        os.makedirs(shown)
        kernel.mount(f"/proc/self/fd/{descriptor}", shown, None, kernel.MS_BIND | kernel.MS_REC)
        os.close(descriptor)


def leave(descriptor: int) -> str | None:
    """Enter namespaces of its own and start again there, under names that say nothing of the host; returns why
    that is not possible. The host, at the other end of ``descriptor``, is told first which of its folders has
    which name. Little is imported until then: all of it is imported again.
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
    )  # into the new PID namespace; the outer process only waits, and exits as the inner one does
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
    """Start again under the names of ``view``: all that is loaded from here on knows no other."""
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
    enter_view(view)  # only now: the installation may lie below the folder that is covered
    os.execve(executable, arguments, environment)


def enter_private_root(roots: LibraryRoots) -> None:
    """Build a root of read-only binds, a few devices and an empty scratch folder, and move there. Paths keep
    their names, so a loaded interpreter finds its libraries where they were.
    """
    shown = {
        path: os.open(path, os.O_PATH)
        for path in (*roots.readable(), *DEVICES)
        if os.path.exists(path)
    }
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", _NEW_ROOT, "tmpfs", kernel.MS_NOSUID, "size=1m,mode=0755")
    covered = set(roots.covered)
    # Outer folders first: a cover must be in place before a package is bound inside it.
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
    """Switch from the user id of root to that of nobody; raises OSError where that is not possible."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def can_become_nobody() -> bool:
    """Return whether :func:`become_nobody` works; it does not where an outer container maps only one user."""
    return os.geteuid() == 0 and why_not(become_nobody) is None


def enter_scratch(megabytes: int, files: int, owner: int) -> int:
    """Give this process its own mount namespace with a bounded, empty folder; returns its descriptor."""
    kernel.unshare(kernel.CLONE_NEWNS)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    options = f"size={megabytes}m,nr_inodes={files},mode=0700,uid={owner},gid={owner}"
    kernel.mount("tmpfs", SCRATCH, "tmpfs", flags, options)
    os.chdir(SCRATCH)
    return os.open(SCRATCH, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
