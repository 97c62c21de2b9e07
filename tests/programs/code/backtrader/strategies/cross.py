import backtrader as bt


class Cross(bt.Strategy):
    params = (("fast", 8), ("slow", 21))

    def __init__(self):
        self.cross = bt.ind.CrossOver(
            bt.ind.SMA(period=self.p.fast), bt.ind.EMA(period=self.p.slow)
        )

    def next(self):
        if not self.position and self.cross > 0:
            self.buy()
        elif self.position and self.cross < 0:
            self.close()
