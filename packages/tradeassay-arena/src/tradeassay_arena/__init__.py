"""The live market: rounds that are decided exactly once, an information stream that is checked, pages to watch.

Paper trading only. The pieces are imported where they are used: they stand on the extra ``[arena]``."""
