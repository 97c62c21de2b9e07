"""Run live seasons: rounds that are decided exactly once, a checked information stream, web pages.

Paper trading only. Import the submodules directly. They need the extra ``[arena]``.

A season runs in :class:`tradeassay_arena.rounds.running.Runner`.
"""
