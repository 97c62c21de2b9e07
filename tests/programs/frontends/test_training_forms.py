"""Tasks and rewards in the forms of training libraries; the slow tests need the libraries
themselves.
"""

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_programs.benchmarks.quantcode import draw_tasks
from tradeassay_programs.code.reward import QUICK, RewardConfig
from tradeassay_programs.frontends import training
from tradeassay_programs.reward import Pool

SECRET = "5e" * 16
GOLD = f"```python\n{draw_tasks('train', 1, 3)[0].reference}```"


@pytest.fixture(scope="module", autouse=True)
def pool() -> Any:
    with Pool(
        judge="behaviour", secret=SECRET, workers=1, config=RewardConfig(draws=QUICK)
    ) as opened:
        training.use(opened)
        yield opened
    training.POOLS.clear()


def test_every_form_gives_nothing_for_no_program():
    task = "gen-sma-cross-3-0"
    said = [{"role": "assistant", "content": "I would rather not."}]
    answers = ["no", said, [{"content": None}]]
    assert training.trl_reward(prompts=["p"] * 3, completions=answers, task=[task] * 3) == [0.0] * 3
    assert training.verl_score("quantcode", "no program", task, extra_info={"index": 1}) == 0.0
    assert training.grade({"output_text": None}, {"task": "d-sma-cross-long"}) == 0.0


def test_rows_ask_as_the_benchmark_does():
    rows = training.rows("test", 3, 5, wording="conversational")
    tasks = draw_tasks("test", 3, 5)
    assert [row["task"] for row in rows] == [task.id for task in tasks]
    assert [row["reward_model"]["ground_truth"] for row in rows] == [task.id for task in tasks]
    for row, task in zip(rows, tasks, strict=True):
        assert [one["role"] for one in row["prompt"]] == ["system", "user"]
        assert task.conversational in row["prompt"][1]["content"]
    with pytest.raises(UserError, match="has no loud wording"):
        training.rows("test", 1, wording="loud")


@pytest.mark.slow
def test_verifiers_scores_the_last_reply():
    pytest.importorskip("verifiers.v1")
    tasks = list(training.verifiers_taskset("train", 2, 3))
    assert [task.data.id for task in tasks] == [task.id for task in draw_tasks("train", 2, 3)]
    assert "Backtrader" in tasks[0].data.system_prompt and tasks[0].data.idx == 0
    for reply, wanted in ((GOLD, 1.0), ("I would rather not.", 0.0)):
        trace = SimpleNamespace(last_reply=reply, rewards={}, metrics={}, record_reward=None)
        assert asyncio.run(tasks[0].judged(trace)) == wanted


@pytest.mark.slow
def test_verl_managers_find_the_reward_by_its_name_and_score_with_it():
    verl, torch = pytest.importorskip("verl"), pytest.importorskip("torch")
    from omegaconf import OmegaConf
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
    from verl.trainer.ppo.reward import get_custom_reward_fn

    found = {"path": "pkg://tradeassay.frontends.training", "name": "verl_score"}
    config = OmegaConf.create({"reward": {"custom_reward_function": found}})
    answers = [GOLD, "I would rather not."]
    (row,) = training.rows("train", 1, 3)
    length = max(map(len, answers))
    said = torch.tensor([[*map(ord, text), *[0] * (length - len(text))] for text in answers])
    columns = {
        name: np.array([row[name]] * 2) for name in ("data_source", "reward_model", "extra_info")
    }
    data = verl.DataProto.from_dict(
        tensors={"responses": said, "attention_mask": (said > 0).long()}, non_tensors=columns
    )

    class Letters:
        def decode(self, ids: Any, skip_special_tokens: bool) -> str:
            return "".join(map(chr, ids))

    async def score() -> list[float]:
        manager = NaiveRewardManager(config, Letters(), get_custom_reward_fn(config))
        scored = await asyncio.gather(*(manager.run_single(data[at : at + 1]) for at in range(2)))
        return [one["reward_score"] for one in scored]

    assert asyncio.run(score()) == [1.0, 0.0]


@pytest.mark.slow
def test_openenv_serves_tasks_and_takes_answers():
    pytest.importorskip("openenv.core")
    from fastapi.testclient import TestClient

    with TestClient(training.openenv_app("train", 3)) as client:
        shown = client.post("/reset", json={"seed": 0}).json()
        assert shown["observation"]["task"] == "gen-sma-cross-3-0" and not shown["done"]
        assert client.get("/health").status_code == 200
        with client.websocket_connect("/ws") as socket:
            socket.send_json({"type": "reset", "data": {"seed": 0}})
            assert socket.receive_json()["data"]["observation"]["task"] == "gen-sma-cross-3-0"
            socket.send_json({"type": "step", "data": {"text": GOLD}})
            said = socket.receive_json()["data"]
            assert (
                said["done"]
                and said["reward"] == 1.0
                and said["observation"]["outcome"] == "solved"
            )


@pytest.mark.slow
def test_trl_takes_a_step(tmp_path):
    trl, torch = pytest.importorskip("trl"), pytest.importorskip("torch")
    datasets = pytest.importorskip("datasets")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    words = ["<pad>", "<end>", "buy", "sell", "self", ".", "\n", "[UNK]"]
    plain = Tokenizer(
        models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]")
    )
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<end>"
    )
    tokenizer.chat_template = "{% for one in messages %}{{ one['content'] }}{% endfor %}"
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = Qwen2Config(
        vocab_size=len(words),
        num_key_value_heads=2,
        max_position_embeddings=4096,
        eos_token_id=1,
        pad_token_id=0,
        **sizes,
    )
    options = trl.GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=1,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=4,
        report_to=[],
        use_cpu=True,
        logging_steps=1,
    )
    trainer = trl.GRPOTrainer(
        model=Qwen2ForCausalLM(config),
        reward_funcs=training.trl_reward,
        args=options,
        processing_class=tokenizer,
        train_dataset=datasets.Dataset.from_list(training.rows("train", 2, 3)),
    )
    trainer.train()
    (line,) = [line for line in trainer.state.log_history if "reward" in line]
    assert line["reward"] == 0.0  # no program comes out of eight words
