"""Frontends offer the same benchmarks to Inspect, Gymnasium and MCP.

Importing this package imports none of these libraries.
"""
