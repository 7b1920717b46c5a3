"""A workspace around which there is a real box, and commands in it, for the tests that have none of their own."""

import pytest
from box_help import runner, workspace


@pytest.fixture
def policy():
    with workspace() as made:
        yield made


@pytest.fixture
def ws(policy):
    return policy.workspace


@pytest.fixture
def run(policy):
    return runner(policy)
