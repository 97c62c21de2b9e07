"""Specs and what they expand to."""

import re

import msgspec
import numpy as np
import pytest
import runs_world as world
from hypothesis import given, strategies as st

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import canonical_json
from tradeassay_bench.api import make_spec
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.runs import AgentSpec, RunSpec, Window, expand, load_spec
from tradeassay_bench.runs.spec.run_spec import safe_name, work_sha256
from tradeassay_bench.runs.store.manifest import played_as

world.register()


def test_a_grid_is_one_spec_and_expands_in_order():
    spec = RunSpec(
        name="grid",
        benchmarks=("tiny-us-v1",),
        agents=(AgentSpec(name="random"), AgentSpec(name="reversal", params={"k": 3, "every": 2})),
        datasets={"tiny-us-v1": ("tiny-us", "synthetic/us:7")},
        seeds=(0, 4),
    )
    assert [episode.key for episode in expand(spec)] == [
        "tiny-us-v1__tiny-us__equal-weight__s0",
        "tiny-us-v1__tiny-us__random__s0",
        "tiny-us-v1__tiny-us__random__s4",
        "tiny-us-v1__tiny-us__reversal-every=2-k=3__s0",
        "tiny-us-v1__tiny-us__reversal-every=2-k=3__s4",
        "tiny-us-v1__synthetic+us=7__equal-weight__s0",
        "tiny-us-v1__synthetic+us=7__random__s0",
        "tiny-us-v1__synthetic+us=7__random__s4",
        "tiny-us-v1__synthetic+us=7__reversal-every=2-k=3__s0",
        "tiny-us-v1__synthetic+us=7__reversal-every=2-k=3__s4",
    ]
    baselines = [episode for episode in expand(spec) if episode.baseline]
    assert [(episode.label, episode.seed, episode.added) for episode in baselines] == [
        ("equal-weight", 0, True)
    ] * 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("random", ("random", {}, None)),
        ("random:k=3,label=three", ("random", {"k": 3}, "three")),
        (
            "./mine.py:Mine,files=open",
            ("file", {"path": "./mine.py", "name": "Mine", "files": "open"}, "Mine"),
        ),
    ],
)
def test_an_agent_is_written_alike_for_python_in_a_file_and_on_the_command_line(
    text, named, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def answer(self, request):\n        return None\n"
    )
    (tmp_path / "spec.toml").write_text(f'benchmarks = ["tiny-us-v1"]\nagents = ["{text}"]\n')
    (agent,) = make_spec("tiny-us-v1", agents=text).agents
    assert (agent.name, {key: agent.params[key] for key in named[1]}, agent.label) == named
    assert (
        load_spec("spec.toml").agents == make_spec("tiny-us-v1", agents=[text]).agents == (agent,)
    )


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        (["./gone.py:Mine"], "there is no file './gone.py'"),
        (["./mine.py"], "write ./mine.py:CLASS"),
        (["random:k"], "write name:key=value"),
        ([RunSpec], "@agents.register"),
        (3, "expected an agent, got 3"),
    ],
)
def test_what_names_no_agent_is_told_what_does(agents, said):
    with pytest.raises(UserError, match=re.escape(said)):
        make_spec("tiny-us-v1", agents=agents)


@pytest.mark.parametrize(
    ("benchmark", "fields", "said"),
    [
        (None, {"last": "2022-01-20"}, "no benchmark is given"),
        (5, {}, "5 in benchmarks is not a name"),
        ("quantcode-v1", {}, "tradeassay code run quantcode-v1"),
        ("tiny-us-v1", {"models": 3}, "3 in models is not a name"),
        ("tiny-us-v1", {"protocol": "mask=blinded"}, "protocol={'mask': 'blinded'}"),
        ("tiny-us-v1", {"protocol": {"mask": None}}, "'protocol[...]' is wrong"),
        ("tiny-us-v1", {"last": 2022}, "'2022' is not a date"),
        ("tiny-us-v1", {"seeds": "3"}, "'seeds[0]' is wrong"),
    ],
)
def test_a_run_that_cannot_be_described_is_refused_in_one_line(benchmark, fields, said):
    with pytest.raises(UserError, match=re.escape(said)) as refused:
        make_spec(benchmark, **fields)
    assert "\n" not in str(refused.value)


def test_numbers_and_days_of_numpy_are_numbers_and_days():
    spec = make_spec(
        "tiny-us-v1", seeds=np.arange(2), first=np.datetime64("2021-03-01"), last="2021-04-01"
    )
    assert spec.seeds == make_spec("tiny-us-v1", seeds=np.int64(2)).seeds == (0, 1)
    assert spec.window == Window(first="2021-03-01", last="2021-04-01")


def test_no_index_can_be_asked_for():
    for asked, played in (("none", None), ("hs300", "hs300"), (msgspec.UNSET, "IDX")):
        spec = world.tiny_spec(index=asked)
        episode = expand(spec)[0]
        assert played_as(benchmarks.get(episode.benchmark), episode, spec).index == played


def test_a_named_baseline_is_not_added_again():
    spec = world.tiny_spec(
        agents=(AgentSpec(name="cash"), AgentSpec(name="equal-weight", label="hold"))
    )
    cell = [episode for episode in expand(spec) if episode.benchmark == "tiny-us-v1"]
    assert [(episode.label, episode.seed, episode.baseline) for episode in cell] == [
        ("cash", 0, False),
        ("cash", 1, False),
        ("hold", 0, True),
        ("hold", 1, False),
    ]
    assert not any(episode.added for episode in cell)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "a/b"}, "name 'a/b' is not a valid folder name"),
        ({"name": ".."}, "is not a valid folder name"),
        ({"name": ""}, "is not a valid folder name"),
        ({"benchmarks": ()}, "benchmarks: no value is given"),
        ({"agents": ()}, "agents: no value is given"),
        ({"seeds": ()}, "seeds: no value is given"),
        ({"seeds": (1, 1)}, "seeds: '1' is given twice"),
        ({"seeds": (-1,)}, "a seed is negative"),
        (
            {"agents": (AgentSpec(name="cash"), AgentSpec(name="x", label="CASH"))},
            "'CASH' is given twice",
        ),
        ({"agents": (AgentSpec(name="cash", label="a b"),)}, "agent label 'a b'"),
        ({"datasets": {"other-v1": ("x",)}}, "'other-v1', which is not in the run"),
        ({"datasets": {"tiny-us-v1": ()}}, "no value is given"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, complaint):
    with pytest.raises(UserError) as caught:
        world.tiny_spec(**changes)
    assert complaint in caught.value.message
    assert caught.value.hint


def test_windows_conventions_and_labels_that_clash():
    with pytest.raises(UserError, match="before it starts"):
        Window(first="2024-02-01", last="2024-01-01")
    with pytest.raises(UserError, match="follows the convention 'corrected'"):
        expand(world.tiny_spec(convention="paper"))
    with pytest.raises(UserError, match="two episodes would have the key"):
        expand(world.tiny_spec(agents=(AgentSpec(name="cash", label="equal-weight"),)))


def test_a_runs_name_does_not_change_its_work():
    assert work_sha256(world.tiny_spec("a")) == work_sha256(world.tiny_spec("b"))
    assert work_sha256(world.tiny_spec("a")) != work_sha256(world.tiny_spec("a", seeds=(0,)))


names = st.text(alphabet="abcXYZ019.-", min_size=1, max_size=12).filter(
    lambda text: text[0].isalnum()
)
values = st.one_of(st.integers(-5, 5), st.floats(-2, 2, allow_nan=False), st.booleans(), names)
agent_specs = st.builds(AgentSpec, name=names, params=st.dictionaries(names, values, max_size=3))
specs = st.builds(
    RunSpec,
    name=st.just("x"),
    benchmarks=st.just(("tiny-us-v1", "tiny-ashare-v1")),
    agents=st.lists(
        agent_specs, min_size=1, max_size=4, unique_by=lambda agent: agent.title.casefold()
    ).map(tuple),
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True).map(tuple),
    datasets=st.dictionaries(
        st.just("tiny-us-v1"),
        st.lists(names, min_size=1, max_size=3, unique_by=str.casefold).map(tuple),
        max_size=1,
    ),
)


@given(specs)
def test_keys_are_unique_name_folders_and_do_not_move(spec):
    episodes = expand(spec)
    keys = [episode.key for episode in episodes]
    assert len({key.casefold() for key in keys}) == len(keys)
    assert all(
        "/" not in key and not key.startswith(".") and len(key.encode()) < 255 for key in keys
    )
    for cell in {episode.setting for episode in episodes}:
        assert sum(episode.baseline for episode in episodes if episode.setting == cell) == 1
    alone = msgspec.structs.replace(spec, agents=spec.agents[-1:], seeds=spec.seeds[-1:])
    assert {episode.key for episode in expand(alone) if not episode.added} <= set(keys)
    again = msgspec.json.decode(canonical_json(spec), type=RunSpec)
    assert again == spec
    assert canonical_json(again) == canonical_json(spec)


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=200))
def test_safe_names_do_not_collide(one, other):
    assert (safe_name(one) == safe_name(other)) == (one == other)


GRID = """
benchmarks = ["daily-us-v1", "daily-ashare-v1"]
agents = ["equal-weight", { name = "momentum-12-1", params = { k = 10 }, label = "mom10" }]
seeds = [0, 1, 2]
datasets = ["a", "b"]
window = { first = "2024-02-01", last = "2024-06-28" }
[bootstrap]
draws = 200
"""


def write(folder, text, name):
    (folder / name).write_text(text)
    return folder / name


def test_a_grid_in_toml_and_in_json_under_another_name(tmp_path):
    spec = load_spec(write(tmp_path, GRID, "my-grid.toml"))
    assert spec.name == "my-grid"
    assert spec.agents == (
        AgentSpec(name="equal-weight"),
        AgentSpec(name="momentum-12-1", params={"k": 10}, label="mom10"),
    )
    assert spec.datasets == {"daily-us-v1": ("a", "b"), "daily-ashare-v1": ("a", "b")}
    assert spec.window == Window(first="2024-02-01", last="2024-06-28")
    assert spec.bootstrap.draws == 200
    text = (
        '{"benchmarks": "daily-us-v1", "agents": "cash", "datasets": {"daily-us-v1": "x"}, '
        '"name": "s"}'
    )
    spec = load_spec(write(tmp_path, text, "a.json"), name="other")
    assert (spec.name, spec.benchmarks, spec.agents[0].name) == ("other", ("daily-us-v1",), "cash")
    assert spec.datasets == {"daily-us-v1": ("x",)}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("benchmark = ['a']", "unknown key 'benchmark'", "did you mean benchmarks?"),
        ("benchmarks = ['a']", "'agents' is missing", "add agents"),
        (
            "benchmarks = ['a']\nagents = [{ nam = 'x' }]",
            "unknown key 'agents[0].nam'",
            "did you mean name?",
        ),
        (
            "benchmarks = ['a']\nagents = [{ label = 'x' }]",
            "'agents[0].name' is missing",
            "add name",
        ),
        (
            "benchmarks = ['a']\nagents = ['x']\nseeds = ['1']",
            "'seeds[0]' is wrong",
            "expected 'int'",
        ),
        (
            "benchmarks = ['a']\nagents = ['x']\nconvention = 'mine'",
            "'convention' is wrong",
            "invalid enum value",
        ),
        (
            "benchmarks = ['a']\nagents = ['x']\nwindow.first = '2024-01-01'",
            "'window.last' is missing",
            "add",
        ),
        (
            "benchmarks = ['a']\nagents = ['x']\nbootstrap.drws = 3",
            "'bootstrap.drws'",
            "did you mean draws?",
        ),
        (
            "benchmarks = ['a']\nagents = ['x']\nbootstrap = { draws = 0 }",
            "0 bootstrap draws",
            "give 1 to",
        ),
        ("benchmarks = ['a', 'a']\nagents = ['x']", "'a' is given twice", "remove"),
        ("benchmarks = [", "is not valid TOML", "correct the line"),
        ("[1]", "is not a table", "start with"),
    ],
)
def test_a_mistake_is_named_with_its_key(tmp_path, text, message, hint):
    path = write(tmp_path, text, "a.json" if text == "[1]" else "a.toml")
    with pytest.raises(UserError) as caught:
        load_spec(path)
    assert str(path) in caught.value.message
    assert message in caught.value.message
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    "given",
    [
        {"window": "W4"},
        {"window": {"first": "2024-01-02"}},
        {"windows": "W4"},
        {"agents": ("cash",)},
        {"seeds": 3},
        {"datasets": {"tiny-us-v1": "tiny-us"}},
        {"protocol": {"mask": {}}},
        {"bootstrap": 200},
        {"name": 5},
        {"convention": "papr"},
    ],
)
def test_a_value_of_another_kind_is_refused_in_one_line(given):
    with pytest.raises(UserError, match=f"^{next(iter(given))} cannot be ") as caught:
        world.tiny_spec(**given)
    assert caught.value.hint and "\n" not in str(caught.value)


def test_a_spec_made_of_plain_values_is_the_one_that_a_file_would_give():
    window = {"first": "2024-01-02", "last": "2024-02-01"}
    plain = world.tiny_spec(window=window, seeds=[0, 1], agents=[{"name": "cash"}])
    typed = world.tiny_spec(window=Window(**window), seeds=(0, 1), agents=(AgentSpec(name="cash"),))
    assert plain == typed and work_sha256(plain) == work_sha256(typed)
