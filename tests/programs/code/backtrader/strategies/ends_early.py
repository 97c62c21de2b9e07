import backtrader as bt


class EndsEarly(bt.Strategy):
    """Buys, and ends the run while it holds."""

    def next(self):
        if len(self) == 20:
            self.buy(size=10)
        if len(self) == 90:
            self.env.runstop()
