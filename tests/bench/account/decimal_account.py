"""An account in decimals, written from the pages about venues and money.

It imports nothing that books money.

:class:`DecimalAccount` says what one market order at the open becomes: how many shares are filled,
which cuts are reported and why an order is refused. It knows cash accounts only: sizing, lots,
steps, odd remainders, the minimum value, T+1, the share of the volume, and what the cash covers. A
number is what its shortest decimal form says.
"""

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, getcontext

getcontext().prec = 60

BASIS_POINT = Decimal("0.0001")


def exact(number: float | str | Decimal) -> Decimal:
    return (
        number
        if isinstance(number, Decimal)
        else Decimal(repr(number) if isinstance(number, float) else number)
    )


def down_to(quantity: Decimal, unit: Decimal) -> Decimal:
    return (quantity / unit).to_integral_value(ROUND_FLOOR) * unit


@dataclass(frozen=True)
class Rules:
    """One venue's numbers, as its page prints them. Rates are basis points."""

    buy: str
    sell: str
    lot: str
    tax: str = "0"
    minimum_fee: str = "0"
    slip: str = "0"
    step: str | None = None
    cuts_odd: bool = False
    least_value: str = "0"
    t_plus_1: bool = False
    covers_tax: bool = False


RULES = {
    "us-v1": Rules("1", "1", "1", slip="2"),
    "us-fractional-v1": Rules("1", "1", "0.0001", slip="2", cuts_odd=True),
    "ashare-flat-v1": Rules(
        "5", "5", "100", tax="10", minimum_fee="5", step="1", t_plus_1=True, covers_tax=True
    ),
    "crypto-v1": Rules("5", "5", "0.00000001", cuts_odd=True, least_value="1"),
}
VOLUME_SHARE = Decimal("0.1")


@dataclass(frozen=True)
class Outcome:
    """``filled`` is a magnitude, 0 where the order was refused.

    ``cuts`` are (reason, asked, done).
    """

    filled: Decimal = Decimal(0)
    refused: str | None = None
    cuts: tuple[tuple[str, Decimal, Decimal], ...] = ()


class DecimalAccount:
    """One account that holds at most one name."""

    def __init__(self, venue: str, cash: float) -> None:
        self.rules = RULES[venue]
        self.lot = exact(self.rules.lot)
        self.step = exact(self.rules.step or self.rules.lot)
        self.cash = exact(cash)
        self.held = self.locked = self.used = self.mark = Decimal(0)

    def new_session(self) -> None:
        self.locked = self.used = Decimal(0)

    def split(self, ratio: float) -> None:
        """Multiply the shares; what is below a step is paid out at the price after the split."""
        wished = self.held * exact(ratio)
        whole = down_to(wished, self.step)
        self.mark /= exact(ratio)
        self.cash += (wished - whole) * self.mark
        self.held = whole

    def order(
        self, unit: str, side: str | None, amount: float, price: float, volume: float
    ) -> Outcome:
        """Carry one order out."""
        reference, asked = exact(price), exact(amount)
        change = self._change(unit, side, asked, reference)
        if change == 0:
            return Outcome(refused="no_change")
        buying = change > 0
        if side is not None and buying != (side == "BUY"):
            return Outcome(refused="side_contradicts_target")
        # A target of zero names its shares: all of them.
        in_shares = unit in ("shares", "target_shares") or (
            asked == 0 and unit.startswith("target")
        )
        return self._trade(abs(change), buying, in_shares, reference, exact(volume) * VOLUME_SHARE)

    def _change(self, unit: str, side: str | None, asked: Decimal, reference: Decimal) -> Decimal:
        nav = self.cash + self.held * reference
        match unit:
            case "shares":
                return asked if side == "BUY" else -asked
            case "dollars":
                return asked / reference if side == "BUY" else -asked / reference
            case "target_shares":
                return asked - self.held
            case "target_value":
                return asked / reference - self.held
            case _:
                return asked * nav / reference - self.held

    def _trade(
        self, quantity: Decimal, buying: bool, in_shares: bool, reference: Decimal, room: Decimal
    ) -> Outcome:
        cuts: list[tuple[str, Decimal, Decimal]] = []
        price = reference * (1 + (1 if buying else -1) * exact(self.rules.slip) * BASIS_POINT)

        def closes() -> bool:
            return not buying and quantity == self.held

        def too_small() -> bool:
            return not closes() and quantity * reference < exact(self.rules.least_value)

        def cut(reason: str, to: Decimal) -> None:
            nonlocal quantity
            cuts.append((reason, quantity, to))
            quantity = to

        rounded = self._whole_lots(quantity, buying)
        if quantity != rounded:
            if rounded == 0 or (in_shares and not self.rules.cuts_odd):
                return Outcome(refused="lot")
            if in_shares:
                cut("lot", rounded)
            else:
                quantity = rounded
        if too_small():
            return Outcome(refused="below_minimum")
        refused = None if buying else self._refuses_sale(quantity)
        if refused is not None:
            return Outcome(refused=refused)
        if quantity > room - self.used:
            fits = down_to(max(room - self.used, Decimal(0)), self.lot)
            if fits == 0:
                return Outcome(refused="no_volume")
            cut("no_volume", fits)
            if too_small():
                return Outcome(refused="no_volume")
        if self.cash + self._cash(quantity, price, buying) < 0:
            fits = self._affordable(quantity, price) if buying else Decimal(0)
            if fits == 0:
                return Outcome(refused="insufficient_cash")
            cut("insufficient_cash", fits)
            if too_small():
                return Outcome(refused="insufficient_cash")
        self._book(quantity, price, buying)
        return Outcome(quantity, None, tuple(cuts))

    def _refuses_sale(self, quantity: Decimal) -> str | None:
        if self.rules.t_plus_1 and self.held - self.locked < quantity <= self.held:
            return "t_plus_1"
        if quantity > self.held:
            return "insufficient_shares" if self.held else "no_shorting"
        return None

    def _whole_lots(self, quantity: Decimal, buying: bool) -> Decimal:
        """Round down to lots; a sale may have the odd remainder of what is held in it."""
        rest = self.held % self.lot
        if not buying and quantity <= self.held and rest > 0 and (quantity - rest) % self.lot == 0:
            return quantity
        return down_to(quantity, self.lot)

    def _cash(self, quantity: Decimal, price: Decimal, buying: bool) -> Decimal:
        rules, value = self.rules, quantity * price
        fee = value * exact(rules.buy if buying else rules.sell) * BASIS_POINT
        tax = Decimal(0) if buying else value * exact(rules.tax) * BASIS_POINT
        least = exact(rules.minimum_fee)
        costs = max(fee + tax, least) if rules.covers_tax else max(fee, least) + tax
        return (-value if buying else value) - costs

    def _affordable(self, quantity: Decimal, price: Decimal) -> Decimal:
        """Return the most lots that the cash covers, costs and their minimum included, by
        halving.
        """
        low, high = Decimal(0), quantity / self.lot
        high = high.to_integral_value(ROUND_FLOOR)
        while low < high:
            middle = ((low + high + 1) / 2).to_integral_value(ROUND_FLOOR)
            if self.cash + self._cash(middle * self.lot, price, True) >= 0:
                low = middle
            else:
                high = middle - 1
        return low * self.lot

    def _book(self, quantity: Decimal, price: Decimal, buying: bool) -> None:
        self.cash += self._cash(quantity, price, buying)
        self.held += quantity if buying else -quantity
        self.locked += quantity if buying and self.rules.t_plus_1 else 0
        self.used += quantity
