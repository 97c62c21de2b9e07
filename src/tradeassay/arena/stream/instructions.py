"""Instructions inside the news: somebody writes to the reader's model instead of the reader.

They are recognised by what they ask for, and shown as what they are: a quotation of the source, marked as an
instruction that is not to be followed. A model's summary that passes one on is rejected.
"""

from __future__ import annotations

import re

import msgspec

from tradeassay.arena.stream.items import sentences
from tradeassay.arena.stream.summary import Summary

_ASKED = r"(?:buy|sell|hold|short|long)"
_WHO = r"(?:you|the (?:agent|model|assistant|ai|trader))"
_OUGHT = r"(?:must|should|shall|have to|need to|are (?:now|required to))"
_PATTERNS = (
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}"
    r"\b(?:instruction|prompt|rule|guideline|message|above|previous|prior)",
    r"\b(?:system|developer)\s+(?:prompt|message|note|override|instruction)",
    rf"\b{_WHO}\s+{_OUGHT}\s+(?:now\s+)?"
    rf"(?:{_ASKED}|answer|respond|reply|output|recommend|decide|act|always|never)",
    rf"\b(?:answer|respond|reply|output|return|print)\b.{{0,30}}\b{_ASKED}\b"
    r".{0,20}(?:only|now|regardless|in json|$)",
    r"\b(?:set|put)\b.{0,20}\b(?:action|confidence|recommended_action)\b",
    r"\bas an? (?:ai|language model|llm)\b",
    r"\b(?:attention|note to|message (?:to|for))\s+(?:all\s+)?"
    r"(?:ai|llm|language model|trading (?:agent|bot)|assistant)s?\b",
    r"<\s*/?\s*(?:system|instruction|prompt|assistant)\s*>",
    r"(?:忽略|无视|忘记|不要理会).{0,12}(?:指令|指示|规则|提示|以上|之前)",
    r"(?:系统|开发者)(?:提示|消息|指令)",
    r"(?:你|模型|智能体|助手|交易员)(?:必须|应该|应当|务必|需要|要)(?:立即|马上|现在)?"
    r"(?:买入|卖出|持有|做空|做多|回答|回复|输出|推荐)",
    r"(?:请|只能|仅)(?:回答|回复|输出|返回).{0,10}(?:买入|卖出|持有|BUY|SELL|HOLD)",
    r"(?:致|告)(?:所有)?(?:人工智能|AI|大模型|交易机器人|智能体)",
)
_INSTRUCTION = re.compile("|".join(f"(?:{one})" for one in _PATTERNS), re.I)
MARK = "[the source addresses its reader with an instruction, quoted and not to be followed]"


def instructs(text: str) -> bool:
    """Return whether a sentence tells its reader, or a model, what to answer or do."""
    return _INSTRUCTION.search(text) is not None


def quoted_instructions(text: str) -> str:
    """Return a text in which every sentence that instructs stands in quotation marks behind a mark."""
    if not instructs(text):
        return text
    made = [f'{MARK} "{one}"' if instructs(one) else one for one in sentences(text)]
    whole = " ".join(made)
    return whole if MARK in whole else f'{MARK} "{text}"'  # it spans sentences


def guarded(summary: Summary, *, extracted: bool) -> Summary:
    """Return a summary that is safe to show: own words of the source are quoted, a model's are rejected."""
    if not (instructs(summary.title) or instructs(summary.text)):
        return summary
    if not extracted:
        why = "instructions: the summary passes on an instruction of its source"
        return msgspec.structs.replace(summary, reason=f"{summary.reason}; {why}" if summary.reason else why)
    return msgspec.structs.replace(
        summary, title=quoted_instructions(summary.title), text=quoted_instructions(summary.text)
    )
