"""Frontends: the same benchmarks for Inspect, Gymnasium and MCP.

Importing this package imports none of them.
"""
