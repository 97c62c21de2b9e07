"""Test whether a decision depends on bars that came after it.

- :mod:`~tradeassay_programs.code.backtrader` handles code that takes one bar at a time. The code gets a bar only
  after its decisions on the bar before are out, so it *cannot* look ahead. Its score comes from that run.
- :mod:`~tradeassay_programs.code.lookahead.grow` handles code that takes a whole table: submissions, programs on
  frames, your own functions. The code runs on growing tables, in the order of time. No process sees the whole table
  before the last of these runs. A decision that changes when later rows arrive proves look-ahead.
- :mod:`~tradeassay_programs.code.program_source` lists suspicious places in the source. It never convicts.

Runs that were made before any process saw the whole table can clear a program. Later runs can only convict it. If
neither could be shown, the verdict is None. See ``docs/concepts/look-ahead.md``.
"""
