"""Every exception the product raises on purpose. Failures carry the exit code the command line ends with.

AgentError                      anything a user may be shown; message = what happened and what to do
├── UsageError                  2   the request itself cannot be served as asked
│   ├── ConfigError             2   a setting is wrong: names file, key, value, expected
│   └── UnknownId               2   no thread, checkpoint or call has this id, or several have
│       └── NothingYet          2   there is no database yet, so nothing has an id
├── ModelError                  6   the model or its provider failed for good
│   └── ContextOverflow         6   the request is longer than the model takes
├── ThreadHeld                  7   another process holds the thread
│   └── LeaseLost               7   this process held it and no longer does
├── StorageError                1   database or blobs cannot be used
│   ├── NewerSchema             1   written by a newer version
│   └── DamagedDatabase         1   not a database, or damaged
├── MessageBlocked              1   a hook of the user blocked a message
├── AnswerRefused               1   an answer cannot be taken: too late, wrong kind, denied by policy
└── InternalError               1   an invariant of this program was violated: a bug
    ├── ForbiddenTransition         a status change that is not in the table
    └── InvalidHistory              the next model request would not be a valid conversation

ControlFlow                     never shown; ends a run on purpose
├── StaleOwner                  another run took the call over; this one must stop at once
└── Paused                      a call waits for its sub-agent; a new attempt continues it
"""

__all__ = [
    "AgentError",
    "AnswerRefused",
    "ConfigError",
    "ContextOverflow",
    "ControlFlow",
    "DamagedDatabase",
    "ForbiddenTransition",
    "InternalError",
    "InvalidHistory",
    "LeaseLost",
    "MessageBlocked",
    "ModelError",
    "NewerSchema",
    "NothingYet",
    "Paused",
    "QuestionChanged",
    "StaleOwner",
    "StorageError",
    "ThreadHeld",
    "UnknownId",
    "UsageError",
]


class AgentError(Exception):
    """Base of every failure that is shown to the user; `exit_code` is what the command line ends with."""

    exit_code = 1


class UsageError(AgentError):
    """The request itself cannot be served as asked."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting is wrong; the message names its file, key, value, and what is expected."""


class UnknownId(UsageError):
    """No thread, checkpoint or call has this id, or several have; the message lists candidates."""


class NothingYet(UnknownId):
    """There is no database yet; lists show this as empty instead."""


class ModelError(AgentError):
    """The model or its provider failed for good; the message says what the server said and what to do."""

    exit_code = 6


class ContextOverflow(ModelError):
    """The request is too long for the model; a shorter one may succeed."""

    most_tokens: int | None = None
    """How many tokens the model takes, where the provider said so."""


class ThreadHeld(AgentError):
    """Another process holds the thread; the message says who and since when."""

    exit_code = 7


class LeaseLost(ThreadHeld):
    """This process no longer holds its thread on a server, and must stop at once: nothing that it writes counts."""


class StorageError(AgentError):
    """The database or the blob folder cannot be used; nothing was changed."""


class NewerSchema(StorageError):
    """The database was written by a newer version of this program; the message names both versions."""


class DamagedDatabase(StorageError):
    """The file is not a database of this program, or is damaged."""


class MessageBlocked(AgentError):
    """A hook blocked a message; it was neither sent nor queued."""


class AnswerRefused(AgentError):
    """An answer cannot be taken: someone else was first, it does not fit the question, or policy denies it."""


class QuestionChanged(AnswerRefused):
    """An answer is for a question that was shown before; the call asks something else by now, or nothing."""

    def __init__(self, call_id: str) -> None:
        super().__init__(
            f"Call {call_id!r} asks something else now: its arguments or its attempt have changed. Read the new "
            "question and answer that."
        )


class InternalError(AgentError):
    """An invariant of this program was violated: a bug. The run stops with its last checkpoint saved."""


class ForbiddenTransition(InternalError):
    """A change of status that is not in the transition table."""


class InvalidHistory(InternalError):
    """The next model request would not be a valid conversation."""


class ControlFlow(Exception):
    """Base of the exceptions that end a run on purpose. Never shown to a user."""


class StaleOwner(ControlFlow):
    """Another run has taken this call over; the run that sees this must stop and write nothing more."""


class Paused(ControlFlow):
    """A call cannot continue now, e.g. because its sub-agent waits for a person. Nothing of what it did is lost."""
