from tests.contracts.example_calls import ExampleCalls
from tools.agent_ops.completion import AttemptCompletionTool

EXAMPLE_CALLS = {
    "attempt_completion": ExampleCalls({"result": "All done."}, {"result": " "}),
}


async def test_the_result_is_handed_over_as_it_is_and_marked_as_the_answer() -> None:
    result = await AttemptCompletionTool().execute(result="Done:\n- a\n")

    assert (result.output, result.error, result.metadata) == ("Done:\n- a\n", None, {"answer": "Done:\n- a\n"})


async def test_an_empty_result_is_refused_with_what_to_say_instead() -> None:
    tool = AttemptCompletionTool()

    result = await tool.execute(result=" \n")

    assert (result.metadata["error_type"], result.error) == ("validation", tool.validate({"result": " "}))
