"""Arguments, finish reasons, text, reasoning and usage as servers really send them."""

import json
from typing import Any

from tests.graph_agent.model.shapes import Shape, call, piece

__all__ = ["ARGUMENTS", "ENDINGS", "TEXTS"]

_A = call("read_file", path="a")
_LS = call("ls")
_ARGS = '{"path":"a"}'


def _one(arguments: Any, name: str = "read_file") -> tuple[Any, ...]:
    return (piece(0, "c1", name, arguments),)


def _end(reason: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **more}


ARGUMENTS = (
    Shape("none at all", _one(None, "ls"), (_LS,)),
    Shape("an empty text", _one("", "ls"), (_LS,)),
    Shape("blanks", _one(" \n", "ls"), (_LS,)),
    Shape("null as text", _one("null", "ls"), (_LS,)),
    Shape("an object", _one({"path": "a"}), (_A,)),
    Shape("encode_json twice", _one(json.dumps(_ARGS)), (_A,)),
    Shape("encode_json three times", _one(json.dumps(json.dumps(_ARGS))), (_A,)),
    Shape(
        "encode_json four times",
        _one(json.dumps(json.dumps(json.dumps(_ARGS)))),
        (call("read_file"),),
        complaints={"0": "a string within strings"},
    ),
    Shape("an empty object first", (piece(0, "c1", "read_file", "{}"), piece(0, None, None, _ARGS)), (_A,)),
    Shape("the whole twice", _one(_ARGS + _ARGS), (_A,)),
    Shape("in a fence", _one(f"```json\n{_ARGS}\n```"), (_A,)),
    Shape("a newline within a text", _one('{"path":"a\nb"}'), (call("read_file", path="a\nb"),)),
    Shape("blanks around", _one(f"\n {_ARGS} \n"), (_A,)),
    Shape("an end token after it", _one(f"{_ARGS}<|im_end|>"), (_A,)),
    Shape("a closing tag after it", _one(f"{_ARGS}\n</tool_call>"), (_A,)),
    Shape("a brace too many", _one(_ARGS + "}"), (call("read_file"),), complaints={"0": "not valid JSON"}),
    Shape("a brace too few", _one(_ARGS[:-1]), (call("read_file"),), complaints={"0": "not valid JSON"}),
    Shape("cut within a text", _one('{"path":"a'), (call("read_file"),), complaints={"0": "not valid JSON"}),
    Shape(
        "two that differ", _one(_ARGS + '{"path":"b"}'), (call("read_file"),), complaints={"0": "not valid JSON"}
    ),
    Shape("words after it", _one(_ARGS + " and then"), (call("read_file"),), complaints={"0": "not valid JSON"}),
    Shape("single quotes", _one("{'path':'a'}"), (call("read_file"),), complaints={"0": "not valid JSON"}),
    Shape("a list", _one("[1]"), (call("read_file"),), complaints={"0": "a list"}),
    Shape("a list as it is", _one(["a"]), (call("read_file"),), complaints={"0": "a list"}),
    Shape("a number", _one(7), (call("read_file"),), complaints={"0": "a number"}),
    Shape("not a number", _one('{"path":NaN}'), (call("read_file"),), complaints={"0": "NaN is not JSON"}),
    Shape("a lone surrogate", _one('{"path":"\\ud800"}'), (call("read_file", path="\ufffd"),)),
)

ENDINGS = (
    Shape("stop beside a call", _one("{}", "ls"), (_LS,), finish="stop"),
    Shape("function_call", _one("{}", "ls"), (_LS,), finish="function_call"),
    Shape("eos", ({"content": "hi"},), text="hi", finish="eos"),
    Shape("end_turn", ({"content": "hi"},), text="hi", finish="end_turn"),
    Shape("tool_use", _one("{}", "ls"), (_LS,), finish="tool_use"),
    Shape("STOP in capitals", _one("{}", "ls"), (_LS,), finish="STOP"),
    Shape("tool_calls without calls is the text", ({"content": "hi"},), text="hi"),
    Shape("tool_calls with neither", ({"content": ""},), fails="EmptyReply"),
    Shape("no reason, [DONE] at the end", _one("{}", "ls"), (_LS,), finish=None),
    Shape("a reason, no [DONE]", _one("{}", "ls"), (_LS,), done=False),
    Shape("neither", _one("{}", "ls"), finish=None, done=False, fails="BrokenReply"),
    Shape("an empty reason is none", ({"content": "hi"}, _end("")), finish=None, done=False, fails="BrokenReply"),
    Shape("length", _one("{}", "ls"), (_LS,), finish="length", complaints={"0": "output limit"}),
    Shape("LENGTH in capitals", _one("{}", "ls"), (_LS,), finish="LENGTH", complaints={"0": "output limit"}),
    Shape("MAX_TOKENS", _one("{}", "ls"), (_LS,), finish="MAX_TOKENS", complaints={"0": "output limit"}),
    Shape("model_length", _one("{}", "ls"), (_LS,), finish="model_length", complaints={"0": "output limit"}),
    Shape("content_filter", _one("{}", "ls"), (_LS,), finish="content_filter", complaints={"0": "content filter"}),
    Shape("error", _one("{}", "ls"), finish="error", fails="BrokenReply"),
    Shape("abort", _one("{}", "ls"), finish="abort", fails="BrokenReply"),
    Shape(
        "insufficient_system_resource",
        ({"content": "ha"},),
        finish="insufficient_system_resource",
        fails="BrokenReply",
    ),
    Shape(
        "the reason together with the last fragment",
        (*_one("{}", "ls"), _end("tool_calls")),
        (_LS,),
        finish=None,
        done=False,
    ),
    Shape("an error object", ({"content": "ha"}, {"error": {"message": "overloaded"}}), fails="ServerError"),
    Shape("an error beside empty choices", ({"choices": [], "error": {"message": "x"}},), fails="ServerError"),
    Shape("an error as text", ({"error": "overloaded"},), fails="ServerError"),
    Shape(
        "vllm: an error object without a field",
        ('{"object":"error","message":"oom","code":500}',),
        finish=None,
        fails="ServerError",
    ),
    Shape(
        "openrouter: an error within the choice",
        (
            {
                "choices": [
                    {"delta": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "x"}}
                ]
            },
        ),
        finish=None,
        fails="ServerError",
    ),
    Shape("not JSON", ({"content": "ha"}, "{cut"), fails="BrokenReply"),
    Shape(
        "a legacy call",
        ({"function_call": {"name": "ls", "arguments": ""}}, {"function_call": {"arguments": "{}"}}),
        (_LS,),
        finish="function_call",
    ),
    Shape(
        "azure: filter results first",
        ({"choices": [], "prompt_filter_results": []}, {"content": "hi"}),
        text="hi",
        finish="stop",
    ),
    Shape(
        "an error behind the end",
        ({"content": "hi"}, _end("stop"), "[DONE]", '{"error":"late"}'),
        text="hi",
        finish=None,
    ),
    Shape("more behind the end", ({"content": "hi"}, _end("stop"), "[DONE]", "<html>"), text="hi", finish=None),
    Shape("the end in small letters", ({"content": "hi"}, "[done]"), text="hi", finish=None, done=False),
    Shape("null to keep alive", ("null", {"content": "hi"}, "null"), text="hi", finish="stop"),
    Shape("a chunk in a list", ('[{"choices":[{"delta":{"content":"hi"}}]}]',), text="hi", finish="stop"),
    Shape("a list of none", ({"content": "hi"}, "[]"), finish="stop", fails="BrokenReply"),
    Shape(
        "a second choice is not the reply",
        (
            {"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]},
            {"choices": [{"index": 1, "delta": {"content": "c"}}]},
        ),
        text="a",
        finish="stop",
    ),
)

TEXTS = (
    Shape("content null", ({"role": "assistant", "content": None}, {"content": "hi"}), text="hi", finish="stop"),
    Shape("content in parts", ({"content": [{"type": "text", "text": "hi"}]},), text="hi", finish="stop"),
    Shape(
        "mistral: thinking in parts",
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}, {"content": "hi"}),
        text="hi",
        finish="stop",
        reasoning="hm",
    ),
    Shape("parts as plain texts", ({"content": ["h", "i"]},), text="hi", finish="stop"),
    Shape(
        "deepseek: reasoning_content",
        ({"reasoning_content": "hm", "content": None}, {"content": "hi"}),
        text="hi",
        finish="stop",
        reasoning="hm",
    ),
    Shape(
        "openrouter: reasoning beside its details",
        ({"reasoning": "hm", "reasoning_details": [{"text": "hm"}]}, {"content": "hi"}),
        text="hi",
        finish="stop",
        reasoning="hm",
    ),
    Shape(
        "both names for the same reasoning",
        ({"reasoning": "hm", "reasoning_content": "hm"}, {"content": "hi"}),
        text="hi",
        finish="stop",
        reasoning="hm",
    ),
    Shape(
        "litellm: thinking blocks",
        ({"reasoning_content": "hm", "thinking_blocks": [{"thinking": "hm"}]}, {"content": "hi"}),
        text="hi",
        finish="stop",
        reasoning="hm",
    ),
    Shape("thinking tags", ({"content": "<think>hm</think>hi"},), text="hi", finish="stop", reasoning="hm"),
    Shape(
        "thinking tags in pieces",
        ({"content": "<thi"}, {"content": "nk>hm</th"}, {"content": "ink>\n\nhi"}),
        text="hi",
        finish="stop",
        reasoning="hm",
    ),
    Shape(
        "thinking in other words",
        ({"content": "<thinking>hm</thinking>hi"},),
        text="hi",
        finish="stop",
        reasoning="hm",
    ),
    Shape("thought tags", ({"content": "<thought>hm</thought>hi"},), text="hi", finish="stop", reasoning="hm"),
    Shape(
        "thinking tags before a call", ({"content": "<think>hm</think>"}, *_one("{}", "ls")), (_LS,), reasoning="hm"
    ),
    Shape(
        "only the end of thinking, its beginning was in the prompt",
        ({"content": "hm\n</thi"}, {"content": "nk>\n\nhi"}),
        text="hi",
        finish="stop",
    ),
    Shape("nothing but thinking", ({"content": "<think>hm</think>"},), finish="stop", fails="EmptyReply"),
    Shape(
        "thinking twice",
        ({"content": "<think>a</think>\n<think>b</think>hi"},),
        text="hi",
        finish="stop",
        reasoning="ab",
    ),
    Shape("content as one part", ({"content": {"type": "text", "text": "hi"}},), text="hi", finish="stop"),
    Shape(
        "a part of another name for thinking",
        ({"content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "hi"}]},),
        text="hi",
        finish="stop",
        reasoning="hm",
    ),
    Shape(
        "openrouter: details of the reasoning alone",
        ({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, {"content": "hi"}),
        text="hi",
        finish="stop",
        reasoning="hm",
    ),
    Shape(
        "the whole message behind its text",
        (
            {"content": "<think>hm</think>h"},
            {"content": "i"},
            {"choices": [{"message": {"content": "<think>hm</think>hi"}}]},
        ),
        text="hi",
        finish="stop",
        reasoning="hm",
    ),
    Shape("text and a call", ({"content": "look"}, *_one("{}", "ls")), (_LS,), text="look"),
    Shape("text after a call", (*_one("{}", "ls"), {"content": "look"}), (_LS,), text="look"),
    Shape(
        "usage in every chunk",
        ({"choices": [{"delta": {"content": "h"}}], "usage": {"prompt_tokens": 1}}, {"content": "i"}),
        text="hi",
        finish="stop",
    ),
    Shape("choices null", ({"choices": None, "usage": None}, {"content": "hi"}), text="hi", finish="stop"),
    Shape(
        "a whole reply",
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "function": {"name": "ls", "arguments": "{}"}}],
            },
        ),
        (_LS,),
        whole=True,
    ),
    Shape(
        "a whole reply with equal calls without ids",
        ({"tool_calls": [{"function": {"name": "ls", "arguments": {}}}] * 2},),
        (_LS, _LS),
        whole=True,
    ),
    Shape(
        "a whole reply with reasoning",
        ({"content": "hi", "reasoning_content": "hm"},),
        text="hi",
        reasoning="hm",
        whole=True,
    ),
)
