"""What an agent is told when it names something that its mask does not have."""

from __future__ import annotations

from tradeassay.core.errors import AgentError, DataError


class UnknownAlias(AgentError, DataError):
    """An agent named an asset or a day that does not exist under its mask.

    The message never repeats what was written unless that has the form of an alias: the way back to the model
    masks real names, so that repeating a guessed one would tell the model which alias it has.
    """
