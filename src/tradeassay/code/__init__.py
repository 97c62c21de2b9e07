"""Models write strategies: tasks, runners, checks, stages and judges."""

from __future__ import annotations
