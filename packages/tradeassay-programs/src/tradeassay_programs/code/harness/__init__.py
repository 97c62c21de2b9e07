"""Harnesses that run inside the sandbox's child, and the wire formats of their decisions.

Untrusted code shares the harness's process and can reach every imported module. Modules in this
package must therefore not import code that knows a later bar: market generators, tasks, judges and
references. The zygote refuses to start if one of them is loaded.
"""
