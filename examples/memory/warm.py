"""Read all of the program, so that processes that are copied from this one need not."""

import contextlib
import importlib
import pkgutil

for _package in map(importlib.import_module, ("tradeassay", "tradeassay_bench")):
    for _found in pkgutil.walk_packages(_package.__path__, f"{_package.__name__}."):
        if not _found.name.endswith("__main__"):
            with contextlib.suppress(Exception):  # an extra that is not installed
                importlib.import_module(_found.name)
