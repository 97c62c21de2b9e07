git clone "$REPOSITORY" tradeassay
pip install './tradeassay[fast]'
tradeassay run daily-us-v1 -m scripted/sensible -m scripted/contrarian -m scripted/news-reader --last 2022-02-28 --slug ranked
tradeassay report ranked --format card > README.md
