"""Modules do not import each other in circles, not even inside a room and not even for their types."""

import grimp


def test_no_circles() -> None:
    graph = grimp.build_graph("tradeassay")
    imported = {module: graph.find_modules_directly_imported_by(module) - {module} for module in graph.modules}
    left = dict(imported)
    while ready := [module for module, others in left.items() if not others & left.keys()]:
        for module in ready:
            del left[module]
    assert not left, f"in or above a circle: {sorted(left)[:20]}"
