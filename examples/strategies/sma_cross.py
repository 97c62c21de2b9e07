"""A strategy for the task d-sma-cross-long: long while the mean of 10 closes is above that of
30.
"""

import backtrader as bt


class SmaCross(bt.Strategy):
    def __init__(self):
        self.cross = bt.ind.CrossOver(bt.ind.SMA(period=10), bt.ind.SMA(period=30))

    def next(self):
        if not self.position and self.cross[0] > 0:
            self.buy()
        elif self.position and self.cross[0] < 0:
            self.close()
