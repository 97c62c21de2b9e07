import backtrader as bt


class BeforeTheStart(bt.Strategy):
    """Gives orders before the first bar and after the last one."""

    def start(self):
        self.buy(size=3, exectype=bt.Order.Limit, price=1e6)

    def prenext(self):
        self.sell(size=1)

    def __init__(self):
        bt.ind.SMA(period=4)

    def next(self):
        if len(self) == 30:
            self.cheat = self.buy(size=5)

    def stop(self):
        self.buy(size=7)
        self.cancel(self.cheat)
