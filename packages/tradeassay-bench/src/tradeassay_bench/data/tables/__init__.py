"""Read the bar files of users and the data layouts of other projects.

Guesses are reported, and every fault names its file and line.
"""
