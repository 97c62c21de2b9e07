"""Two judges of one question: does the program do what the task says?

The behavioural judge compares what a program does with what the task's reference does, on several markets. The
language judge reads the program. Both verdicts are shown; neither stands in for the other.
"""
