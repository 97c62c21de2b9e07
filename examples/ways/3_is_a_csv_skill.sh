git clone "$REPOSITORY" tradeassay
pip install ./tradeassay
tradeassay assay returns.csv --against market.csv
