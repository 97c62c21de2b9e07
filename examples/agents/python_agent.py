"""An agent that is a Python class: a season's entry names it, e.g. params.class =
"python_agent:Reversal".
"""

from tradeassay_bench.core.arena import AgentChoice, Packet


class Reversal:
    """Buys what fell over the last ten sessions and sells what rose."""

    def decide(self, packet: Packet) -> AgentChoice:
        if not packet.history:
            return AgentChoice(action="HOLD", reasoning="no history yet")
        move = packet.price / packet.history[0].price - 1
        return AgentChoice(
            action="SELL" if move > 0 else "BUY", reasoning=f"{move:+.1%} over the window"
        )
