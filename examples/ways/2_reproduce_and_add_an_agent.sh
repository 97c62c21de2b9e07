git clone "$REPOSITORY" tradeassay
pip install './tradeassay[fast]'
tradeassay reproduce stockbench -m scripted/sensible --slug paper
tradeassay new agent mine
tradeassay run stockbench-paper-v1 -a ./mine/mine.py:Mine -a equal-weight --slug mine
tradeassay compare paper mine
