"""Test whether a decision depends on later bars.

- :mod:`~tradeassay_programs.code.backtrader` handles code that takes one bar at a time. The code
  gets a bar only after its decisions on the previous bar have left the process, so it *cannot* look
  ahead. Its score comes from that run.
- :mod:`~tradeassay_programs.code.lookahead.grow` handles code that takes a whole table:
  submissions, programs on frames, and user functions. The code runs on growing tables, in the order
  of time. No process sees the whole table before the last of these runs. A decision that changes
  when later rows arrive proves look-ahead.
- :mod:`~tradeassay_programs.code.program_source` lists suspicious places in the source. It never
  convicts.

Runs made before any process saw the whole table can clear a program. Later runs can only convict
it. If neither is possible, the verdict is None. See ``docs/concepts/look-ahead.md``.
"""
