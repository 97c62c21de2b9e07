import backtrader as bt


class Signals(bt.SignalStrategy):
    def __init__(self):
        self.signal_add(
            bt.SIGNAL_LONGSHORT, bt.ind.CrossOver(bt.ind.SMA(period=5), bt.ind.SMA(period=15))
        )
