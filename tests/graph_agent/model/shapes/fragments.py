"""How servers cut calls into fragments."""

from tests.graph_agent.model.shapes import Shape, call, piece

__all__ = ["FRAGMENTS"]

_A = call("read_file", path="a")
_B = call("read_file", path="b")
_LS = call("ls")
_ARGS_A, _ARGS_B = '{"path":"a"}', '{"path":"b"}'


def _both(*pieces: object) -> dict[str, object]:
    """One delta with the fragments of several."""
    return {"tool_calls": [each["tool_calls"][0] for each in pieces if isinstance(each, dict)]}


_NULLS = {"index": None, "id": "0", "function": {"name": None, "arguments": _ARGS_A[3:]}}

FRAGMENTS = (
    Shape("openai", (piece(0, "c1", "read_file", ""), piece(0, None, None, _ARGS_A)), (_A,), ids=("c1",)),
    Shape(
        "openai, two calls one after the other",
        (
            piece(0, "c1", "read_file", ""),
            piece(0, None, None, _ARGS_A),
            piece(1, "c2", "read_file", ""),
            piece(1, None, None, _ARGS_B),
        ),
        (_A, _B),
        ids=("c1", "c2"),
    ),
    Shape(
        "litellm: the first call has index 1, after reasoning",
        (piece(1, "c1", "ls", ""), piece(1, None, None, "{}"), piece(2, "c2", "read_file", _ARGS_A)),
        (_LS, _A),
        ids=("c1", "c2"),
    ),
    Shape(
        "dashscope: an empty id in every later fragment",
        (piece(0, "c1", "read_file", ""), piece(0, "", "", '{"path":'), piece(0, "", "", '"a"}')),
        (_A,),
        ids=("c1",),
    ),
    Shape(
        "ollama: whole calls, all with index 0",
        (piece(0, "c1", "read_file", _ARGS_A), piece(0, "c2", "read_file", _ARGS_B)),
        (_A, _B),
        ids=("c1", "c2"),
    ),
    Shape(
        "ollama: the same call twice, index 0 and ids that differ",
        (piece(0, "c1", "ls", "{}"), piece(0, "c2", "ls", "{}")),
        (_LS, _LS),
    ),
    Shape("ollama: an index and never an id", (piece(0, None, "ls", ""), piece(0, None, None, "{}")), (_LS,)),
    Shape(
        "gemini: no index, whole calls, finish reason stop",
        (piece(None, "f1", "read_file", _ARGS_A), piece(None, "f2", "read_file", _ARGS_B)),
        (_A, _B),
        finish="stop",
        ids=("f1", "f2"),
    ),
    Shape(
        "gemini: no index, one call in fragments",
        (piece(None, "f1", "read_file", '{"pa'), piece(None, None, None, 'th":"a"}')),
        (_A,),
        finish="stop",
    ),
    Shape(
        "gemini: empty ids",
        (piece(None, "", "read_file", _ARGS_A), piece(None, "", "read_file", _ARGS_B)),
        (_A, _B),
    ),
    Shape(
        "gemini: a delta with a signature alone",
        (piece(0, "f1", "ls", "{}"), {"tool_calls": [{"index": 0, "extra_content": {"google": {}}}]}),
        (_LS,),
    ),
    Shape(
        "index null, id repeated, name null",
        (piece(None, "0", "read_file", '{"p'), {"tool_calls": [_NULLS]}),
        (_A,),
        ids=("0",),
    ),
    Shape(
        "vllm: a new id in each fragment",
        (piece(0, "x1", "read_file", ""), piece(0, "x2", None, '{"path"'), piece(0, "x3", None, ':"a"}')),
        (_A,),
        ids=("x1",),
    ),
    Shape(
        "the id comes late",
        (piece(0, None, "read_file", ""), piece(0, "c1", None, _ARGS_A)),
        (_A,),
        ids=("c1",),
    ),
    Shape(
        "the name comes last",
        (piece(0, "c1", None, '{"path":'), piece(0, None, None, '"a"}'), piece(0, None, "read_file", "")),
        (_A,),
        ids=("c1",),
    ),
    Shape(
        "the name in every fragment",
        (piece(0, "c1", "read_file", '{"path":'), piece(0, "c1", "read_file", '"a"}')),
        (_A,),
    ),
    Shape(
        "the name in every fragment, neither index nor id",
        (piece(None, None, "read_file", '{"path":'), piece(None, None, "read_file", '"a"}')),
        (_A,),
    ),
    Shape(
        "the name in pieces",
        (piece(0, "c1", "read"), piece(0, None, "_fi"), piece(0, None, "le"), piece(0, None, None, _ARGS_A)),
        (_A,),
    ),
    Shape(
        "the name grows",
        (piece(0, "c1", "read"), piece(0, "c1", "read_file"), piece(0, None, None, _ARGS_A)),
        (_A,),
    ),
    Shape(
        "interleaved by index",
        (
            piece(0, "c1", "read_file", '{"pa'),
            piece(1, "c2", "read_file", '{"pa'),
            piece(0, None, None, 'th":"a"}'),
            piece(1, None, None, 'th":"b"}'),
        ),
        (_A, _B),
    ),
    Shape(
        "interleaved by id, no index",
        (
            piece(None, "c1", "read_file", '{"pa'),
            piece(None, "c2", "read_file", '{"pa'),
            piece(None, "c1", None, 'th":"a"}'),
            piece(None, "c2", None, 'th":"b"}'),
        ),
        (_A, _B),
        ids=("c1", "c2"),
    ),
    Shape(
        "interleaved by id, index always 0",
        (
            piece(0, "c1", "read_file", '{"pa'),
            piece(0, "c2", "read_file", '{"pa'),
            piece(0, "c1", None, 'th":"a"}'),
            piece(0, "c2", None, 'th":"b"}'),
        ),
        (_A, _B),
        ids=("c1", "c2"),
    ),
    Shape(
        "two fragments of one call in one chunk",
        (_both(piece(0, "c1", "read_file", '{"path"'), piece(0, None, None, ':"a"}')),),
        (_A,),
    ),
    Shape(
        "two calls in one chunk with the same index",
        (_both(piece(0, "c1", "read_file", _ARGS_A), piece(0, "c2", "read_file", _ARGS_B)),),
        (_A, _B),
    ),
    Shape(
        "two calls in one chunk with the same index and no ids",
        (_both(piece(0, None, "read_file", _ARGS_A), piece(0, None, "read_file", _ARGS_B)),),
        (_A, _B),
    ),
    Shape(
        "openrouter: one index and one id for two calls of different tools",
        (piece(0, "c", "ls", "{}"), piece(0, "c", "read_file", _ARGS_A)),
        (_LS, _A),
    ),
    Shape(
        "openrouter: the finish reason twice, the second with usage",
        (
            piece(0, "c1", "ls", "{}"),
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
            {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "tool_calls"}], "usage": {}},
        ),
        (_LS,),
    ),
    Shape(
        "an index as text",
        (piece("0", "c1", "read_file", '{"path":'), piece("1", "c2", "ls", "{}"), piece("0", None, None, '"a"}')),
        (_A, _LS),
    ),
    Shape(
        "indexes that differ in each fragment of one id",
        (piece(0, "c1", "read_file", '{"path":'), piece(1, "c1", None, '"a"}')),
        (_A,),
    ),
    Shape(
        "the whole call once more in the last chunk",
        (
            piece(0, "c1", "read_file", '{"path":'),
            piece(0, None, None, '"a"}'),
            piece(0, "c1", "read_file", _ARGS_A),
        ),
        (_A,),
    ),
    Shape(
        "arguments that grow instead of going on",
        (piece(0, "c1", "read_file", '{"path"'), piece(0, "c1", "read_file", _ARGS_A)),
        (_A,),
    ),
    Shape("sglang: a first fragment of nothing", (piece(0), piece(0, "c1", "ls", "{}")), (_LS,)),
    Shape(
        "a trailing fragment of nothing under the next index",
        (piece(0, "c1", "ls", "{}"), piece(1, "", "", "")),
        (_LS,),
    ),
    Shape(
        "fields beside each other",
        ({"tool_calls": [{"index": 0, "id": "c", "name": "ls", "arguments": "{}"}]},),
        (_LS,),
    ),
    Shape("the calls are one object", ({"tool_calls": piece(0, "c", "ls", "{}")["tool_calls"][0]},), (_LS,)),
    Shape(
        "interleaved, one id for two calls of two indexes",
        (
            piece(0, "c", "read_file", '{"pa'),
            piece(1, "c", "read_file", '{"pa'),
            piece(0, "c", None, 'th":"a"}'),
            piece(1, "c", None, 'th":"b"}'),
        ),
        (_A, _B),
    ),
    Shape(
        "a new id and the name in each fragment",
        (piece(0, "x1", "read_file", '{"pa'), piece(0, "x2", "read_file", 'th":"a"}')),
        (_A,),
        ids=("x1",),
    ),
    Shape(
        "indexes with a fraction, interleaved, no ids",
        (
            piece(0.0, None, "read_file", '{"pa'),
            piece(1.0, None, "read_file", '{"pa'),
            piece(0.0, None, None, 'th":"a"}'),
            piece(1.0, None, None, 'th":"b"}'),
        ),
        (_A, _B),
    ),
    Shape("an index of five thousand digits", (piece("9" * 5_000, "c1", "ls", "{}"),), (_LS,)),
    Shape("an index below zero", (piece(-1, "c1", "ls", ""), piece(-1, None, None, "{}")), (_LS,), ids=("c1",)),
    Shape("a namespace before the name", (piece(0, "c1", "functions.ls", "{}"),), (_LS,)),
    Shape("kimi: the id for a name", (piece(0, "functions.ls:0", "functions.ls:0", "{}"),), (_LS,)),
    Shape(
        "gpt-oss: a token of its format behind the name", (piece(0, "c1", "ls<|channel|>commentary", "{}"),), (_LS,)
    ),
    Shape(
        "the older field beside the newer one, in chunks of their own",
        (piece(0, "c1", "read_file", _ARGS_A), {"function_call": {"name": "read_file", "arguments": _ARGS_A}}),
        (_A,),
        ids=("c1",),
    ),
    Shape(
        "the whole message behind its pieces",
        (
            piece(0, "c1", "read_file", '{"pa'),
            piece(0, None, None, 'th":"a"}'),
            {
                "choices": [
                    {
                        "index": 0,
                        "delta": {},
                        "message": {
                            "content": "look",
                            "tool_calls": piece(0, "c1", "read_file", _ARGS_A)["tool_calls"],
                        },
                    }
                ]
            },
        ),
        (_A,),
        text="look",
        ids=("c1",),
    ),
    Shape(
        "message null beside each delta",
        (
            {"choices": [{"index": 0, "delta": piece(0, "c1", "read_file", '{"pa'), "message": None}]},
            {"choices": [{"index": 0, "delta": piece(0, None, None, 'th":"a"}'), "message": None}]},
        ),
        (_A,),
    ),
    Shape(
        "message null beside each delta, cut",
        ({"choices": [{"index": 0, "delta": piece(0, "c1", "read_file", '{"pa'), "message": None}]},),
        finish=None,
        done=False,
        fails="BrokenReply",
    ),
    Shape("tool_calls null beside text", ({"content": "hi", "tool_calls": None},), text="hi", finish="stop"),
    Shape("tool_calls empty beside text", ({"content": "hi", "tool_calls": []},), text="hi", finish="stop"),
)
