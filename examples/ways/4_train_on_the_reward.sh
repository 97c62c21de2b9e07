git clone "$REPOSITORY" tradeassay
pip install './tradeassay[code]'
python tradeassay/examples/training/toy_policy.py --steps 2 --batch 4
