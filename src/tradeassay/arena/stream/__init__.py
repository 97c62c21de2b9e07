"""The information stream: what agents may read, where it came from, and what was held back and why."""

from tradeassay.arena.stream.checks import check_summary as check_summary
from tradeassay.arena.stream.editing import stream_publisher as stream_publisher
from tradeassay.arena.stream.items import RawItem as RawItem
from tradeassay.arena.stream.record import (
    ItemPage as ItemPage,
    ItemReview as ItemReview,
    confirm as confirm,
    item_page as item_page,
    items as items,
    quality as quality,
)
