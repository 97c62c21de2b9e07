"""Fixtures: a data home with tiny markets, and one finished run over them."""

import pytest
import runs_world as world

from tradeassay_bench.runs import AgentSpec, run


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    world.write_world(folder)
    return folder


@pytest.fixture(scope="session")
def finished(home, tmp_path_factory):
    """One uninterrupted run in this process. Tests must not change it: copy it first."""
    return run(
        world.tiny_spec(),
        tmp_path_factory.mktemp("finished") / "tiny",
        executor="inline",
        home=home,
    )


@pytest.fixture
def play(home, tmp_path):
    """Play agents, given by name or as they are specified, on the tiny US market under one seed."""

    def given(*agents, folder="r", how=("inline", None), progress="none", **changes):
        named = tuple(AgentSpec(name=one) if isinstance(one, str) else one for one in agents)
        fields = {"agents": named, "benchmarks": ("tiny-us-v1",), "seeds": (0,), **changes}
        executor, workers = how
        spec = world.tiny_spec(**fields)
        return run(
            spec,
            tmp_path / folder,
            executor=executor,
            workers=workers,
            home=home,
            progress=progress,
        )

    return given
