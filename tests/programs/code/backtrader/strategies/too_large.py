import backtrader as bt


class TooLarge(bt.Strategy):
    """Orders that the cash does not pay for, at once or only by the time they are filled."""

    def next(self):
        turn = len(self) % 6
        if turn == 1:
            self.buy(size=10_000)
            self.buy(size=1)
        elif turn == 2:
            self.buy(size=self.broker.getcash() / self.data.close[0] * 0.9989)
        elif turn == 4:
            self.sell(size=self.position.size + 400)
        elif turn == 5:
            self.order_target_size(target=0)
