"""Text as it comes in pieces: halves of surrogate pairs joined, thinking in `<think>` tags told from the answer."""

from __future__ import annotations

from hypercode.messages import well_formed

__all__ = ["SurrogateJoiner", "ThinkSplitter"]

_OPEN, _CLOSE = "<think>", "</think>"


class SurrogateJoiner:
    """Holds the first half of a pair back until the second one has come: alone, neither can be printed or sent."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """What can be used now."""
        if text.isascii() and not self._half:
            return text
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return well_formed(text)

    def close(self) -> str:
        """A half that stayed alone, as U+FFFD."""
        half, self._half = self._half, ""
        return well_formed(half)


class ThinkSplitter:
    """Takes `<think>…</think>` from the very start of an answer, as local servers send it that do not parse it.

    Tags anywhere else are text.  Where the tag is not closed by the end of the answer, the answer may be inside it:
    `close` gives it back as text.
    """

    def __init__(self) -> None:
        self.plain = False
        self._inside = False
        self._after = False
        self._held = ""
        self._thought: list[str] = []

    def feed(self, text: str) -> tuple[str, str]:
        """(thinking, text) of this piece; what might be a part of a tag is held back."""
        if self.plain:
            return "", text
        self._held += text
        if self._after:
            return "", self._begin_answer()
        if not self._inside:
            start = self._held.lstrip()
            if start.startswith(_OPEN):
                self._inside = True
                self._held = start[len(_OPEN) :]
            elif _OPEN.startswith(start):
                return "", ""
            else:
                return "", self._release()
        return self._inside_tag()

    def close(self, *, complete: bool) -> tuple[str, str]:
        """(thinking, text) left at the end of the answer; one that is not `complete` may have ended in its thinking."""
        unclosed = self._inside and not self._after
        thought, self._thought = "".join(self._thought), []
        rest = self._release()
        if not unclosed:
            return "", rest
        return rest, (thought + rest).lstrip("\n") if complete else ""

    def _inside_tag(self) -> tuple[str, str]:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._after = True
            self._held = rest
            return thought, self._begin_answer()
        keep = next((n for n in range(len(_CLOSE) - 1, 0, -1) if thought.endswith(_CLOSE[:n])), 0)
        cut = len(thought) - keep
        self._held = thought[cut:]
        self._thought.append(thought[:cut])
        return thought[:cut], ""

    def _begin_answer(self) -> str:
        """The empty lines between thinking and answer belong to neither."""
        self._held = self._held.lstrip("\n")
        return self._release() if self._held else ""

    def _release(self) -> str:
        held, self._held = self._held, ""
        self.plain = True
        return held
