"""Simulate the account of programs that use Backtrader or output target positions."""

from tradeassay_bench.account.backtrader.broker import (
    BarTable as BarTable,
    BrokerReplay as BrokerReplay,
    BrokerTerms as BrokerTerms,
    Fill as Fill,
    RoundTrip as RoundTrip,
    Sizing as Sizing,
    carry_targets as carry_targets,
    replay as replay,
)
from tradeassay_bench.account.backtrader.orders import (
    EMPTY as EMPTY,
    MAX_SIZE as MAX_SIZE,
    BadOrders as BadOrders,
    OrderLog as OrderLog,
    Status as Status,
    read_orders as read_orders,
)
