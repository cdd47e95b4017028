"""The JSON of decisions."""

from pydantic import BaseModel, ConfigDict


class DecisionItem(BaseModel):
    """A decision in a list."""

    id: str
    at: str
    deeds: list[str]
    """What it did, in order; of very many their numbers."""


class DecisionList(BaseModel):
    """The decisions that are kept, newest first."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "items": [
                    {
                        "id": "20261201T093001.500000-3f9a",
                        "at": "2026-12-01T09:30:01.500000Z",
                        "deeds": ["Admit vision/digits"],
                    }
                ]
            }
        }
    )

    items: list[DecisionItem]
