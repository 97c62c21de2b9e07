import backtrader as bt


class Rotation(bt.Strategy):
    """The strongest of several assets, rebalanced by value."""

    def __init__(self):
        self.strength = {data: bt.ind.ROC(data, period=15) for data in self.datas}

    def next(self):
        if len(self) % 10:
            return
        best = max(self.datas, key=lambda data: self.strength[data][0])
        for data in self.datas:
            if data is not best and self.getposition(data).size:
                self.order_target_percent(data, 0.0)
        self.order_target_percent(best, 0.95)
