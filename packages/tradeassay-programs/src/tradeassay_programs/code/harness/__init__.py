"""What runs inside the sandbox's child: harnesses, and the forms in which decisions leave it.

Untrusted code shares their process and can reach everything they import. So nothing here may import what knows a
later bar: generators of markets, tasks, judges, references. The zygote refuses to start when one of them is
loaded.
"""
