"""Foreign text made harmless for a terminal.

Everything that was not written by this program (model text, tool output, commands, paths, error texts) passes through
here before anything else looks at it. What a character does to a terminal is decided by the character alone: since no ESC and
no C1 control is ever let through, titles, clipboard writes, links, mode switches and reports need no rule of their own.

Where a person decides on the text (`approval`, `diff`, `filename`) nothing is dropped: what cannot be seen, or looks like
something else, is replaced by its name, one mark per character.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

__all__ = ["Cleaner", "Context", "clean", "keep_sgr", "strip_sgr"]

Context = Literal["text", "tool_output", "approval", "diff", "filename"]
"""Where the text will be shown.

`text`: replies, reasoning, error texts. `tool_output`: the same, and colour codes vanish instead of being shown.
`approval`: a command or argument a person is asked about. `diff`: a change a person is asked about.
`filename`: a path, a tool's name, a title: any label that has to stay on one line.
"""

_ESC, _DEL, _BAD = "␛", "␡", "\ufffd"

# Carriage returns and surrogates are in the class because they need more than a look-up.
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_SHOWN: tuple[tuple[str, str], ...] = (
    ("\x1b\x90\x98\x9b\x9d\x9e\x9f", _ESC),
    ("\x7f", _DEL),
    ("\r\u2028\u2029", "\n"),
    ("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", _BAD),
    ("\t", "\t"),
    ("\n", "\n"),
)
_GONE = (range(0x20), range(0x80, 0xA0), range(0x2060, 0x2070), range(0xFFF9, 0xFFFC), range(0xE0000, 0xE0080))
_TEXT: dict[int, str] = (
    dict.fromkeys((c for part in _GONE for c in part), "")
    | dict.fromkeys((0xAD, 0x180E, 0x200B, 0xFEFF), "")
    | dict.fromkeys(range(0xD800, 0xE000), _BAD)
    | {ord(c): shown for chars, shown in _SHOWN for c in chars}
)

# Colours, erase-to-end (grep sends both) and `tput sgr0`. The length is limited so that a stream need not hold back more.
_STYLING = re.compile(r"\x1b(?:\[[0-9;:]{0,32}[mK]|\(B)")
_STYLING_OPEN = re.compile(r"\x1b(?:\[[0-9;:]{0,32}|\()?\Z")

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

# Letters that most fonts draw like an ASCII letter. They are named where the word has an ASCII letter too, or nothing else.
_TWINS = frozenset(
    "асеорхуѕіјһӏԁԛԝѵАВЕЅІЈКМНОРСТХУӀԌԚԜ" + "ονΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "օսհցոԼՏՕ" + "ᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ" + "ɡɑɩ"
)
_WORD = re.compile(r"\w+")
# Marks that look like ASCII punctuation a shell or an address gives a meaning to.
_FALSE_MARKS = frozenset("⁄∕⧸∶꞉∣ǀ∖⧵∗ǃ‚٭﹨")
# Ordinary punctuation of East Asian prose: only suspect right beside ASCII. A dash: only where an option would begin.
_PROSE = re.compile(
    "(?<=[0-9A-Za-z])[！（），：；？。｡]|[！（），：；？。｡](?=[0-9A-Za-z])|(?<!\\S)[‐‑‒–—−](?=[A-Za-z-])"
)
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_PROSE_MARKS = frozenset("！（），：；？。｡")

_SGR = re.compile(r"\x1b\[[0-9;]*m")
_NOT_SGR = re.compile(r"[\x00-\x08\x0a-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[0-9;]*m)")


def clean(text: str, context: Context = "text") -> str:
    """Returns `text` with nothing in it that a terminal would obey, or that would deceive the reader.

    The result has no C0 control but LF and TAB, no DEL, no C1 control, no lone surrogate; in the contexts a person decides
    on also no bidi control, zero-width or tag character. Cleaning twice changes nothing.
    """
    if context == "text":
        return _lines(text).translate(_TEXT) if _ODD.search(text) else text
    if context == "tool_output":
        return _STYLING.sub("", _lines(text)).translate(_TEXT) if _ODD.search(text) else text
    return _named(text, context)


class Cleaner:
    """`clean` for a text that arrives in pieces: what `feed` and `close` return adds up to `clean` of the whole.

    A piece whose meaning depends on the next one (a final CR, half a surrogate pair, half a colour code, a word a person
    will have to judge) is held back until that is here.
    """

    def __init__(self, context: Context = "text") -> None:
        self.context: Context = context
        self._held = ""

    def feed(self, delta: str) -> str:
        """Returns what can be shown by now."""
        if not self._held and self.context == "text" and not _ODD.search(delta):
            return delta
        text = self._held + delta
        cut = self._boundary(text)
        self._held = text[cut:]
        return clean(text[:cut], self.context)

    def close(self) -> str:
        """Returns the rest. The cleaner can be used for another stream then."""
        text, self._held = self._held, ""
        return clean(text, self.context)

    def _boundary(self, text: str) -> int:
        if self.context == "filename":
            return 0
        if self.context in ("approval", "diff"):
            return max(text.rfind(c) for c in " \n\t") + 1
        if text and (text[-1] == "\r" or "\ud800" <= text[-1] <= "\udbff"):
            return len(text) - 1
        if self.context == "tool_output" and (found := _STYLING_OPEN.search(text, max(0, len(text) - 40))):
            return found.start()
        return len(text)


def keep_sgr(line: str) -> str:
    """Returns one line of our own making with its colours, and nothing else a terminal would obey."""
    if not _NOT_SGR.search(line):
        return line
    return _NOT_SGR.sub(lambda m: _TEXT[ord(m[0])] if m[0] in "\x1b\x7f" else "", line)


def strip_sgr(line: str) -> str:
    """Returns the line without its colours."""
    return _SGR.sub("", line) if "\x1b" in line else line


def _lines(text: str) -> str:
    return _joined(text.replace("\r\n", "\n"))


def _joined(text: str) -> str:
    """Surrogate pairs, which two JSON strings can deliver half each, become the character they stand for."""
    return _PAIR.sub(lambda m: m[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def _named(text: str, context: Context) -> str:
    if context == "filename":
        text = text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
    if text.isascii():
        return _HIDDEN.sub(_mark, text)
    text = _HIDDEN.sub(_mark, _joined(text))
    text = _WORD.sub(_mark_twins, text)
    return text if context == "diff" else _NOT_ASCII.sub(_mark_false, _PROSE.sub(_mark, text))


def _mark(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return _DEL if code == 0x7F else f"⟨U+{code:04X}⟩"


def _mark_twins(found: re.Match[str]) -> str:
    word = found[0]
    if word.isascii() or _TWINS.isdisjoint(word):
        return word
    letters = [c for c in word if c.isalpha()]
    if not any(c.isascii() for c in letters) and not all(c in _TWINS for c in letters):
        return word  # an ordinary word of another script
    return "".join(f"⟨U+{ord(c):04X}⟩" if c in _TWINS else c for c in word)


def _mark_false(found: re.Match[str]) -> str:
    c = found[0]
    if c in _PROSE_MARKS:
        return c
    same = unicodedata.normalize("NFKC", c)
    false = c in _FALSE_MARKS or (same.isascii() and (len(same) == 1 or same.isalnum()))
    return f"⟨U+{ord(c):04X}⟩" if false else c
