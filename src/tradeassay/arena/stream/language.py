"""Which language is it? English, Chinese, or neither: scripts first, then small words. No model, no table."""

from __future__ import annotations

import re
from functools import lru_cache

from tradeassay.arena.stream.items import Language

_HAN = re.compile(r"[\u3400-\u9fff]")
_KANA_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_WORD = re.compile(r"[a-zA-ZÀ-ɏ']+")
_OTHER_LETTER = re.compile(r"[^\W\d_a-zA-ZÀ-ɏ\u3400-\u9fff]")
_SMALL = {
    "en": "the of and to in a is that for on it with as was by at from are be has its will said an or this which "
    "not were have after above below than quarter year company shares over",
    "de": "der die das und ist nicht mit von ein eine im den dem auf für des sich auch wird wurde nach bei um",
    "fr": "le la les des et est une un du dans pour que sur au avec par ses aux cette après plus été",
    "es": "el la los las de y es una un en que por con para del se su al más tras ha como",
    "pt": "o os as de e um uma que em para com não por da do na no ao foi mais seu após",
    "it": "il lo gli di e un una che per con del della nel alla è sono stato dopo più sul",
    "nl": "de het een en van is dat niet op met voor zijn door aan bij naar wordt werd",
}
_WORDS = {name: frozenset(words.split()) for name, words in _SMALL.items()}


@lru_cache(maxsize=4096)
def detect(text: str) -> Language:
    """Return ``en``, ``zh`` or ``other``. A name or two in the other script does not change a text's language."""
    han, kana = len(_HAN.findall(text)), len(_KANA_HANGUL.findall(text))
    words = _WORD.findall(text.lower())
    strange = len(_OTHER_LETTER.findall(text)) - kana
    if kana > 0.1 * (han + kana):
        return "other"
    # A Chinese character says about as much as half an English word.
    if han / 2 > len(words) and han > strange:
        return "zh"
    if strange > sum(map(len, words)) or not words:
        return "zh" if han else "other"
    counts = {name: sum(word in known for word in words) for name, known in _WORDS.items()}
    foreign = max(count for name, count in counts.items() if name != "en")
    # Languages share small words ("met", "in", "die"): one more of them decides nothing.
    if foreign >= counts["en"] + 2:
        return "other"
    return "en" if counts["en"] or all(word.isascii() for word in words) else "other"
