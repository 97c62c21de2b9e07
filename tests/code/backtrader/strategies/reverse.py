import backtrader as bt


class Reverse(bt.Strategy):
    """Always in the market: one order closes and opens."""

    def __init__(self):
        self.rsi = bt.ind.RSI(period=7, safediv=True)

    def next(self):
        size = 2 * abs(self.position.size) or 20
        if self.rsi < 35 and self.position.size <= 0:
            self.buy(size=size)
        elif self.rsi > 65 and self.position.size >= 0:
            self.sell(size=size)
