"""A graph whose only node is a parrot."""

from __future__ import annotations

from typing import Any

from kit import parrot
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


def speak(state: MessagesState) -> dict[str, Any]:
    content = state["messages"][-1].content
    told = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return {"messages": [AIMessage(parrot.reply(told))]}


graph = StateGraph(MessagesState).add_node("parrot", speak).add_edge(START, "parrot").add_edge("parrot", END).compile()
