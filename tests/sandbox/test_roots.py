import os
import sys

import pytest

from tradeassay.sandbox.namespaces import find_roots, module_names, package_roots


def test_the_topmost_part_below_a_site_folder():
    files = [
        "/v/site-packages/numpy/core/x.so",
        "/v/site-packages/six.py",
        "/v/site-packages/numpy.libs/libopenblas.so",
        "/v/site-packages/tradeassay/sandbox/child.py",
        "/usr/lib/python3/os.py",
        "/v/site-packages/",
    ]
    assert package_roots({"/v/site-packages"}, files) == {
        "/v/site-packages/numpy",
        "/v/site-packages/six.py",
        "/v/site-packages/numpy.libs",
    }


def test_names_behind_roots():
    roots = ["/s/six.py", "/s/numpy", "/s/numpy.libs", "/s/_x.cpython-311-x86_64-linux-gnu.so", "/s/81d__mypyc.so"]
    assert module_names(roots) == {"six", "numpy", "_x"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_this_interpreters_roots():
    roots = find_roots()
    assert os.path.dirname(os.__file__) in roots.stdlib
    assert any(path.endswith("/numpy") for path in roots.packages)
    assert not any(path.endswith("/tradeassay") for path in roots.packages)
    assert not any(os.path.basename(path) in ("site-packages", "dist-packages") for path in roots.readable())
    one_by_one = roots.readable_one_by_one()
    assert os.path.join(roots.stdlib[0], "json") in one_by_one
    assert not set(roots.covered) & set(one_by_one)
