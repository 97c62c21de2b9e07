"""The information stream: the texts that agents may read, and their origin."""

from tradeassay_arena.stream.editing import stream_publisher as stream_publisher
from tradeassay_arena.stream.items import RawItem as RawItem
from tradeassay_arena.stream.record import (
    ItemPage as ItemPage,
    ItemReview as ItemReview,
    confirm as confirm,
    item_page as item_page,
    items as items,
    quality as quality,
)
