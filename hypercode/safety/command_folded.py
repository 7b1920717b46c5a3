"""Text that a program puts together at run time: literals joined, turned round, or written in another alphabet.

Only what stands in the program text itself is looked at; nothing is run.  The answer is text for deny rules and circuit
breakers, which then see what the program would.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator

from hypercode.safety.command_unwrap import literals
from hypercode.safety.command_work import spend

__all__ = ["folded"]

_LONGEST = 8000  # characters of program text beyond which nothing is put together
_MOST = 24  # literals that are turned round or decoded
_CODE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([0-7]{3}))")
_CHARACTER = re.compile(r"\b(?:chr|String\.fromCharCode|fromCharCode|string\.char)\s*\(\s*([\d,\s]{1,400})\)")
_EXPANDED = re.compile(r"(?:\b[\w.]+\.)?(?:expanduser|expand_path)\(\s*(\"[^\"]*\"|'[^']*')\s*\)")
_HOMES = re.compile(
    r"(?:str\(\s*)?(?:pathlib\.)?Path\.home\(\)\)?|os\.environ(?:\.get\(|\[)[\"']HOME[\"'][)\]]|process\.env\.HOME\b"
    r"|os\.homedir\(\)|\bDir\.home\b|ENV\[[\"']HOME[\"']\]"
)
_PLUS = re.compile(r"[\"']\s*(?:\+|\.\.?(?=[\s\"'])|~)\s*[\"']|\"\s+\"|'\s+'")
_LIST = re.compile(r"[\[(]\s*((?:\"[^\"\\]*\"|'[^'\\]*')(?:\s*,\s*(?:\"[^\"\\]*\"|'[^'\\]*'))+)\s*,?\s*[\])]")
_TURNS = re.compile(r"\[::-1\]|revers|strrev|\brev\b")
_DECODES = re.compile(r"b64|base64|atob|unhex|fromhex|\bdecode|\bpack\b|hex2bin", re.IGNORECASE)


def folded(code: str) -> list[str]:
    """What the literals of a piece of program text may become, as program text; empty if they stay what they are."""
    if not re.search(r"[\"']", code) or len(code) > _LONGEST:
        return []
    spend(10 + len(code) // 10)
    code_ = _HOMES.sub('"~"', _EXPANDED.sub(r"\1", code))
    plain = _PLUS.sub("", _CHARACTER.sub(_characters, _CODE.sub(_character, code_)))
    found = [plain] if plain != code else []
    found += [f"'{text}'" for text in dict.fromkeys(_made(plain)) if text.isprintable() and "'" not in text]
    return found


def _made(code: str) -> Iterator[str]:
    """Texts that the program makes of its literals."""
    texts = literals(code)[:_MOST] if _TURNS.search(code) or _DECODES.search(code) else []
    if _TURNS.search(code):
        yield from (t[::-1] for t in texts if len(t) > 1)
    for text in texts if _DECODES.search(code) else ():
        for decode in (_from_base64, bytes.fromhex):
            try:
                made = decode(text).decode("utf-8")
            except ValueError:
                continue
            if made:
                yield made
    for row in _LIST.finditer(code) if "join" in code else ():
        parts = literals(row[1])
        yield from ("".join(parts), " ".join(parts))


def _from_base64(text: str) -> bytes:
    return b64decode(text, validate=True)


def _character(code: re.Match[str]) -> str:
    number = int(code[1] or code[2], 16) if code[1] or code[2] else int(code[3], 8)
    return chr(number) if 31 < number < 0xD800 and chr(number) not in "'\"\\" else " "


def _characters(call: re.Match[str]) -> str:
    numbers = [int(n[:6]) for n in re.findall(r"\d+", call[1])]
    return '"' + "".join(chr(n) for n in numbers if 31 < n < 0xD800 and chr(n) not in "'\"\\") + '"'
