"""Examine strategies that models write: tasks, runners, checks and judges."""
