"""The bus: order, isolation, queues; events as JSON."""

import asyncio

from hypercode import events
from hypercode.events import Bus, Notice, TextDelta, TurnStart, to_dict


def test_listeners_are_called_in_order_and_can_leave():
    bus, seen = Bus(), []
    off = bus.on(TextDelta, lambda e: seen.append(("text", e.text)))
    bus.on(None, lambda e: seen.append(("any", type(e).__name__)))
    bus.emit(TextDelta("a"))
    bus.emit(TurnStart(1))
    off()
    off()
    bus.emit(TextDelta("b"))
    assert seen == [("text", "a"), ("any", "TextDelta"), ("any", "TurnStart"), ("any", "TextDelta")]


def test_a_broken_listener_is_named_once_and_the_others_go_on(caplog):
    bus, seen = Bus(), []

    def shaky(event):
        raise ValueError("oops")

    bus.on(None, shaky)
    bus.on(None, seen.append)
    for _ in range(3):
        bus.emit(TextDelta("x"))
    assert [e for e in seen if isinstance(e, TextDelta)] == [TextDelta("x")] * 3
    notices = [e for e in seen if isinstance(e, Notice)]
    assert len(notices) == 1
    assert "shaky" in notices[0].text
    assert caplog.records[0].exc_info[0] is ValueError


async def test_a_slow_listener_has_a_queue_of_its_own():
    bus, seen = Bus(), []

    async def slow(event):
        await asyncio.sleep(0)
        seen.append(event.text)

    bus.on(TextDelta, slow, queued=True)
    for i in range(5):
        bus.emit(TextDelta(str(i)))
    assert seen == []
    await bus.drain()
    assert seen == list("01234")
    await bus.aclose()


async def test_an_overflowing_queue_is_announced_once(monkeypatch):
    monkeypatch.setattr(events, "_QUEUE_LIMIT", 3)
    bus, seen, notices = Bus(), [], []
    bus.on(Notice, notices.append)
    bus.on(TextDelta, lambda e: seen.append(e.text), queued=True)
    for i in range(6):
        bus.emit(TextDelta(str(i)))
    await bus.aclose()
    assert seen == ["0", "1", "2"]
    assert len(notices) == 1


async def test_a_broken_queued_listener_is_isolated():
    bus, notices = Bus(), []
    bus.on(Notice, notices.append)

    async def shaky(event):
        raise ValueError

    bus.on(TextDelta, shaky, queued=True)
    bus.emit(TextDelta("a"))
    bus.emit(TextDelta("b"))
    await bus.aclose()
    assert len(notices) == 1


def test_events_as_json_objects():
    assert to_dict(events.ToolCallStart(0, "read")) == {"type": "tool_call_start", "index": 0, "name": "read"}
    assert list(to_dict(events.TurnEnd(1, "complete", "stop", None, None, 0.1, 0.2, None))) == [
        *["type", "turn", "outcome", "finish_reason", "usage", "cost", "ttft", "seconds", "error"]
    ]
