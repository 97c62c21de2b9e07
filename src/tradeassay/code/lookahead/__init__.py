"""Does a decision depend on bars that came after it? Three ways to know, and no opinion in any of them.

- :mod:`~tradeassay.code.backtrader`: code that takes one bar at a time (streaming strategies, Backtrader) gets
  a bar only after its decisions on the bar before are out. It *cannot* look ahead; its score is taken from there.
- :mod:`~tradeassay.code.lookahead.grow`: code that wants a whole table (submissions, programs on frames, your own
  functions) is asked on growing tables, in the order of time. Only after the last answer does any process see the
  whole table. A decision that changes when later rows arrive is the proof.
- :mod:`~tradeassay.code.program_source`: what reading the source suggests. It never convicts.

What was asked before a process saw the whole table can clear a program; what is asked afterwards can only convict.
A question that nobody could decide has the verdict None. See ``docs/concepts/look-ahead.md``.
"""
