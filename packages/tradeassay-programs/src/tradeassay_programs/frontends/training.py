"""Generated tasks and their rewards in the formats of training libraries (extra ``[train]``).

* TRL: ``GRPOTrainer(train_dataset=Dataset.from_list(rows("train", 1000)), reward_funcs=trl_reward,
  ...)``
* verl: ``Dataset.from_list(rows(...)).to_parquet(...)`` and, under
  ``reward.custom_reward_function``, ``path=pkg://tradeassay.frontends.training`` and
  ``name=verl_score``
* verifiers: :func:`verifiers_taskset`, a ``Taskset`` of tasks that score themselves
* OpenEnv: :func:`openenv_app`, a FastAPI app; ``uvicorn --factory
  tradeassay_programs.frontends.training:openenv_app``

All return 0 for an answer without a program. A sample that could not be judged is None for TRL,
which leaves it out, and 0 for the other libraries. One pool per process computes the rewards.
:func:`use` replaces it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from tradeassay.core.errors import require
from tradeassay_programs.benchmarks.quantcode import draw_tasks, load_task
from tradeassay_programs.benchmarks.quantcode.dialogue import QuantCodeSettings, opening_messages
from tradeassay_programs.code.reward import QUICK, RewardConfig
from tradeassay_programs.code.task import CodeTask, Wording
from tradeassay_programs.reward import Pool

SOURCE = "tradeassay/quantcode"
POOLS: list[Pool] = []


def use(pool: Pool) -> None:
    """Set the pool that computes rewards, to change the markets, the workers or the cluster."""
    POOLS[:] = [pool]


def _pool() -> Pool:
    if not POOLS:
        # If a training run has several processes, call use() with one secret, so that all get the
        # same markets.
        use(Pool(judge="behaviour", config=RewardConfig(draws=QUICK)))
    return POOLS[0]


def messages_of(task: CodeTask, wording: Wording = "formal") -> list[dict[str, str]]:
    """Return the messages with which the benchmark presents a task to a model."""
    asked = opening_messages(task, QuantCodeSettings(wording=wording))
    return [{"role": one.role, "content": one.text} for one in asked]


def rows(
    family: str, count: int, seed: int = 0, *, wording: Wording = "formal"
) -> list[dict[str, Any]]:
    """Return drawn tasks as rows of a data set, with the columns that TRL and verl read."""
    return [
        {
            "prompt": messages_of(task, wording),
            "task": task.id,
            "data_source": SOURCE,
            "ability": "code",
            "reward_model": {"style": "rule", "ground_truth": task.id},
            "extra_info": {"family": task.title, "difficulty": task.difficulty},
        }
        for task in draw_tasks(family, count, seed)
    ]


def trl_reward(
    completions: Sequence[Any], task: Sequence[str], **columns: Any
) -> list[float | None]:
    """Return the rewards of a batch for TRL.

    A completion is a text, or a conversation whose last message is scored.
    """
    answers = [one if isinstance(one, str) else one[-1]["content"] for one in completions]
    return [scored.value for scored in _pool().batch(answers, [load_task(name) for name in task])]


def verl_score(
    data_source: str, solution_str: object, ground_truth: str, extra_info: Any = None
) -> float:
    return _pool().batch([solution_str], [load_task(ground_truth)])[0].value or 0.0


def grade(sample: dict[str, Any], item: dict[str, Any]) -> float:
    """Return the score of a model's answer to an item. It has the signature of a Python grader."""
    return verl_score(SOURCE, sample.get("output_text"), item["task"])


def verifiers_taskset(family: str = "train", count: int = 1000, seed: int = 0) -> Any:
    """Return a taskset of the package ``verifiers``.

    Its tasks use the benchmark's messages and score the last reply.
    """
    vf: Any = require("verifiers.v1", "train", "tasks for verifiers")

    class QuantCodeTask(vf.Task[vf.TaskData, vf.State, vf.TaskConfig]):  # type: ignore[misc]  # untyped here
        @vf.reward  # type: ignore[untyped-decorator]  # untyped here
        async def judged(self, trace: Any) -> float:
            (scored,) = await _pool().abatch([trace.last_reply], [load_task(self.data.id)])
            return scored.value or 0.0

    class QuantCodeTaskset(vf.Taskset[QuantCodeTask, vf.TasksetConfig]):  # type: ignore[misc]  # untyped here
        def load(self) -> Iterable[Any]:
            for task in draw_tasks(family, count, seed):
                system, asked = (one["content"] for one in messages_of(task))
                yield QuantCodeTask(
                    vf.TaskData(id=task.id, name=task.title, prompt=asked, system_prompt=system)
                )

    return QuantCodeTaskset(vf.TasksetConfig(id=SOURCE))


def openenv_app(family: str = "train", seed: int = 0) -> Any:
    """Return the app of an OpenEnv environment.

    ``reset`` shows the next task, and ``step`` takes the answer to it.
    """
    core: Any = require("openenv.core", "train", "an OpenEnv environment")

    class Answer(core.Action):  # type: ignore[misc]  # untyped where it is not installed
        text: str

    class AddressedQuestion(core.Observation):  # type: ignore[misc]  # untyped where it is not installed
        task: str
        messages: tuple[dict[str, str], ...] = ()
        outcome: str = ""
        reason: str = ""

    class QuantCode(core.Environment):  # type: ignore[misc]  # untyped where it is not installed
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self._number = 0
            self._state = core.State()

        def reset(
            self, seed: int | None = None, episode_id: str | None = None, **given: Any
        ) -> Any:
            number = self._number if seed is None else seed
            self._number = number + 1
            (self._task,) = draw_tasks(family, 1, start_seed, start=number)
            self._state = core.State(episode_id=episode_id, step_count=0, task=self._task.id)
            return AddressedQuestion(
                task=self._task.id, messages=tuple(messages_of(self._task)), done=False, reward=None
            )

        def step(self, action: Any, timeout_s: float | None = None, **given: Any) -> Any:
            (scored,) = _pool().batch([action.text], [self._task])
            self._state.step_count += 1
            found = {"outcome": scored.outcome, "reason": scored.reason}
            return AddressedQuestion(task=self._task.id, done=True, reward=scored.value, **found)

        @property
        def state(self) -> Any:
            return self._state

    start_seed = seed
    return core.create_fastapi_app(QuantCode, Answer, AddressedQuestion, max_concurrent_envs=64)
