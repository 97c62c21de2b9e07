"""Every kind of order at random, brackets, groups, cancellations and validity included."""

import datetime
import random

import backtrader as bt

SEED = 0
KINDS = tuple(
    getattr(bt.Order, name)
    for name in "Market Close Limit Stop StopLimit StopTrail StopTrailLimit".split()
)


class AnyOrder(bt.Strategy):
    def __init__(self):
        self.dice = random.Random(SEED)
        self.given = []

    def notify_order(self, order):
        if order.status == order.Completed and self.dice.random() < 0.15:
            self.given.append(self.send(order.data))

    def next(self):
        roll = self.dice.random()
        data = self.dice.choice(self.datas)
        if roll < 0.30:
            self.given.append(self.send(data))
        elif roll < 0.38:
            first = self.send(data)
            self.given += [first, self.send(data, oco=first), self.send(data, oco=first)]
        elif roll < 0.46:
            self.bracket(data)
        elif roll < 0.58 and self.given:
            order = self.dice.choice(self.given)
            if order is not None:
                self.cancel(order)
        elif roll < 0.66:
            self.close(data)
        elif roll < 0.70:
            self.order_target_percent(data, self.dice.uniform(-0.4, 0.6))
        elif roll < 0.72:
            self.order_target_size(data, self.dice.randint(-9, 9))

    def send(self, data, **more):
        kind = self.dice.choice(KINDS)
        close = data.close[0]
        near = close * self.dice.uniform(0.97, 1.03)
        keys = {"size": self.dice.choice((None, 1, 7, 2.5, 60)), "exectype": kind}
        if kind in (bt.Order.Limit, bt.Order.Stop, bt.Order.StopLimit):
            keys["price"] = near
        if kind in (bt.Order.StopLimit, bt.Order.StopTrailLimit) and self.dice.random() < 0.8:
            keys["plimit"] = near * self.dice.uniform(0.985, 1.015)
            if kind == bt.Order.StopTrailLimit:
                keys["price"] = near
        if kind in (bt.Order.StopTrail, bt.Order.StopTrailLimit):
            if self.dice.random() < 0.5:
                keys["trailamount"] = close * 0.02
            else:
                keys["trailpercent"] = 0.03
        soon = self.data.datetime.date() + datetime.timedelta(days=5)
        keys["valid"] = self.dice.choice((None, None, 0, datetime.timedelta(days=3), soon, 4.0))
        keys["tradeid"] = self.dice.choice((0, 0, 0, 1))
        return self.dice.choice((self.buy, self.sell))(data=data, **keys, **more)

    def bracket(self, data):
        close = data.close[0]
        long = self.dice.random() < 0.5
        low, high = close * self.dice.uniform(0.95, 0.995), close * self.dice.uniform(1.005, 1.05)
        make = self.buy_bracket if long else self.sell_bracket
        kind = self.dice.choice((bt.Order.Market, bt.Order.Limit))
        self.given += make(
            data=data,
            size=self.dice.choice((1, 5, 90)),
            exectype=kind,
            price=close * self.dice.uniform(0.99, 1.01),
            stopprice=low if long else high,
            limitprice=high if long else low,
            valid=self.dice.choice((None, datetime.timedelta(days=4))),
        )
