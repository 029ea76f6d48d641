"""Replies as servers really send them, and what each comes to. Tables only: every shape has a name and a reason."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.openai_replies import RAW, SSE, Reply

__all__ = ["ARGUMENTS", "ENDINGS", "FRAGMENTS", "OFFERED", "TEXTS", "Shape", "as_sent"]

OFFERED = ("read_file", "bash", "ls")
"""Names of the tools that every request of these tables offers."""


@dataclass(frozen=True)
class Shape:
    """One reply and what is to become of it."""

    name: str
    chunks: tuple[Any, ...]
    """Each a `choices[0].delta`; with `choices` or `error` in it a chunk as it stands; a text is a raw payload."""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Name and arguments of the calls that are run."""
    text: str = ""
    finish: str | None = "tool_calls"
    """Reason in a last chunk of its own; None sends none."""
    ids: tuple[str | None, ...] | None = None
    """Ids of the calls; None compares none."""
    complaints: dict[str, str] = field(default_factory=dict)
    """What the model is shown about unusable arguments, by position: a part of the sentence."""
    reasoning: str = ""
    done: bool = True
    """Whether [DONE] ends the stream."""
    fails: str = ""
    """Name of the exception where nothing of the reply is taken."""
    whole: bool = False
    """The chunks are `message` objects of a reply that is not streamed."""


def as_sent(shape: Shape) -> Reply:
    """The shape as exact events of the fake server; what is no delta is sent as it stands."""
    events = []
    for chunk in shape.chunks:
        is_raw = isinstance(chunk, str) or "choices" in chunk or "error" in chunk
        text = chunk if isinstance(chunk, str) else json.dumps(chunk)
        events.append(f"{RAW}{text}" if is_raw else chunk)
    return SSE(events, finish=shape.finish, done=shape.done)


def _p(index: Any = 0, call_id: Any = None, name: Any = None, arguments: Any = None) -> Any:
    """A delta with one piece of a call; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    whole = {"index": index, "id": call_id, "type": "function", "function": function}
    return {"tool_calls": [{key: value for key, value in whole.items() if value is not None}]}


def _both(*pieces: Any) -> dict[str, object]:
    """One delta with the pieces of several."""
    return {"tool_calls": [each["tool_calls"][0] for each in pieces]}


def _chunk(delta: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


_RF = "read_file"
_Call = tuple[str, dict[str, Any]]
_A: _Call = (_RF, {"path": "a"})
_B: _Call = (_RF, {"path": "b"})
_LS: _Call = ("ls", {})
_NONE: _Call = (_RF, {})
_ARGS_A, _ARGS_B = '{"path":"a"}', '{"path":"b"}'
_HEAD, _END_A, _END_B = '{"pa', 'th":"a"}', 'th":"b"}'
_NULLS = {"index": None, "id": "0", "function": {"name": None, "arguments": _END_A}}
_ONE_A: tuple[tuple[str, tuple[Any, ...], str | None], ...] = (
    ("openai", (_p(0, "c1", _RF, ""), _p(0, None, None, _ARGS_A)), "c1"),
    (
        "dashscope: an empty id in every later piece",
        (_p(0, "c1", _RF, ""), _p(0, "", "", _HEAD), _p(0, "", "", _END_A)),
        "c1",
    ),
    ("gemini: no index, one call in pieces", (_p(None, "f1", _RF, _HEAD), _p(None, None, None, _END_A)), None),
    ("index null, id repeated, name null", (_p(None, "0", _RF, _HEAD), {"tool_calls": [_NULLS]}), "0"),
    (
        "vllm: a new id in each piece",
        (_p(0, "x1", _RF, ""), _p(0, "x2", None, _HEAD), _p(0, "x3", None, _END_A)),
        "x1",
    ),
    ("the id comes late", (_p(0, None, _RF, ""), _p(0, "c1", None, _ARGS_A)), "c1"),
    ("the name comes last", (_p(0, "c1", None, _HEAD), _p(0, None, None, _END_A), _p(0, None, _RF, "")), "c1"),
    ("the name in every piece", (_p(0, "c1", _RF, _HEAD), _p(0, "c1", _RF, _END_A)), "c1"),
    (
        "the name in every piece, neither index nor id",
        (_p(None, None, _RF, _HEAD), _p(None, None, _RF, _END_A)),
        None,
    ),
    (
        "the name repeated at the end",
        (_p(0, "c1", _RF, _ARGS_A[:-1]), _p(0, None, _RF, "}"), _p(0, None, _RF, "")),
        "c1",
    ),
    (
        "the name in pieces",
        (_p(0, "c1", "read"), _p(0, None, "_fi"), _p(0, None, "le"), _p(0, None, None, _ARGS_A)),
        "c1",
    ),
    (
        "the name in pieces, each with the id",
        (_p(None, "c1", "read", ""), _p(None, "c1", "_file", ""), _p(None, "c1", None, _ARGS_A)),
        "c1",
    ),
    ("the name grows", (_p(0, "c1", "read"), _p(0, "c1", _RF), _p(0, None, None, _ARGS_A)), "c1"),
    ("two pieces of one call in one chunk", (_both(_p(0, "c1", _RF, _HEAD), _p(0, None, None, _END_A)),), "c1"),
    ("indexes that differ in each piece of one id", (_p(0, "c1", _RF, _HEAD), _p(1, "c1", None, _END_A)), "c1"),
    (
        "the whole call once more in the last chunk",
        (_p(0, "c1", _RF, _HEAD), _p(0, None, None, _END_A), _p(0, "c1", _RF, _ARGS_A)),
        "c1",
    ),
    ("arguments that grow instead of going on", (_p(0, "c1", _RF, '{"path"'), _p(0, "c1", _RF, _ARGS_A)), "c1"),
    ("a new id and the name in each piece", (_p(0, "x1", _RF, _HEAD), _p(0, "x2", _RF, _END_A)), "x1"),
    (
        "the older field beside the newer one, in chunks of their own",
        (_p(0, "c1", _RF, _ARGS_A), {"function_call": {"name": _RF, "arguments": _ARGS_A}}),
        "c1",
    ),
    (
        "message null beside each delta",
        tuple(
            {"choices": [{"index": 0, "delta": delta, "message": None}]}
            for delta in (_p(0, "c1", _RF, _HEAD), _p(0, None, None, _END_A))
        ),
        "c1",
    ),
)
"""One call of read_file, with the id it has in the end."""
_TWO: tuple[tuple[str, tuple[Any, ...], tuple[str | None, str | None]], ...] = (
    (
        "openai, two calls one after the other",
        (_p(0, "c1", _RF, ""), _p(0, None, None, _ARGS_A), _p(1, "c2", _RF, ""), _p(1, None, None, _ARGS_B)),
        ("c1", "c2"),
    ),
    ("ollama: whole calls, all with index 0", (_p(0, "c1", _RF, _ARGS_A), _p(0, "c2", _RF, _ARGS_B)), ("c1", "c2")),
    ("gemini: no index, whole calls", (_p(None, "f1", _RF, _ARGS_A), _p(None, "f2", _RF, _ARGS_B)), ("f1", "f2")),
    ("gemini: empty ids", (_p(None, "", _RF, _ARGS_A), _p(None, "", _RF, _ARGS_B)), (None, None)),
    ("one id for both, no index", (_p(None, "0", _RF, _ARGS_A), _p(None, "0", _RF, _ARGS_B)), ("0", "0")),
    (
        "interleaved by index",
        (_p(0, "c1", _RF, _HEAD), _p(1, "c2", _RF, _HEAD), _p(0, None, None, _END_A), _p(1, None, None, _END_B)),
        ("c1", "c2"),
    ),
    (
        "interleaved by id, no index",
        (
            _p(None, "c1", _RF, _HEAD),
            _p(None, "c2", _RF, _HEAD),
            _p(None, "c1", None, _END_A),
            _p(None, "c2", None, _END_B),
        ),
        ("c1", "c2"),
    ),
    (
        "interleaved by id, index always 0",
        (_p(0, "c1", _RF, _HEAD), _p(0, "c2", _RF, _HEAD), _p(0, "c1", None, _END_A), _p(0, "c2", None, _END_B)),
        ("c1", "c2"),
    ),
    (
        "interleaved, one id for two calls of two indexes",
        (_p(0, "c", _RF, _HEAD), _p(1, "c", _RF, _HEAD), _p(0, "c", None, _END_A), _p(1, "c", None, _END_B)),
        ("c", "c"),
    ),
    (
        "indexes with a fraction, interleaved, no ids",
        (
            _p(0.0, None, _RF, _HEAD),
            _p(1.0, None, _RF, _HEAD),
            _p(0.0, None, None, _END_A),
            _p(1.0, None, None, _END_B),
        ),
        (None, None),
    ),
    (
        "two calls in one chunk with the same index",
        (_both(_p(0, "c1", _RF, _ARGS_A), _p(0, "c2", _RF, _ARGS_B)),),
        ("c1", "c2"),
    ),
    (
        "two calls in one chunk with the same index and no ids",
        (_both(_p(0, None, _RF, _ARGS_A), _p(0, None, _RF, _ARGS_B)),),
        (None, None),
    ),
)
"""Two calls of read_file, with their ids."""

FRAGMENTS = (
    *(Shape(name, chunks, (_A,), ids=(call_id,)) for name, chunks, call_id in _ONE_A if call_id),
    *(Shape(name, chunks, (_A,)) for name, chunks, call_id in _ONE_A if not call_id),
    *(Shape(name, chunks, (_A, _B), ids=ids) for name, chunks, ids in _TWO),
    Shape(
        "litellm: the first call has index 1, after reasoning",
        (_p(1, "c1", "ls", ""), _p(1, None, None, "{}"), _p(2, "c2", _RF, _ARGS_A)),
        (_LS, _A),
        ids=("c1", "c2"),
    ),
    Shape(
        "ollama: the same call twice, ids that differ",
        (_p(0, "c1", "ls", "{}"), _p(0, "c2", "ls", "{}")),
        (_LS, _LS),
    ),
    Shape("ollama: an index and never an id", (_p(0, None, "ls", ""), _p(0, None, None, "{}")), (_LS,)),
    Shape(
        "gemini: a delta with a signature alone",
        (_p(0, "f1", "ls", "{}"), {"tool_calls": [{"index": 0, "extra_content": {"google": {}}}]}),
        (_LS,),
    ),
    Shape(
        "openrouter: one index and one id for two calls of different tools",
        (_p(0, "c", "ls", "{}"), _p(0, "c", _RF, _ARGS_A)),
        (_LS, _A),
    ),
    Shape(
        "openrouter: the finish reason twice, the second with usage",
        (_p(0, "c1", "ls", "{}"), _chunk({}, "tool_calls"), _chunk({"content": ""}, "tool_calls", usage={})),
        (_LS,),
    ),
    Shape(
        "an index as text",
        (_p("0", "c1", _RF, _HEAD), _p("1", "c2", "ls", "{}"), _p("0", None, None, _END_A)),
        (_A, _LS),
    ),
    Shape("sglang: a first piece of nothing", (_p(0), _p(0, "c1", "ls", "{}")), (_LS,)),
    Shape("a last piece of nothing under the next index", (_p(0, "c1", "ls", "{}"), _p(1, "", "", "")), (_LS,)),
    Shape(
        "pieces that are none",
        (_p(0, "c1", "ls", "{}"), {"tool_calls": [None, "x", {}, {"function": "x"}]}),
        (_LS,),
    ),
    Shape("fields beside each other", ({"tool_calls": [{"index": 0, "name": "ls", "arguments": "{}"}]},), (_LS,)),
    Shape("the calls are one object", ({"tool_calls": _p(0, "c", "ls", "{}")["tool_calls"][0]},), (_LS,)),
    Shape("an index of five thousand digits", (_p("9" * 5_000, "c1", "ls", "{}"),), (_LS,)),
    Shape("an index below zero", (_p(-1, "c1", "ls", ""), _p(-1, None, None, "{}")), (_LS,), ids=("c1",)),
    Shape("a namespace before the name", (_p(0, "c1", "functions.ls", "{}"),), (_LS,)),
    Shape("kimi: the id for a name", (_p(0, "functions.ls:0", "functions.ls:0", "{}"),), (_LS,)),
    Shape(
        "gpt-oss: a token of its format behind the name", (_p(0, "c1", "ls<|channel|>commentary", "{}"),), (_LS,)
    ),
    Shape(
        "the whole message behind its pieces",
        (
            _p(0, "c1", _RF, _HEAD),
            _p(0, None, None, _END_A),
            {"choices": [{"index": 0, "delta": {}, "message": {"content": "look", **_p(0, "c1", _RF, _ARGS_A)}}]},
        ),
        (_A,),
        text="look",
        ids=("c1",),
    ),
    Shape(
        "message null beside a delta that is cut",
        ({"choices": [{"index": 0, "delta": _p(0, "c1", _RF, _HEAD), "message": None}]},),
        finish=None,
        done=False,
        fails="BrokenReply",
    ),
    Shape("tool_calls null beside text", ({"content": "hi", "tool_calls": None},), text="hi", finish="stop"),
    Shape("tool_calls empty beside text", ({"content": "hi", "tool_calls": []},), text="hi", finish="stop"),
)
"""How servers cut calls into pieces."""

_TWICE = json.dumps(json.dumps(_ARGS_A))
_GOOD_ARGUMENTS: tuple[tuple[str, Any, _Call], ...] = (
    ("none at all", None, _NONE),
    ("an empty text", "", _NONE),
    ("blanks", " \n", _NONE),
    ("null as text", "null", _NONE),
    ("an empty text in a text", '""', _NONE),
    ("an object", {"path": "a"}, _A),
    ("encoded twice", json.dumps(_ARGS_A), _A),
    ("encoded three times", _TWICE, _A),
    ("the whole twice", _ARGS_A + _ARGS_A, _A),
    ("in a fence", f"```json\n{_ARGS_A}\n```", _A),
    ("a newline within a text", '{"path":"a\nb"}', (_RF, {"path": "a\nb"})),
    ("blanks around", f"\n {_ARGS_A} \n", _A),
    ("an end token after it", f"{_ARGS_A}<|im_end|>", _A),
    ("a closing tag after it", f"{_ARGS_A}\n</tool_call>", _A),
    ("surrogates", '{"path":"\\ud83d\\ude00 \\ud800"}', (_RF, {"path": "😀 \ufffd"})),
    ("values of all kinds", '{"n": [1, 2.5, true, null]}', (_RF, {"n": [1, 2.5, True, None]})),
)
_BAD_ARGUMENTS: tuple[tuple[str, Any, str], ...] = (
    ("encoded four times", json.dumps(_TWICE), "a string within strings"),
    ("a brace too many", _ARGS_A + "}", "not valid JSON"),
    ("a brace too few", _ARGS_A[:-1], "end in the middle"),
    ("cut within a text", '{"path":"a', "end in the middle"),
    ("two that differ", _ARGS_A + _ARGS_B, "not valid JSON"),
    ("words after it", _ARGS_A + " and then", "not valid JSON"),
    ("single quotes", "{'path':'a'}", "not valid JSON"),
    ("too deep", "[" * 100_000, "not valid JSON"),
    ("a list", "[1]", "a list, not a JSON object"),
    ("a list as it is", ["a"], "a list, not a JSON object"),
    ("a number", 7, "a number, not a JSON object"),
    ("true", "true", "true or false, not a JSON object"),
    ("not a number", '{"path":NaN}', "NaN is not JSON"),
    ("a number that is too large", '{"a": 1e999}', "a number is too large"),
    ("a number of more than 64 bits", '{"a": 99999999999999999999}', "does not fit into 64 bits"),
)

ARGUMENTS = (
    *(Shape(f"arguments: {name}", (_p(0, "c1", _RF, sent),), (call,)) for name, sent, call in _GOOD_ARGUMENTS),
    *(
        Shape(f"arguments: {name}", (_p(0, "c1", _RF, sent),), (_NONE,), complaints={"0": complaint})
        for name, sent, complaint in _BAD_ARGUMENTS
    ),
    Shape("arguments: an empty object first", (_p(0, "c1", _RF, "{}"), _p(0, None, None, _ARGS_A)), (_A,)),
)

_LS_CALL, _HI = _p(0, "c1", "ls", "{}"), {"content": "hi"}
_TRUNCATED = {
    "output limit": (
        "length",
        "LENGTH",
        "MAX_TOKENS",
        "max_output_tokens",
        "model_length",
        "model_context_window_exceeded",
    ),
    "content filter": ("content_filter", "contentFiltered", "SAFETY", "sensitive"),
}

ENDINGS = (
    *(
        Shape(reason, (_LS_CALL,), (_LS,), finish=reason)
        for reason in ("stop", "STOP", "function_call", "tool_use")
    ),
    *(Shape(reason, (_HI,), text="hi", finish=reason) for reason in ("eos", "end_turn", "tool_calls")),
    *(
        Shape(reason, (_LS_CALL,), (_LS,), finish=reason, complaints={"0": cause})
        for cause, reasons in _TRUNCATED.items()
        for reason in reasons
    ),
    *(
        Shape(reason, (_HI, _LS_CALL), finish=reason, fails="BrokenReply")
        for reason in ("error", "abort", "insufficient_system_resource", "Network_error ")
    ),
    Shape("tool_calls with neither", ({"content": ""},), fails="EmptyReply"),
    Shape("no reason, [DONE] at the end", (_LS_CALL,), (_LS,), finish=None),
    Shape("a reason, no [DONE]", (_LS_CALL,), (_LS,), done=False),
    Shape("neither", (_LS_CALL,), finish=None, done=False, fails="BrokenReply"),
    Shape("an empty reason is none", (_HI, _chunk({}, "")), finish=None, done=False, fails="BrokenReply"),
    Shape("the reason with the last piece", (_LS_CALL, _chunk({}, "tool_calls")), (_LS,), finish=None, done=False),
    Shape(
        "truncated, then another reason", (_LS_CALL, _chunk({}, "length")), (_LS,), complaints={"0": "output limit"}
    ),
    Shape("an error object", (_HI, {"error": {"message": "overloaded"}}), fails="ServerError"),
    Shape("an error beside empty choices", ({"choices": [], "error": {"message": "x"}},), fails="ServerError"),
    Shape("an error as text", (_HI, {"error": "overloaded"}), fails="ServerError"),
    Shape(
        "vllm: an error without a field", ('{"object":"error","message":"oom","code":500}',), fails="ServerError"
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
        fails="ServerError",
    ),
    *(Shape(f"no object: {raw}", (_HI, raw), fails="BrokenReply") for raw in ("{cut", "[]", '"x"', "1")),
    *(
        Shape(f"ignored: {raw}", (raw, _HI), text="hi", finish="stop")
        for raw in ("null", '{"choices": {"0": 1}}', '{"choices": [null]}', '{"choices": [{"delta": "x"}]}')
    ),
    Shape(
        "a legacy call",
        ({"function_call": {"name": "ls", "arguments": ""}}, {"function_call": {"arguments": "{}"}}),
        (_LS,),
        finish="function_call",
    ),
    Shape(
        "azure: filter results first", ({"choices": [], "prompt_filter_results": []}, _HI), text="hi", finish="stop"
    ),
    Shape(
        "an error behind the end", (_HI, _chunk({}, "stop"), "[DONE]", '{"error":"late"}'), text="hi", finish=None
    ),
    Shape("more behind the end", (_HI, _chunk({}, "stop"), "[DONE]", "<html>"), text="hi", finish=None),
    Shape("the end in small letters", (_HI, "[done]"), text="hi", finish=None, done=False),
    Shape("a chunk in a list", ('[{"choices":[{"delta":{"content":"hi"}}]}]',), text="hi", finish="stop"),
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
"""Finish reasons, errors and ends of the stream."""

_PLAIN: dict[str, tuple[Any, ...]] = {
    "content null": ({"role": "assistant", "content": None}, _HI),
    "content in parts": ({"content": [{"type": "text", "text": "hi"}]},),
    "content as one part": ({"content": {"type": "text", "text": "hi"}},),
    "parts as plain texts": ({"content": ["h", "i"]},),
    "parts of all kinds": (
        {"content": ["h", {"type": "thinking"}, {"text": None}, 3, {"type": "text", "text": "i"}]},
        {"content": 7},
    ),
    "a refusal": (_chunk(None), {"refusal": "hi"}),
    "only the end of thinking, its beginning was in the prompt": (
        {"content": "hm\n</thi"},
        {"content": "nk>\n\nhi"},
    ),
    "usage in every chunk": (_chunk({"content": "h"}, usage={"prompt_tokens": 1}), {"content": "i"}),
    "choices null": ({"choices": None, "usage": None}, _HI),
}
_THOUGHT: dict[str, tuple[Any, ...]] = {
    "mistral: thinking in parts": (
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        _HI,
    ),
    "deepseek: reasoning_content": ({"reasoning_content": "hm", "content": None}, _HI),
    "openrouter: reasoning beside its details": ({"reasoning": "hm", "reasoning_details": [{"text": "hm"}]}, _HI),
    "openrouter: details alone": ({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, _HI),
    "both names for the same reasoning": ({"reasoning": "hm", "reasoning_content": "hm"}, _HI),
    "litellm: thinking blocks": ({"reasoning_content": "hm", "thinking_blocks": [{"thinking": "hm"}]}, _HI),
    "reasoning as an object, another field null": ({"reasoning": {"text": "hm"}, "reasoning_content": None}, _HI),
    "details with a summary": (
        {"reasoning_details": [{"type": "reasoning.text", "text": "h"}, {"summary": "m"}, 3]},
        _HI,
    ),
    "anthropic: thinking": ({"thinking": "hm"}, _HI),
    "thinking tags": ({"content": "<think>hm</think>hi"},),
    "thinking tags in pieces": ({"content": "<thi"}, {"content": "nk>hm</th"}, {"content": "ink>\n\nhi"}),
    "thinking in other words": ({"content": "<thinking>hm</thinking>hi"},),
    "thought tags": ({"content": "<thought>hm</thought>hi"},),
    "thinking twice": ({"content": "<think>h</think>\n<think>m</think>hi"},),
    "a part of another name for thinking": (
        {"content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "hi"}]},
    ),
    "the whole message behind its text": (
        {"content": "<think>hm</think>h"},
        {"content": "i"},
        {"choices": [{"message": {"content": "<think>hm</think>hi"}}]},
    ),
}
_WHOLE_CALL = {"function": {"name": "ls", "arguments": {}}}

TEXTS = (
    *(Shape(name, chunks, text="hi", finish="stop") for name, chunks in _PLAIN.items()),
    *(Shape(name, chunks, text="hi", finish="stop", reasoning="hm") for name, chunks in _THOUGHT.items()),
    Shape("thinking tags before a call", ({"content": "<think>hm</think>"}, _LS_CALL), (_LS,), reasoning="hm"),
    Shape("nothing but thinking", ({"content": "<think>hm</think>"},), finish="stop", fails="EmptyReply"),
    Shape("text buffered for a tag", ({"content": "<thi"},), text="<thi", finish="stop"),
    Shape("surrogates in two chunks", ({"content": "\ud83d"}, {"content": "\ude00"}), text="😀", finish="stop"),
    Shape("text and a call", ({"content": "look"}, _LS_CALL), (_LS,), text="look"),
    Shape("text after a call", (_LS_CALL, {"content": "look"}), (_LS,), text="look"),
    Shape("a whole reply", ({"content": "\n", "tool_calls": [{"id": "c", **_WHOLE_CALL}]},), (_LS,), whole=True),
    Shape(
        "a whole reply with equal calls without ids", ({"tool_calls": [_WHOLE_CALL] * 2},), (_LS, _LS), whole=True
    ),
    Shape(
        "a whole reply with reasoning", ({**_HI, "reasoning_content": "hm"},), text="hi", reasoning="hm", whole=True
    ),
)
"""Text and reasoning."""
