"""Answers kept for later, the oldest dropped when there are too many."""

from collections.abc import Hashable
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")


class Kept(Generic[_Answer]):
    """A mapping that never holds more than *most* answers."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: dict[Hashable, _Answer] = {}

    def get(self, question: Hashable) -> _Answer | None:
        """The answer, if it is still there."""
        return self._answers.get(question)

    def put(self, question: Hashable, answer: _Answer) -> _Answer:
        """Keep an answer as the youngest, and give it back."""
        self._answers.pop(question, None)
        if len(self._answers) == self._most:
            del self._answers[next(iter(self._answers))]
        self._answers[question] = answer
        return answer
