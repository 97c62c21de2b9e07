import backtrader as bt


class NoNumber(bt.Strategy):
    """Prices that are no numbers: such orders are refused, and so is what is checked after them."""

    def next(self):
        if len(self) % 5 == 0:
            self.buy(size=1, exectype=bt.Order.Limit, price=float("nan"))
            self.buy(size=1)
        elif len(self) % 5 == 2:
            self.buy(size=1, exectype=bt.Order.Stop, price=float("inf"))
        elif len(self) % 5 == 3:
            self.buy(size=1)
