"""Which files a child may read: the standard library and the packages that are loaded already. Nothing else is
needed.

Whole site-packages folders stay shut: they may hold data sets, and a strategy must not find future prices there.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from typing import Final

import msgspec

_SITE_NAMES: Final = frozenset({"site-packages", "dist-packages"})
_ZONES: Final = "/usr/share/zoneinfo"
_OWN_PACKAGE: Final = __name__.partition(".")[0]
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/urandom")
"""Device files that are harmless and that libraries open; the first may be written to."""


class LibraryRoots(msgspec.Struct, frozen=True, kw_only=True):
    """``stdlib`` folders, ``covered`` folders inside them that stay shut, ``packages`` (folders or single
    files), zones.
    """

    stdlib: tuple[str, ...]
    covered: tuple[str, ...]
    packages: tuple[str, ...]
    zones: tuple[str, ...]

    def readable(self) -> tuple[str, ...]:
        """Return every path that may be read once ``covered`` is out of the way."""
        return (*self.stdlib, *self.packages, *self.zones)

    def readable_one_by_one(self) -> tuple[str, ...]:
        """Return the same, with the parts of the standard library named singly, for where nothing can be
        covered.
        """
        parts = [
            os.path.join(folder, name)
            for folder in self.stdlib
            for name in sorted(os.listdir(folder))
            if name not in _SITE_NAMES
        ]
        return (*parts, *self.packages, *self.zones)


def find_roots() -> LibraryRoots:
    """Return the roots of everything this interpreter has loaded by now."""
    paths = sysconfig.get_paths()
    stdlib = tuple(dict.fromkeys(paths[key] for key in ("stdlib", "platstdlib") if os.path.isdir(paths[key])))
    # In a virtual environment sysconfig names its own lib folder, which holds no standard library.
    stdlib = tuple(folder for folder in stdlib if os.path.exists(os.path.join(folder, "os.py"))) or (
        os.path.dirname(os.__file__),
    )
    covered = [os.path.join(folder, name) for folder in stdlib for name in _SITE_NAMES]
    sites = {entry for entry in sys.path if os.path.basename(entry) in _SITE_NAMES and os.path.isdir(entry)}
    packages = package_roots(sites, [*_module_files(), *_mapped_files()])
    packages |= {os.path.join(site, "tzdata") for site in sites}
    return LibraryRoots(
        stdlib=stdlib,
        covered=tuple(folder for folder in covered if os.path.isdir(folder)),
        packages=tuple(sorted(path for path in packages if os.path.exists(path))),
        zones=(_ZONES,) if os.path.isdir(_ZONES) else (),
    )


def package_roots(sites: Iterable[str], files: Iterable[str]) -> set[str]:
    """Return the topmost folder or file below one of ``sites`` for each of ``files``; this package itself is
    left out.
    """
    roots: set[str] = set()
    prefixes = [site.rstrip("/") + "/" for site in sites]
    for path in files:
        for prefix in prefixes:
            if path.startswith(prefix):
                top = path[len(prefix) :].partition("/")[0]
                if top and top != _OWN_PACKAGE:
                    roots.add(prefix + top)
    return roots


def module_names(packages: Iterable[str]) -> set[str]:
    """Return the importable names behind package roots, e.g. ``six`` for ``.../six.py``."""
    names = {os.path.basename(path).partition(".")[0] for path in packages if not path.endswith(".libs")}
    return {name for name in names if name.isidentifier()}


def _module_files() -> list[str]:
    files = []
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str):
            files.append(path)
        # A namespace package has no file of its own. Some packages put objects into sys.modules whose attributes
        # are anything at all.
        folders = getattr(module, "__path__", ())
        if isinstance(folders, Iterable):
            files += [os.path.join(folder, "") for folder in folders if isinstance(folder, str)]
    return files


def _mapped_files() -> list[str]:
    # Wheels carry their shared libraries in folders like numpy.libs, which no module names.
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        return [line[line.index("/") :].rstrip("\n") for line in maps if "/" in line]
