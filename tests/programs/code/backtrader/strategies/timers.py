import datetime

import backtrader as bt


class Timers(bt.Strategy):
    """Orders from timers, also from one that runs before the broker."""

    def __init__(self):
        self.add_timer(when=datetime.time(0, 0), cheat=True, weekdays=[1])
        self.add_timer(when=bt.timer.SESSION_START, weekdays=[3])

    def notify_timer(self, timer, when, *args, **kwargs):
        if timer.p.cheat:
            self.buy(size=2, exectype=bt.Order.Limit, price=self.data.close[0] * 1.001)
        elif self.position:
            self.close()
