"""Records of mapped sources: what the expressions of the settings give, as columns."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.sources import FIELDS, TEXTS
from spark_jobs.contract.events import UnknownFields
from spark_jobs.contract.record_places import META, RECEIVED_META
from spark_jobs.ingest import parse
from spark_jobs.ingest.elements import LIST
from spark_jobs.ingest.fields import SOURCE_NAME, Field, Given, Reason, as_text
from spark_jobs.ingest.meta import of_records
from spark_jobs.mapping import Expression, Path, RecordSchema, failure_sql, to_sql
from spark_jobs.mapping.paths import ListPath
from spark_jobs.mapping.schema import RECORD, VARIANT, OtherRecord
from spark_jobs.mapping.sources import SourceMapping

_LET, _KEPT = "let", "kept"
"""Begin the names of columns in between."""


class Mapped:
    """The mapped sources of the settings."""

    def __init__(self, mappings: Mapping[str, SourceMapping]) -> None:
        """``mappings``: by name of the source."""
        self._mappings = mappings
        self._schema = RecordSchema.of(path for one in mappings.values() for path in one.paths)

    @property
    def is_malformed(self) -> Column:
        """Whether a record is not exactly one JSON value. Keys may repeat."""
        return ~F.coalesce(F.expr(self._schema.is_whole_sql(parse.TO_PARSE)), F.lit(False))

    @property
    def schema(self) -> RecordSchema:
        """All that the mappings read from a record."""
        return self._schema

    @property
    def lists(self) -> tuple[ListPath, ...]:
        """The lists whose elements are records, each once, in the order of the sources."""
        return tuple(dict.fromkeys(one.each for one in self._mappings.values() if one.each))

    def of_list(self, path: ListPath | None) -> tuple[str, ...]:
        """The sources whose records are the elements of the list at ``path``; None: those with whole records."""
        return tuple(name for name, one in self._mappings.items() if one.each == path)

    @property
    def has_conditions(self) -> bool:
        """Whether a source means only some of its records."""
        return any(one.when or one.each for one in self._mappings.values())

    def read(self, records: DataFrame) -> DataFrame:
        """``records`` (with :data:`spark_jobs.ingest.parse.TO_PARSE`) with what the other methods refer to."""
        if not self._mappings:
            return records
        for name, sql in self._schema.columns_sql(parse.TO_PARSE):
            records = records.withColumn(name, F.expr(sql))
        if META in self._schema.others:
            known = records.withColumn(RECEIVED_META, of_records(records))
            records = _with_others(known, {RECEIVED_META: self._schema.others[META]})
        lets = {root: text for one in self._mappings.values() for root, text in one.lets.items()}
        read = [(text, self._schema.others[root]) for root, text in lets.items() if root in self._schema.others]
        return self._with_lets(records, read) if read else records

    def _with_lets(self, records: DataFrame, lets: Sequence[tuple[Expression, OtherRecord]]) -> DataFrame:
        """``records`` with what is read of texts in them."""
        texts = {f"{_LET}_{number}": self._value(text) for number, (text, _) in enumerate(lets)}
        return _with_others(
            records.withColumns(texts), {text: other for text, (_, other) in zip(texts, lets, strict=True)}
        )

    def is_meant(self, name: str) -> Column:
        """Whether the source ``name`` means the record, if it comes from where the source does."""
        one = self._mappings.get(name)
        is_meant = self._value(one.when) if one and one.when else F.lit(True)
        if not self.lists:
            return is_meant
        in_list = F.col(LIST) == self.lists.index(one.each) if one and one.each else F.col(LIST).isNull()
        return in_list & is_meant

    def fields(self, name: str) -> dict[str, Field]:
        """By name, the fields of an event that the source gives."""
        given = self._mappings[name].fields
        return {field: self._field(field, given[field]) for field in FIELDS if field in given}

    def kept(self, name: str) -> dict[str, Field]:
        """By name, the columns that the source keeps."""
        one = self._mappings.get(name)
        return {column: self._field(column, expression) for column, expression in one.kept.items()} if one else {}

    @property
    def unknown_fields(self) -> Column | None:
        """The fields of a record that the mapping of its source does not read but must; None: no source is strict."""
        strict = [one for one in self._mappings.values() if one.settings.unknown is UnknownFields.QUARANTINE]
        if not strict:
            return None
        chain = F.when(F.lit(False), F.array().cast("array<string>"))
        for one in strict:
            chain = chain.when(F.col(SOURCE_NAME) == one.name, _other_keys(one))
        return chain

    def _field(self, name: str, expression: Expression) -> Field:
        value, has_failed = (
            self._value(expression),
            F.expr(failure_sql(expression, self._schema, parse.TO_PARSE)),
        )
        is_wrong = value.isNull() & has_failed
        if name in TEXTS and expression.bare_path:
            is_wrong |= ~parse.is_text_of(value, F.expr(self._schema.kind_sql(expression.bare_path)))
        return Field(value, value.isNull() & ~has_failed, is_wrong, self._reason(name, expression))

    def _reason(self, name: str, expression: Expression) -> Reason:
        what, read = f"{name} = {expression.text}: ", {str(path): self._text_at(path) for path in expression.paths}
        if len(read) == 1:
            ((path, text),) = read.items()
            return Given(f"{what}{path}", text)
        return F.concat(F.lit(what), F.concat_ws(", ", *[as_text(Given(path, text)) for path, text in read.items()]))

    def _value(self, expression: Expression) -> Column:
        return F.expr(to_sql(expression, self._schema, parse.TO_PARSE))

    def _text_at(self, path: Path) -> Column:
        return F.expr(self._schema.path_sql(path, parse.TO_PARSE))


def _with_others(records: DataFrame, others: Mapping[str, OtherRecord]) -> DataFrame:
    """``records`` with what is read of the JSON in columns, ``others`` by their names.

    Each is read by the columns that the record was read by.
    """
    of_record = {name: f"{_KEPT}_{name}" for name in (VARIANT, RECORD)}
    records = records.withColumns({kept: F.col(name) for name, kept in of_record.items()})
    for text, other in others.items():
        for name, sql in other.columns_sql(text):
            records = records.withColumn(name, F.expr(sql))
    return records.withColumns({name: F.col(kept) for name, kept in of_record.items()})


def _other_keys(one: SourceMapping) -> Column:
    known = sorted({str(path.steps[0]) for path in one.paths if path.steps and not path.root})
    return F.array_except("keys", F.array(*map(F.lit, known)).cast("array<string>"))
