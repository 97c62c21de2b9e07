"""Rounds: which entries decide at which time, on which information, and the return of each
decision.
"""
