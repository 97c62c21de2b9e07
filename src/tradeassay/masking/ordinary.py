"""Words that are also tickers or parts of company names, and must not be torn out of ordinary prose.

A ticker among :data:`ORDINARY` is replaced where a field holds identifiers, and in prose only where it is written
as a ticker (``$D``, ``NYSE: D``, ``(D)``, ``"D"``). A word among :data:`GENERIC` or :data:`ORDINARY` does not give
a company away by itself; the company's whole name does.
"""

from __future__ import annotations

_TICKER_WORDS = """
a i ad ai all am an and any app are art as at auto away back ball band bank bar base be beat bed ben best big
bill bit blue body bold book boom boot box bro bud bug buy by cake call can cap car card care case cash cat
cave chat city clean clear co coin cold comm cook cool core corn cost cross cut cute dare data dash dawn day
deal deck deep desk dig dish do doc dog doing door dot down dow dream drop dry duo earn ease east easy eat
edge edit ego else energy eve ever exit eye face fact fair fall farm fast fate fee feel few fill find fine
fire fit five fix flag flat flex flow fly foil fold food for fork form four fox free from fuel full fun fund
gain gap game gas gate gem get go gold golf good got grab grow guess gulf had hall ham hand hard has have he
heal hear heart heat help her here hi high him his hit hog hold home hood hope host hot how hug huge hut ice
idea if in inn info ink into is it item its jack jam job join joy jump just keep key kind king know kite lab
lad lake land last law lay lead leaf left leg less let life light like line link list live load loan lock log
long look loop loss love low luck lung made main make man many map mar mark market mask mass match mat may me
meet men metal mid mile mill mind mini miss mix mod mode moon more most move much must my name near need net
new news next nice nine no none north not note now number nut oak of off oil old on one only open or orb order
our out over own pack page paid pair park part pass path pay peak pen pet pick pie pin pit place plan plant
play plug plus point pool pop port post power price prime pro pump push put race rail rain ram range rate read
real red rent rest rich ride right ring rise risk road rock role roll roof room root rose row rule run rush
safe sage sail sale salt sam same sand save say sea seat see seed sell send set seven shake share shift ship
shoe shop short show side sign sim sit site six size ski skin sky slow small smart snap snow so sofa soft soil
sold sole some son song sort soul south span spark spin spot spring spy star start stay steel stem step stock
stop store strong such sum sun sure surf swim swing table tag take talk tall tank tap target task tax tea team
tear tech tell ten term test text than that the them then they thin this thread three tile time tin tip to ton
too tool top total touch tour town toy track trade train tree trend trip true trust try turn twin two type
ugly unit up upon us use van vast very via view vote wait walk wall want war warm was wash watch water wave
way we wear web week well west what when who why wide will win wind wing wire wise wish with wolf wood word
work world worth yard year yes yet you young your zero zip zone progressive southern general american national
united international dollar block square discover equity public republic
""".split()
_ACRONYMS = """
api apr aug avg bps bse buy ceo cfo ci cny cpi csi csv cto dec de diff div ema ebit ebitda eps es est etc etf
eu eur eq esg ex fed feb fda fx fy gaap gdp gmt hhi hk hkd hr html http id ids ipo iq ir irr jan jpy json jul
jun ko lot ltd ma macd max md mdd mean min mo mom ms na nan nav nov nyse oct ok ohlc otc pb pc pe pct pm pmi
pnl pr ps qoq re rev rmb roa roe roi rsi rv sec sep sh skew sma sql std sz tbd tv uk un url usa usd utc var
vix vol vs vwap wls yoy ytd
""".split()
GENERIC: frozenset[str] = frozenset(
    """
acquisition advanced advisors aerospace africa agricultural air airlines alliance allied alpha america
americas american analytics animal appliances applied asia asset assets atlantic australia auto automation
automotive aviation bancorp bancshares bank bankers banking banks basic basket bay beauty beijing beverage
beverages bio biologics biopharma biosciences biotech biotechnology brands broadcasting brothers building
business cable california canada canadian capital care cement central chain chemical chemicals china chinese
city clean cloud coal coffee coin commerce commercial commodities communications community component
components computer construction consolidated consulting consumer container control controls credit cruise
dairy data defense delivery dental design development devices diagnostics digital direct display distribution
diversified east eastern education electric electrical electronic electronics energy engineering enterprise
enterprises entertainment environmental equipment equity estate estates europe european exchange express
federal fiber finance financial financials first fitness flight foods freight fund funds future futures gas
genetics global gold grand great green growth health healthcare heavy high holdings home homes hong hospital
hotel hotels house hydropower income india industrial industries industry information infrastructure
innovation innovations institute instruments insurance integrated interactive international internet
investment investments investors iron island japan jiangsu kingdom kong laboratories land large latin leasing
leisure life light line lines liquor logistics london machine machinery machines management manufacturing
marine market marketing markets master materials media medical medicine metal metals micro mid midstream
mineral minerals mining mobile modern mortgage motor motors multi mutual national natural network networks new
north northern nuclear oil one online optical optics orient outdoor outdoors pacific packaging paper partners
parts petroleum pharma pharmaceutical pharmaceuticals pipeline plastics platform plus ports power precision
premier premium products property properties public quality quantum rail railway real realty regional
reinsurance renewable rental research residential resorts resource resources restaurants retail royal rural
sciences science securities security select semiconductor semiconductors senior service services settlement
shanghai shenzhen shipping small smart social software solar solution solutions south southern specialty
sports state states steel storage stores strategic strategies summit supply surgical swap systems technologies
technology telecom telecommunications telephone television textile therapeutics timber tobacco tools toronto
total trading transport transportation travel trucking union united universal university usa utilities utility
vault vehicle ventures vision water waste wealth wellness west western wireless wood works world worldwide
york zhejiang north-east and of the for de la le du von van el los las das di del
""".split()
)
"""Words that many company names share."""
LEGAL: frozenset[str] = frozenset(
    """ inc incorporated corp corporation co company companies ltd limited plc
llc lp llp sa nv ag se spa ab asa oyj as kk bhd group holdings holding trust class common stock ordinary share
shares adr ads reit units unit index fund etf cl a b c d
""".split()
)
"""Words that end a company's registered name without saying which company it is."""
ORDINARY: frozenset[str] = frozenset(_TICKER_WORDS) | frozenset(_ACRONYMS)
"""Ordinary words and abbreviations, in lower case."""


def is_ordinary(ticker: str) -> bool:
    """Tell whether a ticker is also an ordinary word, an abbreviation of the trade or a single letter."""
    return len(ticker) == 1 or ticker.lower() in ORDINARY
