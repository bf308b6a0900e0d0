"""What a commit of a table tells of the batch that it is: its user metadata."""

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError


class CommitNote(BaseModel):
    """Who wrote a commit, and how far the writer had come in what it reads.

    A table so tells by itself where its writer must go on, whatever becomes of the writer's checkpoint.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    writer: str
    """Id of the query, which lies in its checkpoint; or what else wrote."""
    batch: int
    query: str | None = None
    """Name of the query."""
    watermark_ms: int = 0
    """The watermark under which the batch ran, in milliseconds since 1970; 0 before there was one."""
    reached: list[JsonValue] = []
    """For each source of the query, the end of the batch in it, as Spark's source writes it."""


def read_note(user_metadata: str | None) -> CommitNote | None:
    """The note in ``user_metadata``; None if it holds none."""
    try:
        return CommitNote.model_validate_json(user_metadata or "")
    except ValidationError:
        return None
