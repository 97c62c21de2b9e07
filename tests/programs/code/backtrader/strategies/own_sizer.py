import backtrader as bt


class Tenth(bt.Sizer):
    def _getsizing(self, comminfo, cash, data, isbuy):
        return int(cash * 0.1 / data.close[0])


class OwnSizer(bt.Strategy):
    def __init__(self):
        self.setsizer(Tenth())
        self.bands = bt.ind.BollingerBands(period=12, devfactor=1.5)

    def next(self):
        if self.data.close[0] < self.bands.bot[0]:
            self.buy()
        elif self.position and self.data.close[0] > self.bands.top[0]:
            self.close()
