"""What is made once for all end-to-end tests of a run."""

import clean_place
import pytest


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    """A folder whose bin/ has uv and pipx, and whose cache/ keeps downloads; skips without a registry, fails in CI."""
    with clean_place.in_use(tmp_path_factory):
        yield clean_place.once(tmp_path_factory, "tools", clean_place.make_tools)
