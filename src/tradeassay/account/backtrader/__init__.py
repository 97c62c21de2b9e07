"""The account of programs written for Backtrader, and of programs that state target positions."""

from tradeassay.account.backtrader.broker import (
    BarTable,
    BrokerReplay,
    BrokerTerms,
    Fill,
    RoundTrip,
    Sizing,
    carry_targets,
    replay,
)
from tradeassay.account.backtrader.orders import EMPTY, MAX_SIZE, BadOrders, OrderLog, Status, read_orders
