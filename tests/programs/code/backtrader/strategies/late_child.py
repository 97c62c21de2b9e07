import backtrader as bt


class LateChild(bt.Strategy):
    """Children that come after their parent was sent, filled or refused."""

    def next(self):
        turn = len(self) % 12
        if turn == 1:
            self.parent = self.buy(size=5, exectype=bt.Order.Limit, price=self.data.close[0] * 0.99)
        elif turn == 6:
            self.sell(
                size=5, exectype=bt.Order.Stop, price=self.data.close[0] * 0.98, parent=self.parent
            )
        elif turn == 8:
            refused = self.buy(size=1e6, transmit=False)
            self.sell(
                size=1e6, exectype=bt.Order.Limit, price=self.data.close[0] * 1.1, parent=refused
            )
            self.refused = refused
        elif turn == 10:
            self.sell(size=3, parent=self.refused)
        elif turn == 11:
            self.close()
