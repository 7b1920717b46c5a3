"""What is measured in hours is not taken for a test that hangs."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(0))
