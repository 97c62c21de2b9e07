"""The smallest honest run of every kind, made through the command line."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import scripted_misfits  # noqa: F401  # adds models
from forging import command

AGENT = """
class Mine:
    def reply(self, asked):
        best = max(asked["observation"]["names"], key=lambda name: (name["r20"] or 0, name["symbol"]))
        order = {"symbol": best["symbol"], "unit": "target_weight", "amount": 0.1}
        usage = {"input_tokens": 900, "output_tokens": 20, "usd": 0.01}
        return {"answer": {"orders": [order], "reason": "it rose most"}, "usage": usage}
"""
PIPE = """
import json, sys
from my_agent import Mine
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], **Mine().reply(asked)}), flush=True)
"""
SEASON = """
id = "spring"
title = "Spring"
benchmark = "ama-v1"
first = "2022-03-01"
last = "2022-03-10"
warmup = 2
[[assets]]
symbol = "AAJX"
kind = "stock"
dataset = "synthetic/us:7"
[[entries]]
id = "careful"
architecture = "investor"
model = "scripted/sensible"
[[entries]]
id = "bare"
architecture = "vanilla"
model = "scripted/sensible"
label = "Bare model"
[[entries]]
id = "trend"
architecture = "rule"
params = { rule = "trend" }
"""
THEIRS = """
import msgspec
from tradeassay_bench.account import venues
from tradeassay_bench.agents import PortfolioConfig, Rebalancer
from tradeassay_bench.benchmarks import benchmarks

class TheirRule(Rebalancer[PortfolioConfig]):
    summary = "holds the first names"
    Config = PortfolioConfig

    def targets(self, observation):
        return {name: 0.1 for name in observation.universe[:5]}

US = benchmarks.get("daily-us-v1")
MARKET = msgspec.structs.replace(US, id="their-market-v1", title="Theirs")
FEES = msgspec.structs.replace(
    US, id="their-fees-v1", market=msgspec.structs.replace(US.market, venue="their-venue-v1")
)
VENUE = msgspec.structs.replace(venues.get("us-v1"), id="their-venue-v1", title="Their exchange")
"""
POINTS = """
[tradeassay.agents]
their-rule = theirs:TheirRule
[tradeassay.benchmarks]
their-market-v1 = theirs:MARKET
their-fees-v1 = theirs:FEES
[tradeassay.venues]
their-venue-v1 = theirs:VENUE
"""


def play(root, *words):
    """Give a command that makes a run below ``root`` and return the run's folder."""
    before = set((root / "runs").glob("*"))
    status, said = command(*words, "--runs", root / "runs", "--workers", "1")
    new = [path for path in (root / "runs").iterdir() if path not in before]
    assert status == 0, said
    assert len(new) == 1, said
    return new[0]


def given(words):
    """Return how the run of a command is made."""
    return lambda root: play(root, *words.split())


def own(root):
    """Play agents of files as people call them: with a space, behind a link, on a pipe."""
    (root / "my_agent.py").write_text(AGENT)
    (root / "the boss's.py").write_text(AGENT.replace("Mine", "Boss"))
    (root / "newest.py").symlink_to(root / "news.py")
    (root / "news.py").write_text(AGENT.replace("Mine", "News"))
    (root / "on_a_pipe.py").write_text(PIPE)
    return play(
        root,
        *("run", "daily-us-v1", "--last", "2022-01-12", "--name", "own"),
        *("-a", f"{root}/my_agent.py:Mine", "-a", f"pipe:command=python {root}/on_a_pipe.py"),
        *("-a", f"{root}/the boss's.py:Boss", "-a", f"{root}/newest.py:News"),
    )


def of_a_package(benchmark):
    """Play a benchmark and a rule of a package that is installed for the runner alone."""

    def made(root):
        info = root / "theirs-1.0.dist-info"
        info.mkdir()
        (root / "theirs.py").write_text(THEIRS)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(POINTS)
        words = (
            f"run {benchmark} -a their-rule -a momentum-12-1:k=3 --executor inline --name theirs"
        )
        asked = [sys.executable, "-m", "tradeassay", *words.split(), *SHORT]
        subprocess.run(asked, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, check=True)
        return root / "runs" / "theirs"

    return made


def over_http(root):
    space = {}
    exec(AGENT, space)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            reply = {"id": asked["id"], **space["Mine"]().reply(asked)}
            self.wfile.write(json.dumps(reply).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http:url=http://127.0.0.1:{server.server_port},label=openai-gpt-5"
    try:
        words = "run daily-us-v1 --last 2022-01-12 --name http -a"
        return play(root, *words.split(), address)
    finally:
        server.shutdown()


def season(root, text=SEASON, name="arena.db"):
    (root / "season.toml").write_text(text)
    status, said = command("arena", "run", "--season", root / "season.toml", "--db", root / name)
    assert status == 0, said
    return root / name


def recalled(root):
    """Play a model, ask it what it remembers, change what it sees, and judge it with both
    records.
    """
    words = "run ktdfin-v1 -m scripted/sensible --last 2022-02-11 --name recalled"
    run = play(root, *words.split())
    recall, changed = run.parent / "recall.json", run.parent / "changed.json"
    for words in (
        f"memory recall --run {run} --questions 60 -o {recall.with_suffix('.html')}",
        f"memory counterfactual {run} --share 1 -o {changed.with_suffix('.html')}",
        f"assay {run} --portfolios 100 --recall {recall} --recall {changed}",
    ):
        status, said = command(*words.split())
        assert status == 0, said
    return run


SHORT = ("--first", "2022-01-10", "--last", "2022-01-20")
COMMANDS = {
    "rule": "run daily-us-v1 -a momentum-12-1:k=3 -a random --name rule --executor inline "
    f"{' '.join(SHORT)}",
    "paper": "run ktdfin-paper-v1 -a momentum-12-1:k=3 --last 2022-02-10 --name paper --executor "
    "inline",
    "masked": "run ktdfin-v1 -m scripted/sensible --mask blinded --last 2022-02-09 --name masked "
    "--executor inline",
    "recorded": "run stockbench-v1 --recordings recorded/qwen2.5-coder-1.5b --replay --executor "
    "inline",
    "quantcode": "code run quantcode-v1 --model scripted/coder-mends --task d-sma-cross-long "
    "--setting agentic "
    "--turns 4 --name quantcode",
    "systrade": "code run systrade-v1 -m scripted/builder-peeps --reviewer scripted/builder-gold "
    "--strategy bollinger "
    "--iterations 1 --name systrade",
    "generated": "code run quantcode-v1 --model scripted/coder-sma --task gen-rsi-low-1-7 --task "
    "gen-rsi-low-1-9 "
    "--name generated",
}
HONEST = {
    **{name: given(words) for name, words in COMMANDS.items()},
    **{"own": own, "http": over_http, "arena": season, "recalled": recalled},
    "theirs": of_a_package("their-market-v1"),
    "venue": of_a_package("their-fees-v1"),
}
