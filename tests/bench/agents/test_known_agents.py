"""ai-hedge-fund, in an environment of its own, plays through the pipe with a model server of the
test.
"""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

import tradeassay_bench
from tradeassay.core.errors import UserError
from tradeassay_bench.runs.spec.run_spec import parse_agent

SCRIPT = Path(__file__).parents[3] / "examples" / "known_agents" / "ai_hedge_fund.py"
KEYS = "OPENAI_API_KEY,OPENAI_API_BASE,FINANCIAL_DATASETS_API_KEY,FINANCIAL_DATASETS_BASE_URL,HEDGE_FUND_LLM_MODEL"


class Web(BaseHTTPRequestHandler):
    """The agent's model (OpenAI's wire) and its source of data (Financial Datasets'), both on
    this machine.
    """

    asked: ClassVar[list[dict[str, Any]]] = []
    """Prompts of the model, and days up to which prices were read."""
    broken = False

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, body: object, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(where.query).items()}
        if where.path == "/prices/":
            self.asked.append({"prices": given["ticker"], "until": given["end_date"]})
            prices = dict.fromkeys(("open", "high", "low", "close"), 10)
            return self.reply(
                {"prices": [{**prices, "volume": 1, "time": f"{given['end_date']}T00:00"}]}
            )
        if where.path == "/financial-metrics/":
            row = {"ticker": given["ticker"], "period": "ttm", "return_on_equity": 0.2}
            row["filing_date"] = "2021-11-01"
            rows = [{**row, "report_period": f"202{n}-09-30"} for n in range(4)]
            return self.reply({"financial_metrics": rows})
        return self.reply({}, 404)

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.broken:
            return self.reply({"error": {"message": "out of order"}}, 400)
        text = "\n".join(str(message["content"]) for message in sent["messages"])
        company = text.partition("Company: ")[2].split()[0]
        self.asked.append({"company": company})
        # The first company is liked, the others are not.
        first = next(one["company"] for one in self.asked if "company" in one)
        signal = "bullish" if company == first else "bearish"
        said = json.dumps({"signal": signal, "confidence": 80, "reasoning": "as the figures say"})
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": said},
        }
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        head = {"id": "x", "object": "chat.completion", "created": 0, "model": sent["model"]}
        return self.reply({**head, "choices": [choice], "usage": usage})


@pytest.fixture
def web(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Web.asked, Web.broken = [], False
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for name, value in zip(
        KEYS.split(","), ("none", f"{address}/v1", "none", address, "gpt-6-sol"), strict=True
    ):
        monkeypatch.setenv(name, value)
    yield address
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with the real package; ``AIHF_ENV`` names one that is there already."""
    known = os.environ.get("AIHF_ENV")
    folder = Path(known) if known else tmp_path_factory.mktemp("aihf") / "env"
    if not known:
        made = subprocess.run(
            [sys.executable, SCRIPT, "--install", "--env", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            pytest.skip(f"no index to install the package from: {made.stderr[-200:]}")
    return folder


def played(environment: Path, benchmark: str, last: str, folder: Path) -> Any:
    command = f"python {SCRIPT} --env {environment} --names 3 --every 2"
    agent = {
        "name": "pipe",
        "params": {"command": command, "env": KEYS, "timeout_s": 120},
        "label": "aihf",
    }
    return tradeassay_bench.run(
        benchmark, agents=[agent], last=last, folder=folder, executor="inline", progress="none"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "last"), [("daily-us-v1", "2022-01-14"), ("stockbench-v1", "2022-06-28")]
)
def test_the_real_package_plays(environment, web, benchmark, last, tmp_path):
    run = played(environment, benchmark, last, tmp_path / "run")
    assert not run.failed and not tradeassay_bench.verify(run.folder).contradicted
    frames = run.frames("pandas")
    decided = frames.decisions[frames.decisions["agent"] == "program on a pipe: aihf"]
    assert len(decided) and not decided["failures"].any(), frames.decisions.to_string()
    companies = [one["company"] for one in Web.asked if "company" in one]
    mine = frames.trades[frames.trades["agent"] == "program on a pipe: aihf"]
    assert set(mine["symbol"]) == {companies[0]}, (
        "its investors like one company, and it sells nothing short"
    )
    assert len(set(companies)) == 3 and companies.count(companies[0]) == 3, (
        "three investors, each asked once"
    )
    days = sorted({one["until"] for one in Web.asked if "until" in one})
    assert days[0] < str(decided["session"].min())[:10] and days[-1] < last, (
        "no close that is still to come"
    )


@pytest.mark.slow
def test_a_model_that_is_gone_is_a_failure_and_not_a_decision(environment, web, tmp_path):
    Web.broken = True
    run = played(environment, "daily-us-v1", "2022-01-10", tmp_path / "run")
    (told,) = run.failed.values()
    assert "9 of 12 opinions were lost" in told and "out of order" in told


def test_without_its_environment_it_says_how_to_make_one(tmp_path):
    asked = subprocess.run(
        [sys.executable, SCRIPT, "--env", tmp_path / "nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 2 and "--install" in asked.stderr


def test_several_variables_are_named_on_the_command_line():
    agent = parse_agent("pipe:command=python x.py,env=ONE,TWO,timeout_s=9")
    assert agent.params == {"command": "python x.py", "env": "ONE,TWO", "timeout_s": 9}
    with pytest.raises(UserError, match="is not a parameter"):
        parse_agent("pipe:command=python x.py,ONE")
