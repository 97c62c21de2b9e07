"""QuantCode: can a language model turn a strategy described in words into a working Backtrader strategy?"""

from tradeassay.benchmarks.quantcode.families import draw_tasks, families
from tradeassay.benchmarks.quantcode.loading import (
    check_ids,
    load_public_tasks,
    load_task,
    load_tasks,
    read_task,
    read_tasks,
)
