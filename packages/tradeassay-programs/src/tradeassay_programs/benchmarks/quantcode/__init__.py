"""Implement QuantCode: can a language model turn a strategy in words into a working program?"""

from tradeassay_programs.benchmarks.quantcode.families import (
    draw_tasks as draw_tasks,
    families as families,
)
from tradeassay_programs.benchmarks.quantcode.loading import (
    check_ids as check_ids,
    load_public_tasks as load_public_tasks,
    load_task as load_task,
    load_tasks as load_tasks,
    read_task as read_task,
    read_tasks as read_tasks,
)
