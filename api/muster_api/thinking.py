"""How routes get at the one thinker of this API."""

from typing import Annotated

from fastapi import Depends, Request

from muster_api.scheduler import Thinker


def thinker_of(request: Request) -> Thinker:
    """The thinker of this API."""
    thinker: Thinker = request.app.state.thinker
    return thinker


ThinkerOf = Annotated[Thinker, Depends(thinker_of)]
