"""The stage of the end-to-end tests, for all of them: a workspace, a home and a scripted server."""

import os

import pytest
from stage import Stage

for name in [n for n in os.environ if n.startswith(("HYPERCODE_", "OPENROUTER_", "OPENAI_"))]:
    del os.environ[name]  # the keys and settings of whoever runs the tests are none of theirs


@pytest.fixture
def stage(tmp_path):
    """Make a stage with these answers; its server stops with the test."""
    made = []

    def make(*answers):
        made.append(Stage(tmp_path, answers))
        made[-1].server.__enter__()
        return made[-1]

    yield make
    for one in made:
        one.server.stop()
