"""A small dose of the sequences; the large one is in the soak tests."""

from hypothesis import HealthCheck, example, given, settings
from undo_sequences import check, sequences


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sequences)
@example([("tool", "write", "d/c"), ("stranger", "write", "d/c"), ("undo",), ("undo",)])
@example([("tool", "write", "a"), ("undo",), ("stranger", "write", "a"), ("redo",)])
@example([("command", "write", "d/e/f"), ("stranger", "delete", "d/e/f"), ("undo",), ("redo",), ("undo",)])
@example([("tool", "write", "d/e/f"), ("command", "delete", "d/e/f"), ("restart",), ("undo",), ("undo",), ("redo",)])
def test_no_sequence_loses_a_strangers_bytes(operations):
    check(operations)
