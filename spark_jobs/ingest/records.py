"""How the records of the configured sources are read: in which form, and by which mapping."""

from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import FIELDS, SourceSettings, kept_columns, named_by_others
from spark_jobs.contract import events
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest import parse
from spark_jobs.ingest.decode import comes_from_topics
from spark_jobs.ingest.elements import IS_FURTHER, LIST, NO_LIST, ElementList, expanded
from spark_jobs.ingest.fields import SOURCE_NAME, by_source, own_fields, own_time, with_lower_ids
from spark_jobs.ingest.mapped import Mapped
from spark_jobs.mapping.sources import compile_sources, no_list_reason

_TYPES = {column.name: column.sql_type for column in BRONZE_EVENTS.columns if column.name in FIELDS}


class Records:
    """The records of all sources, as columns for :func:`spark_jobs.ingest.judge.judge`."""

    def __init__(self, settings: Settings) -> None:
        """Reads the mappings.

        Raises:
            SettingsError: an expression is not in the language.
        """
        self._limit, self._all = settings.ingest.max_record_bytes, settings.sources
        self._own = [one for one in self._all.values() if not one.has_mapping]
        self._mapped = Mapped(compile_sources(settings))
        self._is_sure = len(self._all) == 1 and not self._mapped.has_conditions
        self._only_named = named_by_others(self._all)
        given = {n: self._mapped.fields(n) if one.has_mapping else own_fields() for n, one in self._all.items()}
        fields = by_source(given, _TYPES, is_sure=self._is_sure)
        self.fields = with_lower_ids(fields) if settings.ingest.lower_ids else fields
        """By name, the fields of an event."""
        kept = {column.name: column.sql_type for column in kept_columns(self._all)}
        self.kept = by_source({name: self._mapped.kept(name) for name in self._all}, kept, is_sure=self._is_sure)
        """By name, the columns that sources keep."""

    def read(self, records: DataFrame) -> DataFrame:
        """``records`` (``raw``, ``text``, ``origin`` and more), parsed, with the name of their source."""
        read = parse.measure(records, self._limit)
        if lists := self._mapped.lists:
            found = [ElementList(path, _comes_from(self._named(self._mapped.of_list(path)))) for path in lists]
            read = expanded(read, found, self._mapped.schema)
        if self._own:
            read = parse.parse(read, self._is_own).withColumn("time", own_time())
        read = parse.add_keys(read, all_own=len(self._own) == len(self._all))
        return self._with_others(self._mapped.read(read).withColumn(SOURCE_NAME, self._name()))

    @property
    def form_rules(self) -> list[tuple[str, Column]]:
        """Verdicts on records that cannot be read in the form of their source, or that no source means."""
        no_source = [] if self._is_sure else [(events.NO_SOURCE, F.col(SOURCE_NAME).isNull())]
        return [*self._unreadable, *no_source]

    @property
    def _unreadable(self) -> list[tuple[str, Column]]:
        return [
            (events.NOT_AN_OBJECT, ~parse.is_object() & parse.is_one_value()),
            (
                events.MALFORMED_JSON,
                ~parse.is_object() | self._of_form(parse.is_malformed, lambda: self._mapped.is_malformed),
            ),
            (events.DUPLICATE_KEY, self._of_form(parse.has_duplicate_key, parse.has_key_twice)),
        ]

    @property
    def no_list(self) -> Column | None:
        """Why no source means a whole record, if that is what it lacks; None: no source has its records in a list."""
        if not self._mapped.lists:
            return None
        is_whole = F.col(LIST).isNull() | (F.col(LIST) == NO_LIST)
        return F.when(is_whole, F.lit(no_list_reason(self._mapped.lists)))

    @property
    def unknown_fields(self) -> Column | None:
        """The fields of a record that the mapping of its source does not read but must; None: no source is strict."""
        return self._mapped.unknown_fields

    def may_lack(self, field: str) -> Column | None:
        """Whether the record may lack ``field``; None: none may."""
        names = [name for name, one in self._all.items() if field in one.may_lack]
        return F.col(SOURCE_NAME).isin(*names) if names else None

    def is_lenient(self, name: str) -> Column | None:
        """Whether a wrong value of the field or kept column ``name`` is left out; None: no source does that."""
        names = [source for source, one in self._all.items() if name in one.lenient]
        return F.col(SOURCE_NAME).isin(*names) if names else None

    @property
    def _is_own(self) -> Column | None:
        """Whether a record may be in adloom's own format; None: all are."""
        return None if len(self._own) == len(self._all) else _comes_from(self._own)

    def _of_form(self, own: Callable[[], Column], mapped: Callable[[], Column]) -> Column:
        if not self._own:
            return mapped()
        return own() if self._is_own is None else F.when(self._is_own, own()).otherwise(mapped())

    def _name(self) -> Column:
        """The name of the first source that means the record."""
        if self._is_sure:
            return F.lit(next(iter(self._all)))
        chain = F.when(F.lit(False), F.lit(""))
        for name, one in self._all.items():
            if name not in self._only_named:
                chain = chain.when(_comes_from([one]) & self._mapped.is_meant(name), F.lit(name))
        return chain

    def _with_others(self, records: DataFrame) -> DataFrame:
        """``records`` once more for each source that takes them, too."""
        naming = {name: one.also for name, one in self._all.items() if one.also}
        if not naming:
            return records
        others = F.when(F.lit(False), F.array().cast("array<string>"))
        for name, also in naming.items():
            takers = [F.when(self._mapped.is_meant(other), F.lit(other)) for other in also]
            others = others.when(F.col(SOURCE_NAME) == name, F.array_compact(F.array(*takers)))
        cannot_be_read = reduce(or_, [broken for _, broken in self._unreadable])
        more = F.when(cannot_be_read, F.lit(None)).otherwise(others)
        names = F.concat(F.array(SOURCE_NAME), F.coalesce(more, F.array().cast("array<string>")))
        rows = records.withColumn(_NAMES, names).select("*", F.posexplode_outer(_NAMES).alias(_NUMBER, _NAME))
        is_other = F.col(_NUMBER) > 0
        is_further = F.col(IS_FURTHER) if IS_FURTHER in records.columns else F.lit(False)
        columns = {
            SOURCE_NAME: F.col(_NAME),
            IS_FURTHER: is_further | is_other,
            "source": F.when(is_other, F.concat("source", F.lit("+"), _NAME)).otherwise(F.col("source")),
        }
        return rows.withColumns(columns).drop(_NAMES, _NUMBER, _NAME)

    def _named(self, names: Iterable[str]) -> list[SourceSettings]:
        return [self._all[name] for name in names if name not in self._only_named]


_NAMES, _NUMBER, _NAME = "source_names", "source_number", "one_source"
"""Columns in between: the sources that take a record."""


def _comes_from(sources: Iterable[SourceSettings]) -> Column:
    """Whether the record comes from where one of ``sources`` has its records; where is null, any may mean it."""
    found = list(sources)
    if not all(one.origins for one in found):
        return F.lit(True)  # one of them means records of any origin
    origin = F.col("origin")
    topics = [topic for one in found for topic in one.topics]
    files = [one.origin_of_files for one in found if one.path]
    return origin.isNull() | comes_from_topics(topics) | origin.isin(files)
