"""Read all of the program, so that processes that are copied from this one need not."""

import contextlib
import importlib
import pkgutil

import tradeassay

for _found in pkgutil.walk_packages(tradeassay.__path__, "tradeassay."):
    if not _found.name.endswith("__main__"):
        with contextlib.suppress(Exception):  # an extra that is not installed
            importlib.import_module(_found.name)
