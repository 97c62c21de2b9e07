"""Template collapse: many tasks, one program.

A model that is trained on "it runs and it trades" learns one program that does both and hands it in for every
task. The detector groups programs by shape (:mod:`tradeassay.code.program_shape`) and says how large a share of
the tasks the largest group answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from tradeassay.code.program_shape import shape_lines
from tradeassay.core.hashing import sha256_bytes


class CollapseConfig(msgspec.Struct, frozen=True, kw_only=True):
    """When programs count as one, and when that is a collapse.

    ``similarity``: two programs are one when they share this part of their statements (multiset Jaccard of shaped
    lines; 1 = equal shapes). ``share`` and ``least``: flagged when the largest group answers at least this
    share of the tasks and at least this many.
    """

    similarity: float = 0.95
    share: float = 0.2
    least: int = 5


class ProgramCluster(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that got one program. ``shape`` is the hash of the shape that most of them have."""

    shape: str
    tasks: tuple[str, ...]
    share: float


class CollapseReport(msgspec.Struct, frozen=True, kw_only=True):
    """How alike the answers to different tasks are. ``clusters`` come largest first, single programs included.

    ``largest_share`` is None, with the ``reason``, when there is no program to look at. ``unreadable`` lists tasks
    whose program is no Python; they count in no group and not in the shares.
    """

    tasks: int
    clusters: tuple[ProgramCluster, ...]
    largest_share: float | None
    collapsed: bool
    unreadable: tuple[str, ...] = ()
    reason: str = ""


def collapse(programs: Mapping[str, str], config: CollapseConfig | None = None) -> CollapseReport:
    """Group programs (by task id) that are one, and say whether too many are."""
    config = config or CollapseConfig()
    shaped: dict[str, tuple[str, ...]] = {}
    unreadable: list[str] = []
    for task in sorted(programs):
        lines = shape_lines(programs[task])
        if lines:
            shaped[task] = lines
        else:
            unreadable.append(task)
    if not shaped:
        return CollapseReport(
            tasks=0, clusters=(), largest_share=None, collapsed=False,
            unreadable=tuple(unreadable), reason="there is no program that can be read",
        )  # fmt: skip
    rough = {task: shape_lines(programs[task], tell_apart=False) or () for task in shaped}
    clusters = [_cluster(members, shaped) for members in _groups(shaped, rough, config.similarity)]
    clusters.sort(key=lambda cluster: (-len(cluster.tasks), cluster.tasks))
    largest = clusters[0]
    return CollapseReport(
        tasks=len(shaped),
        clusters=tuple(clusters),
        largest_share=largest.share,
        collapsed=len(largest.tasks) >= config.least and largest.share >= config.share,
        unreadable=tuple(unreadable),
    )


def _groups(
    shaped: Mapping[str, tuple[str, ...]], rough: Mapping[str, tuple[str, ...]], similarity: float
) -> list[list[str]]:
    """Return the tasks grouped: equal shapes first, then shapes that are near enough (single linkage)."""
    equal: dict[tuple[str, ...], list[str]] = {}
    for task, lines in shaped.items():
        equal.setdefault(lines, []).append(task)
    shapes = list(equal)
    counts = [Counter(rough[equal[lines][0]]) for lines in shapes]
    leader = list(range(len(shapes)))

    def find(at: int) -> int:
        while leader[at] != at:
            leader[at] = leader[leader[at]]
            at = leader[at]
        return at

    for right in range(len(shapes) if similarity < 1.0 else 0):
        for left in range(right):
            if _alike(counts[left], counts[right], len(shapes[left]), len(shapes[right]), similarity):
                leader[find(right)] = find(left)
    groups: dict[int, list[str]] = {}
    for at, lines in enumerate(shapes):
        groups.setdefault(find(at), []).extend(equal[lines])
    return list(groups.values())


def _alike(left: Counter[str], right: Counter[str], size: int, other: int, similarity: float) -> bool:
    if min(size, other) < similarity * max(size, other):
        return False
    shared = sum((left & right).values())
    return shared >= similarity * (size + other - shared)


def _cluster(members: list[str], shaped: Mapping[str, tuple[str, ...]]) -> ProgramCluster:
    common = Counter(shaped[task] for task in sorted(members)).most_common(1)[0][0]
    return ProgramCluster(
        shape=sha256_bytes("\n".join(common).encode())[:16],
        tasks=tuple(sorted(members)),
        share=len(members) / len(shaped),
    )
