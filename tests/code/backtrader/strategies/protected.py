import backtrader as bt


class Protected(bt.Strategy):
    """A market entry with a stop and a target given by hand as children, and a trailing stop after a while."""

    def __init__(self):
        self.high = bt.ind.Highest(self.data.high, period=10)
        self.children = []

    def next(self):
        close = self.data.close[0]
        if not self.position and close >= self.high[-1]:
            parent = self.buy(transmit=False)
            stop = self.sell(exectype=bt.Order.Stop, price=close * 0.98, parent=parent, transmit=False)
            target = self.sell(exectype=bt.Order.Limit, price=close * 1.03, parent=parent)
            self.children, self.since = [stop, target], len(self)
        elif self.position and self.children and len(self) - self.since == 5:
            for order in self.children:
                self.cancel(order)
            self.children = []
            self.sell(exectype=bt.Order.StopTrail, trailpercent=0.01)
