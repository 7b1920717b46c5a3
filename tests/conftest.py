"""The stage of the end-to-end tests, for all of them: a workspace, a home and a scripted server."""

import pytest
from stage import Stage


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
