"""Two judges of one question: does the program follow the task?

The behavioural judge compares a program's decisions with those of the task's reference on several
markets. The language judge reads the program. Both verdicts are shown, and neither replaces the
other.
"""
