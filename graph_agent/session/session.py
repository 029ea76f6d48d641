"""A thread opened by a process: send, decide, proceed, stop. Knows no terminal and no database."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

from graph_agent.errors import AnswerRefused, ModelError, StaleOwner, UsageError
from graph_agent.events import CallAnswered, EventBus, SessionOpened, TurnEnded, TurnStarted
from graph_agent.graph.history import printable
from graph_agent.graph.life import Life, new_token, scope_of, Here
from graph_agent.ports import Answer, AnswerKind, Question
from graph_agent.session.api import OpenQuestion, Rest, RestStatus
from graph_agent.session.desk import Desk, questions_in
from graph_agent.session.evidence import gather
from graph_agent.session.parts import SessionParts, Thread
from graph_agent.session.run import Ran, last_answer

__all__ = ["Session"]
