"""Build the statements about an account, one for each number."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tradeassay.core.measure import Measure, above, at_most, below, not_scored
from tradeassay.verdict._claims import (
    CLAIM_WORDS,
    is_recalled,
    is_significant,
    lacks_market,
    looks_familiar,
    rests_on_both_plays,
    split_claims_by_memory,
    split_gap,
    split_of,
    stands_under_mask,
    takes_memory,
    too_good,
)
from tradeassay.verdict._phrases import (
    alpha_words,
    both_plays_words,
    count,
    in_rows,
    likelier_words,
    part_words,
    percent,
    price_words,
    signed,
    skew_words,
    spanned,
    too_few,
    tries_are_assumed,
    yearly_return,
)
from tradeassay.verdict.evidence import (
    BENCHMARK,
    MARKET,
    convex,
    hidden_income_words,
    least_alpha,
    never_moves,
)
from tradeassay.verdict.recalled import split_sentence
from tradeassay.verdict.record import (
    CASH,
    PRAISE,
    AgentFindings,
    Claim,
    Contrast,
    MemoryEvidence,
    Verdict,
    VerdictConfig,
)
from tradeassay.verdict.statement import QUANTITIES, SCORED, Bearing, Statement

_PARTS = {"common": "market", "style": "style", "trading": "trading"}
_PRICED: dict[Claim, str] = {
    "alpha": "",
    "timing": "timing-",
    "style_timing": "style-timing-",
    "together": "names-and-days-",
}
"""Prefix of the quantities ``lost-information`` and ``memory``, by claim."""
_MANY = 0.95
"""Minimum share of random portfolios that a skilled account beats."""
_CONCENTRATED = 0.25
"""Share of alpha from one row above which the share is evidence against skill."""


def statements_of(
    account: AgentFindings, verdict: Verdict, config: VerdictConfig
) -> tuple[Statement, ...]:
    """Return the statements about an account, in the order in which they are displayed.

    A failed account has none. The bearing of each statement agrees with the verdict.
    """
    if verdict.kind == "failed":
        return ()
    builder = _StatementBuilder(account, verdict, config)
    return tuple(builder.statements())


def _benchmark_of(account: AgentFindings) -> str:
    """Return the name of the benchmark of a table of returns."""
    followed = account.passive
    return BENCHMARK if followed is None or followed.portfolio == CASH else followed.portfolio


class _StatementBuilder:
    """Builder of the statements about one account.

    ``kept`` are the claims that are not memory, ``dropped`` the claims that are memory.
    ``rests_on_both`` is true if the verdict uses the alpha of the unmasked and the masked run
    together.
    """

    def __init__(self, account: AgentFindings, verdict: Verdict, config: VerdictConfig) -> None:
        self.account = account
        self.verdict = verdict
        self.config = config
        # A table of returns is compared with its benchmark, a data set with its market.
        self.market = _benchmark_of(account) if _has_own_benchmark(account) else MARKET
        self.benchmark: str | None = self.market if account.market.value is not None else None
        self.kept, self.dropped = split_claims_by_memory(account, config)
        quoted = self.praised or verdict.label == "faded"
        by_alpha = "alpha" in self.kept and rests_on_both_plays(account)
        self.rests_on_both = quoted and by_alpha

    @property
    def skilled(self) -> bool:
        """Return whether the verdict is skill or timing."""
        return self.verdict.kind in ("skill", "timing")

    @property
    def praised(self) -> bool:
        """Return whether the verdict is praise: skill, timing, or the best of a few tries."""
        return self.verdict.kind in PRAISE

    @property
    def alpha_helps(self) -> bool:
        """Return whether alpha supports the verdict.

        Timing estimated from returns is part of alpha.
        """
        return self.praised and ("alpha" in self.kept or self.account.method == "returns")

    def statements(self) -> Iterator[Statement]:
        """Yield all statements in the order in which they are displayed."""
        yield from self.returns()
        yield from self.scored()
        yield from self.parts()
        if self.verdict.kind == "cash":
            return
        if lacks_market(self.account):
            # A total return is not an annual alpha, so there is no statement about alpha.
            yield from self.risk()
            return
        yield from self.alpha()
        yield from self.tries()
        yield from self.random_portfolios()
        yield from self.memory()
        yield from self.recall()
        yield from self.look_ahead()
        yield from self.exposure()
        yield from self.time()
        yield from self.concentration()
        yield from self.risk()
        yield from self.power()

    def make(
        self,
        quantity: str,
        claim: str,
        measure: Measure,
        bearing: Bearing = "neither",
        *,
        versus: str | None = None,
        assumptions: tuple[str, ...] = (),
    ) -> Statement:
        """Return a statement about this account."""
        has_interval = measure.low is not None
        tries = 1 if self.account.alpha is None else self.account.alpha.tries
        return Statement(
            claim=in_rows(self.account, claim),
            quantity=quantity,
            value=measure.value,
            low=measure.low,
            high=measure.high,
            level=measure.level if has_interval else None,
            versus=versus,
            horizon=self.account.years,
            tries=tries,
            assumptions=assumptions,
            bearing=bearing,
            reason=measure.reason,
        )

    def number(
        self,
        quantity: str,
        claim: str,
        value: float,
        bearing: Bearing = "neither",
        *,
        versus: str | None = None,
    ) -> Statement:
        """Return a statement about a number without an interval."""
        return self.make(quantity, claim, Measure(value=value), bearing, versus=versus)

    def returns(self) -> Iterator[Statement]:
        """Yield the returns of the account and its benchmark."""
        account = self.account
        compounded: tuple[str, ...] = ()
        if account.rows:
            compounded = (f"{account.rows:,} rows with times of day are compounded to days",)
        words = f"it returned {spanned(account.total)}"
        yield self.make("return", words, account.total, assumptions=compounded)
        if account.market.value is None:
            return
        words = f"{self.market} returned {percent(account.market.value)} over the same sessions"
        yield self.make("benchmark-return", words, account.market, versus=self.market)
        if account.excess is not None and account.excess.value is not None:
            words = f"excess return {spanned(account.excess)} a year versus {self.market}"
            yield self.make("excess-return", words, account.excess, versus=self.market)
        ratio = account.information_ratio
        if ratio is not None and ratio.value is not None:
            words = f"information ratio versus {self.market} {_ratio_words(ratio)}"
            yield self.make("information-ratio", words, ratio, versus=self.market)

    def scored(self) -> Iterator[Statement]:
        """Yield performance measures such as the Sharpe ratio.

        An account of a recorded run has only its return per year and its max drawdown here, because
        the run has a table of measures.
        """
        account = self.account
        yearly, drawdown = yearly_return(account), account.measures.get("max_drawdown")
        if yearly is not None:
            words = f"return of {spanned(yearly)} a year"
            yield self.make(
                "return-per-year", _words_or_reason("return a year", words, yearly), yearly
            )
        for quantity in ("sharpe", "sortino", "volatility", "calmar"):
            measure = account.measures.get(SCORED[quantity])
            if measure is None:
                continue
            name, size = QUANTITIES[quantity].title, _ratio_words(measure)
            if quantity == "volatility":
                name, size = "volatility", _unsigned(measure)
            yield self.make(quantity, _words_or_reason(name, f"{name} {size}", measure), measure)
        if drawdown is None and account.tail is not None:
            drawdown = Measure(value=account.tail.drawdown)
        if drawdown is not None and drawdown.value is not None:
            deepest = f"max drawdown {spanned(drawdown)}"
            yield self.make("max-drawdown", deepest, drawdown)

    def parts(self) -> Iterator[Statement]:
        """Yield the parts that sum to the return."""
        account = self.account
        names = dict(_PARTS)
        names["selection"] = "unexplained" if account.method == "returns" else "selection"
        for part, quantity in names.items():
            measure = account.parts.get(part)
            if measure is None or measure.value is None:
                continue
            if part == "trading" and measure.value == 0.0 and account.method == "returns":
                continue
            yield self.make(quantity, _part_claim(account, quantity, measure), measure)

    def alpha(self) -> Iterator[Statement]:
        """Yield alpha, its ratio, and costs."""
        alpha = self.account.known_alpha
        if self.rests_on_both:
            yield from self._alpha_of_both()
            return
        claim, bearing = self._alpha_claim()
        yield self.make("alpha", claim, alpha.tested, bearing, versus=self.benchmark)
        ratio = alpha.ratio
        if ratio.value is not None:
            words = f"alpha ratio {_ratio_words(ratio)}"
            suspect = self.verdict.kind in ("look-ahead", "hidden-risk")
            helps: Bearing = "neither"
            if suspect and too_good(self.account, self.config):
                helps = "against"
            yield self.make("alpha-ratio", words, ratio, helps, versus=self.benchmark)
        if alpha.costs is not None and alpha.costs.value is not None:
            words = f"costs took {abs(alpha.costs.value or 0.0):.1%} a year"
            is_cause = self.verdict.kind == "costs"
            yield self.make("costs", words, alpha.costs, "against" if is_cause else "neither")
            words = f"alpha before costs {spanned(alpha.gross)} a year"
            yield self.make("alpha-before-costs", words, alpha.gross, versus=self.benchmark)

    def _alpha_of_both(self) -> Iterator[Statement]:
        """Yield alpha over both runs together, and alpha of the unmasked run."""
        memory, alpha = self.account.memory, self.account.known_alpha.tested
        assert memory is not None and memory.both is not None
        level = f"{memory.both.level * 100:g} %"
        words = both_plays_words(self.account, self.config)
        claim = f"alpha of {words}, significantly above zero ({level})"
        bearing: Bearing = "for" if self.alpha_helps else "neither"
        yield self.make("alpha", claim, memory.both, bearing, versus=self.benchmark)
        alone = f"the unmasked play alone has {spanned(alpha)} a year"
        yield self.make("alpha-unmasked", alone, alpha, versus=self.benchmark)

    def _alpha_claim(self) -> tuple[str, Bearing]:
        """Return the sentence about alpha and its bearing."""
        account, config, alpha = self.account, self.config, self.account.known_alpha
        yearly = f"alpha of {alpha_words(account, config)}"
        value, least = alpha.tested.value or 0.0, least_alpha(account, config)
        if never_moves(account, config):
            return f"{yearly}, the same on every session: nothing can be tested", "against"
        if alpha.tested.value is None:
            return too_few(account, config), "against"
        if alpha.tested.low is None:
            return f"{yearly}, with {alpha.tested.note}", "against"
        level = f"{alpha.tested.level * 100:g} %"
        if below(alpha.tested):
            return f"{yearly}, significantly below zero ({level})", "against"
        if not above(alpha.tested):
            return f"{yearly}: zero is not excluded", "against"
        if value < config.floor:
            return f"{yearly}: less than the floor of {config.floor:.0%}", "against"
        if value < least:
            unseen = hidden_income_words(account, config)
            return f"{yearly}: {unseen} may be {least - config.floor:.1%} of it", "against"
        bearing: Bearing = "for" if self.alpha_helps else "neither"
        return f"{yearly}, significantly above zero ({level})", bearing

    def tries(self) -> Iterator[Statement]:
        """Yield the comparison of a significant alpha with luck's best try."""
        alpha, tries = self.account.known_alpha, self.account.tries
        positive = above(alpha.tested) or self.verdict.kind == "skill"
        if alpha.likelihood is None or not positive:
            return
        assumptions: tuple[str, ...] = (
            "skill: the yearly alpha ratio is half-normal of scale 1",
            f"luck: the best of {alpha.tries} tries without skill",
        )
        if tries_are_assumed(self.account):
            assumptions += (
                f"{alpha.tries} tries are assumed: nobody disclosed how many there were",
            )
        likelier = likelier_words(self.account, alpha.likelihood)
        bearing: Bearing = "neither"
        if alpha.likelihood <= 1.0:
            bearing = "against"
        elif self.skilled and self.alpha_helps and self.account.method == "holdings":
            # A table of returns does not show when the holdings were chosen. A choice in hindsight
            # looks like skill for any number of tries.
            bearing = "for"
        measure = Measure(value=alpha.likelihood)
        yield self.make("likelihood-ratio", likelier, measure, bearing, assumptions=assumptions)
        if alpha.equal_tries is not None:
            same = f"luck's best of {count(alpha.equal_tries)} tries looks the same"
            yield self.number("equal-tries", same, float(alpha.equal_tries))
        if tries is not None and tries.deflated.value is not None:
            words = (
                f"deflated Sharpe ratio {tries.deflated.value:.2f} for {count(alpha.tries)} tries"
            )
            yield self.make("deflated-sharpe", words, tries.deflated)

    def random_portfolios(self) -> Iterator[Statement]:
        """Yield the share of random portfolios that the account beats."""
        share, portfolios = self.account.luck.percentile, self.account.luck.portfolios
        if share.value is None:
            return
        others = f"{portfolios:,} random portfolios with the same trades in other names"
        span = (
            ""
            if share.low is None
            else f" ({share.low:.0%} to {share.high:.0%} on days like these)"
        )
        words = f"it beats {share.value:.1%} of {others}{span}"
        bearing: Bearing = "against"
        if share.value >= _MANY:
            bearing = "for" if self.skilled else "neither"
        yield self.make("beats-random", words, share, bearing)

    def memory(self) -> Iterator[Statement]:
        """Yield the part of alpha that a mask removes, and alpha under the mask."""
        memory = self.account.memory
        if memory is None or memory.gap.value is None:
            return
        lost: Bearing = "against" if takes_memory(memory) else "neither"
        takes = f"alpha less alpha under '{memory.against}' is {spanned(memory.gap)} a year"
        if above(memory.gap):
            takes = f"'{memory.against}' takes {spanned(memory.gap)} a year of alpha"
            if split_gap(memory) is None:
                takes += ", which is memory or information that the mask destroyed"
        yield self.make("mask-gap", takes, memory.gap, lost, versus=memory.against)
        yield from self.price("alpha", memory)
        masked = f"under '{memory.against}' alpha is {spanned(memory.masked)} a year"
        if memory.both is not None and not self.rests_on_both:
            both = f"over both plays alpha is {spanned(memory.both)} a year"
            together: Bearing = "neither"
            if self.alpha_helps and above(memory.both):
                level = f"{memory.both.level * 100:g} %"
                both += f", significantly above zero ({level})"
                together = "for"
            yield self.make(
                "alpha-of-both-plays", both, memory.both, together, versus=memory.against
            )
        bearing: Bearing = "neither"
        if above(memory.masked) and self.skilled:
            bearing = "for"
        elif above(self.account.known_alpha.tested) and not stands_under_mask(self.account):
            bearing = "against"
        yield self.make("masked-alpha", masked, memory.masked, bearing, versus=memory.against)
        yield from self.memory_of_days(memory)

    def memory_of_days(self, memory: MemoryEvidence) -> Iterator[Statement]:
        """Yield the parts of timing, and of names and days together, that a mask removes.

        A part is stated if it is significant, or if the claim is memory. The part of names and days
        together is stated only if it is memory.
        """
        contrasts: dict[Claim, tuple[str, Contrast | None]] = {
            "timing": ("timing-mask-gap", memory.timing),
            "style_timing": ("style-timing-mask-gap", memory.style_timing),
            "together": ("names-and-days-mask-gap", memory.together),
        }
        for claim, (quantity, contrast) in contrasts.items():
            if contrast is None:
                continue
            taken = above(contrast.gap) and claim != "together"
            if not taken and claim not in self.dropped:
                continue
            takes = (
                f"'{memory.against}' takes {spanned(contrast.gap)} a year of {CLAIM_WORDS[claim]}"
            )
            lost: Bearing = "against" if takes_memory(contrast) else "neither"
            yield self.make(quantity, takes, contrast.gap, lost, versus=memory.against)
            yield from self.price(claim, contrast)

    def price(self, claim: Claim, contrast: MemoryEvidence | Contrast) -> Iterator[Statement]:
        """Yield the lost information and the memory in a gap, if the mask's cost was measured."""
        memory, priced = self.account.memory, contrast.priced
        if memory is None or isinstance(memory.price, msgspec.UnsetType):
            return
        if isinstance(priced, msgspec.UnsetType):
            return
        prefix = _PRICED[claim]
        place = f"in a world that no model can have read ({', '.join(memory.price.worlds)})"
        loss = f"'{memory.against}' takes {spanned(priced.lost)} a year of {CLAIM_WORDS[claim]}"
        unknown = f"the price of '{memory.against}' is not measured: {priced.remembered.reason}"
        known = priced.remembered.value is not None
        accused = known and (takes_memory(contrast) or claim in self.dropped)
        assumptions = ["the mask takes as much information in both worlds"]
        # A world named by its seed can be generated again. For any other world, only its maker
        # states that it is generated.
        stated = [world for world in memory.price.worlds if not world.startswith("synthetic/")]
        if stated:
            assumptions.append(f"{', '.join(stated)} is generated, as its builder states")
        yield self.make(
            f"{prefix}lost-information",
            f"{loss} {place}" if priced.lost.value is not None else unknown,
            priced.lost,
            versus=memory.against,
        )
        yield self.make(
            f"{prefix}memory",
            price_words(self.account, claim) if known else unknown,
            priced.remembered,
            "against" if accused else "neither",
            versus=memory.against,
            assumptions=tuple(assumptions),
        )

    def recall(self) -> Iterator[Statement]:
        """Yield the parts of the return that a model's recall explains, and tests of recall."""
        recall = self.account.recall
        if recall is None:
            return
        claims: dict[Claim, str] = {"alpha": "recalled-alpha", "timing": "recalled-timing"}
        for claim, quantity in claims.items():
            split = split_of(self.account, claim)
            if split is None or split.explained.value is None:
                continue
            words = f"of its {CLAIM_WORDS[claim]}, {split_sentence(split).rstrip('.')}"
            remembered = split.remembered or split.partly
            yield self.make(
                quantity, words, split.explained, "against" if remembered else "neither"
            )
        if recall.unread is not None and recall.unread.value is not None:
            similarity = f"{recall.unread.value:+.2f}".replace("-", "\u2212")
            words = f"orders stay at {similarity} when returns are mirrored (+1 the same)"
            by_name: Bearing = (
                "against" if is_recalled(self.account, "alpha") and recall.by_name else "neither"
            )
            yield self.make("mirrored-orders", words, recall.unread, by_name)
        if recall.interaction is not None and recall.interaction.value is not None:
            right = (
                "it is right more often where questions are familiar, "
                f"{spanned(recall.interaction)}"
            )
            words = f"{right} for one standard deviation of Min-K%"
            familiar = self.verdict.kind == "memory" and looks_familiar(self.account, "alpha")
            yield self.make(
                "familiarity", words, recall.interaction, "against" if familiar else "neither"
            )

    def look_ahead(self) -> Iterator[Statement]:
        """Yield the result of the leak test."""
        leaks = self.account.leaks
        if leaks.findings:
            words = leaks.sentence.rstrip(".") or f"it saw the future ({', '.join(leaks.findings)})"
            share = not_scored("one channel voids the result, on however few days")
            yield self.make("look-ahead-days", words, share, "against")
            return
        if not leaks.tested or leaks.bound is None:
            return
        files = ", except by reading files" if leaks.files_open else ""
        excluded = f"look-ahead on more than {at_most(leaks.bound)} of days is excluded{files}"
        bearing: Bearing = "for" if self.skilled else "neither"
        yield self.number("look-ahead-days", excluded, leaks.bound, bearing)

    def exposure(self) -> Iterator[Statement]:
        """Yield the exposure to the benchmark, timing, and timing of styles."""
        account, config, followed = self.account, self.config, self.account.passive
        if followed is not None and followed.portfolio != CASH:
            beta = f"beta of {followed.beta:.2f} to {followed.portfolio}"
            yield self.number("beta", beta, followed.beta, versus=followed.portfolio)
            share = f"{followed.portfolio} explains {followed.explained:.1%} of its variance"
            passive = followed.explained >= config.tracks
            bearing: Bearing = "against" if passive else "neither"
            yield self.number(
                "explained", share, followed.explained, bearing, versus=followed.portfolio
            )
            if followed.lagged > 0.05:
                late = f"{followed.lagged:.0%} of its market exposure comes late"
                yield self.number("late-exposure", late, followed.lagged, "against")
        timing, styles = account.timing, account.styles
        if timing is not None and timing.per_year.value is not None:
            words = f"timing brought {spanned(timing.per_year)} a year, by {timing.by}"
            helps: Bearing = "for" if self.praised and "timing" in self.kept else "neither"
            if (
                convex(account, config)
                and timing.intercept is not None
                and "timing" not in self.kept
            ):
                bought = f"{spanned(timing.intercept)} a year where the market does not move"
                words += f"; it bends up as bought options do, and pays {bought}"
                helps = "against"
            yield self.make("timing", words, timing.per_year, helps)
        if styles is not None:
            words = f"leaning to styles when they paid brought {spanned(styles.timing)} a year"
            helps = "for" if self.praised and "style_timing" in self.kept else "neither"
            yield self.make("style-timing", words, styles.timing, helps)

    def time(self) -> Iterator[Statement]:
        """Yield alpha by period."""
        stability = self.account.stability
        if stability is None:
            return
        first, second = spanned(stability.first), spanned(stability.second)
        yield self.make(
            "alpha-first-half", f"alpha in the first half {first} a year", stability.first
        )
        faded: Bearing = "against" if stability.faded else "neither"
        yield self.make(
            "alpha-second-half",
            f"alpha in the second half {second} a year",
            stability.second,
            faded,
        )
        latest = f"alpha in the latest third {spanned(stability.latest)} a year"
        bearing: Bearing = "neither"
        if above(stability.latest) and self.skilled and self.alpha_helps:
            bearing = "for"
        elif (stability.latest.value or 0.0) <= 0.0:
            bearing = "against"
        yield self.make("alpha-latest-third", latest, stability.latest, bearing)

    def concentration(self) -> Iterator[Statement]:
        """Yield the parts of alpha from a few sessions, from one month and from one name."""
        stability, concentration = self.account.stability, self.account.concentration
        alpha = self.account.known_alpha.tested
        if stability is not None:
            without = (
                f"alpha without the five best sessions {spanned(stability.without_best)} a year"
            )
            lost = above(alpha) and not above(stability.without_best)
            bearing: Bearing = "against" if lost else "neither"
            yield self.make("alpha-without-best-days", without, stability.without_best, bearing)
            if stability.without_month is not None:
                month = f"alpha without its best month ({stability.best_month})"
                words = f"{month} {spanned(stability.without_month)} a year"
                lost = above(alpha) and not above(stability.without_month)
                bearing = "against" if lost else "neither"
                yield self.make("alpha-without-best-month", words, stability.without_month, bearing)
        if concentration is None:
            return
        share = concentration.session_share
        if share is not None and is_significant(alpha):
            words = f"the best session ({concentration.session}) brought {_share(share)} of alpha"
            bearing = "against" if share > _CONCENTRATED else "neither"
            yield self.number("best-day-share", words, share, bearing)
        share = concentration.name_share
        if share is not None:
            words = f"{concentration.name} brought {_share(share)} of the selection"
            bearing = "against" if share > 0.5 else "neither"
            yield self.number("best-name-share", words, share, bearing)

    def risk(self) -> Iterator[Statement]:
        """Yield losses, and risks that the record does not show."""
        account, tail = self.account, self.account.tail
        hidden: Bearing = "against" if self.verdict.kind == "hidden-risk" else "neither"
        if tail is not None:
            skew = "" if tail.skew is None else f", skew of its returns {signed(tail.skew)}"
            tested = skew_words(tail)
            skew += f", {tested}" if tested else ""
            calm = "; no crash in the record" if tail.crash is False else ""
            worst = f"worst day {percent(tail.worst)} ({tail.worst_session}){skew}{calm}"
            yield self.number("worst-day", worst, tail.worst)
        options = account.options
        if options is not None:
            for fall, loss in ((10, options.loss_at_10), (20, options.loss_at_20)):
                if loss is None:
                    continue
                words = (
                    f"if the market falls {fall} % in one day it would return about {percent(loss)}"
                )
                yield self.number(f"loss-at-{fall}", words, loss, hidden)
        smooth = account.smoothness
        if smooth is None:
            return
        autocorrelation = smooth.autocorrelation
        if autocorrelation.value is not None:
            words = f"autocorrelation of returns {autocorrelation.value:+.2f}"
            bearing: Bearing = "against" if smooth.signs else hidden
            yield self.make("autocorrelation", words, autocorrelation, bearing)
        if smooth.unsmoothed_sharpe is not None and smooth.signs:
            words = f"Sharpe ratio after unsmoothing {smooth.unsmoothed_sharpe:.2f}"
            yield self.number("smoothed-sharpe", words, smooth.unsmoothed_sharpe)

    def power(self) -> Iterator[Statement]:
        """Yield the power of a record of this length, and the years until a result is clear."""
        account = self.account
        if account.chance is not None:
            ratio = f"an alpha ratio of {self.config.skilled:g}"
            words = f"a record like this one shows {ratio} with a chance of {account.chance:.0%}"
            bearing: Bearing = "neither"
            if account.could_not and self.verdict.kind == "not-distinguishable-from-luck":
                bearing = "against"
            yield self.number("chance-to-show", words, account.chance, bearing)
        until = years_to_know(account, self.verdict)
        if until is not None:
            yield self.number("years-to-know", _until_words(until), until)


def _has_own_benchmark(account: AgentFindings) -> bool:
    """Return whether the account is a table of returns without a data set."""
    return account.method == "returns" and not account.dataset


def _ratio_words(ratio: Measure) -> str:
    """Return a ratio with two decimals and its interval, if any, as text.

    The text is empty without a value.
    """
    if ratio.value is None:
        return ""
    text = f"{ratio.value:.2f}"
    if ratio.low is not None:
        text += f" ({ratio.low:.2f} to {ratio.high:.2f})"
    return text.replace("-", "\u2212")


def _unsigned(share: Measure) -> str:
    """Return a percentage without a sign, with its interval, if any, as text.

    The text is empty without a value.
    """
    if share.value is None:
        return ""
    text = f"{share.value:.1%}"
    return text if share.low is None else f"{text} ({share.low:.1%} to {share.high:.1%})"


def _words_or_reason(name: str, words: str, measure: Measure) -> str:
    """Return ``words`` if a measure has a value, otherwise the reason why it has none."""
    return words if measure.value is not None else f"no {name}: {measure.reason}"


def _part_claim(account: AgentFindings, quantity: str, measure: Measure) -> str:
    """Return the sentence about a part of the return."""
    words = part_words(account, measure.value)
    if words is None:
        return (
            f"other parts of the return offset {quantity}: each is more than ten times the account"
        )
    if words.endswith("growth"):
        return f"of its growth, {words.removesuffix(' of its growth')} is {quantity}"
    return f"of the return, {words} is {quantity}"


def _share(value: float) -> str:
    """Return a share as a percentage, or "more than all" above 100 %."""
    return "more than all" if value > 1.0 else f"{value:.0%}"


_FOREVER = 100.0
"""Number of further years above which the exact number is not stated."""


def years_to_know(account: AgentFindings, verdict: Verdict) -> float | None:
    """Return the number of further years until the record shows whether there is alpha.

    The number is 0 if the verdict is skill or worse than chance. Returns None if no alpha was
    measured, or if more time would not change the verdict.
    """
    alpha = account.alpha
    if alpha is None or alpha.tested.low is None or account.needed is None:
        return None
    if verdict.kind in ("skill", "worse"):
        return 0.0
    if verdict.kind not in ("not-distinguishable-from-luck", "could-be-best-of-few", "style"):
        return None
    if verdict.label in ("faded", "alpha too small"):
        return None
    # The required length detects an effect in 80 % of records. This record may be longer and still
    # not detect the effect. At least a quarter of its length is stated then.
    more = max(account.needed - account.sessions, account.sessions // 4, 1)
    return more / account.year


def _until_words(years: float) -> str:
    """Return the sentence about the number of further years."""
    if years == 0.0:
        return "the record is long enough to settle it"
    if years > _FOREVER:
        return "so small an alpha would take over a hundred years to show"
    span = f"{years:.1f} more years" if years >= 0.95 else f"{years * 12:.0f} more months"
    return f"about {span} like these would settle it, if alpha is as large as it looks"
