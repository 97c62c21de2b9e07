"""Judge whether a program follows its task, with two judges.

The behavioural judge compares a program's decisions with the reference's decisions on several
markets. The language judge reads the program. Both verdicts are displayed, and neither replaces the
other.
"""
