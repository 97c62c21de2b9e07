import backtrader as bt


class Nothing(bt.Strategy):
    def next(self):
        pass
