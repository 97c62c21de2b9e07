"""Judge an own account as the instrument does when it is installed alone."""

from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.own_returns import assay_own
from tradeassay.verdict.record import Assay, VerdictConfig


def assay(given: object, config: VerdictConfig | None = None) -> Assay:
    """Judge an account, or a table of returns with nothing said about it."""
    own = given if isinstance(given, OwnAccount) else OwnAccount(returns=given)
    return assay_own(own, config or VerdictConfig())
