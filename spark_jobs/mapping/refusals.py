"""Functions of Spark SQL that the language leaves out, and why."""

import difflib
from collections.abc import Iterable

from spark_jobs.mapping.errors import RefusalError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_AGGREGATES = _words(
    """any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or
    collect_list collect_set corr count count_if covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric hll_sketch_agg kurtosis last last_value listagg max max_by mean median min min_by mode percentile
    percentile_approx regr_count regr_slope skewness some std stddev stddev_pop stddev_samp string_agg sum try_avg
    try_sum var_pop var_samp variance"""
)
_WINDOWS = _words("cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number")
_GENERATORS = _words("explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple sequence")
_NOT_DETERMINISTIC = _words(
    """current_catalog current_database current_date current_schema current_time current_timestamp
    current_timezone current_user curdate input_file_name input_file_block_start input_file_block_length localtimestamp
    monotonically_increasing_id now rand randn random randstr session_user shuffle spark_partition_id unix_timestamp
    uniform user uuid version"""
)
_FOREIGN = _words("reflect java_method try_reflect")
_LAMBDAS = _words(
    """aggregate array_sort exists filter forall map_filter map_zip_with reduce
    transform transform_keys transform_values zip_with"""
)
_FLOATS = _words(
    """acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees double e exp expm1 float ln log log10 log1p
    log2 pi pow power radians sec signum sin sinh sqrt tan tanh"""
)
_RAISING = _words("assert_true raise_error")
_RENAMED = {
    "ilike": "lower(text) like 'pattern'",
    "substring_index": "split_part",
    "json_extract": "get_json_object",
    "from_unixtime": "timestamp_seconds",
    "to_date": "date_trunc('day', …)",
    "date": "date_trunc('day', …)",
    "parse_url": "regexp_extract",
    "sha256": "sha2(text, 256)",
    "int": "cast(… as bigint)",
    "bigint": "cast(… as bigint)",
    "decimal": "cast(… as decimal)",
    "string": "cast(… as string)",
    "boolean": "cast(… as boolean)",
    "timestamp": "cast(… as timestamp)",
    "try_to_timestamp": "to_timestamp",
    "try_divide": "a / b, which never raises here",
    "try_add": "a + b, which never raises here",
    "nvl2": "if(a is not null, b, c)",
    "isnull": "a is null",
    "isnotnull": "a is not null",
}

_REASONS = (
    (_AGGREGATES, "is an aggregate: a mapping sees one record at a time", ""),
    (_WINDOWS, "is a window function: a mapping sees one record at a time", ""),
    (_GENERATORS, "gives several rows: a record is one event", "name one element: $.list[0]"),
    (
        _NOT_DETERMINISTIC,
        "is not deterministic: a replayed batch would give other rows",
        "read the value from the record",
    ),
    (_FOREIGN, "calls foreign code", ""),
    (_LAMBDAS, "takes a function: mappings have no lambdas", "name one element: $.list[0]"),
    (_FLOATS, "gives a floating point: money and ids pass through none", "use NUMBER arithmetic: + - * / round"),
    (_RAISING, "stops a batch: a mapping never does", ""),
)


def unknown_function(name: str, known: Iterable[str]) -> RefusalError:
    """Why the function ``name`` cannot be called, and what was perhaps meant."""
    lower = name.lower()
    if lower in {"max", "min"}:
        return RefusalError(
            f"{lower} is an aggregate: a mapping sees one record at a time",
            f"of several values use {'greatest' if lower == 'max' else 'least'}",
        )
    for names, reason, remedy in _REASONS:
        if lower in names:
            return RefusalError(f"{lower} {reason}", remedy)
    if lower in _RENAMED:
        return RefusalError(f"{lower} is no function of the mapping language", f"use {_RENAMED[lower]}")
    meant = difflib.get_close_matches(lower, sorted(name for name in known if name.isidentifier()), n=1)
    remedy = f"did you mean {meant[0]}?" if meant else "docs/mapping.md lists the functions"
    return RefusalError(f"{name} is no function of the mapping language", remedy)
