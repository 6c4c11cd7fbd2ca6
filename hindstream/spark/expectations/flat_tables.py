"""Staged records as flat tables for Great Expectations.

Great Expectations' Spark engine takes a dot in a column's name for a step into a struct, and loses the way in some
expectations; so nested fields get ``__`` for the dots in the table (``key__window_start``), and dots again in what a
person sees (``key.window_start``). Binary fields are hexadecimal text. Lists, maps and headers are left out.

A frame says the same on pandas as on Spark: NaN is a missing value, -0.0 is 0.0, floats are doubles, a time without a
zone is one of UTC, and whole numbers and decimals are exact, beside missing ones too.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from statelib.commits import topic_path
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.storage.digests import sha256_of
from statelib.storage.errors import ObjectNotFoundError
from statelib.storage.hadoop import hadoop_uri
from statelib.topics.parquet.encodings import is_encoded
from statelib.topics.parquet.footer import read_footer

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

PartT = TypeVar("PartT")
SEPARATOR = "__"
_SMALL_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Column:
    """One flat column: ``path`` names the fields from the outside in."""

    path: tuple[str, ...]
    type: pa.DataType

    @property
    def name(self) -> str:
        """In the frame."""
        return SEPARATOR.join(self.path)

    @property
    def dotted(self) -> str:
        """For people."""
        return ".".join(self.path)


PARTITION = Column(("partition",), pa.int32())
"""The same in all rows of a file, and not in the file."""


@dataclass(frozen=True, slots=True)
class PandasFrame:
    """Rows in this process."""

    data: pd.DataFrame
    engine: str = "pandas"

    def rows(self, at: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Whole rows whose columns have the values of one of ``at`` (all with the same columns)."""
        if not at:
            return []
        names = list(at[0])
        wanted = {tuple(place[name] for name in names) for place in at}
        places = zip(*(self.data[name] for name in names), strict=True)
        found = self.data[[place in wanted for place in places]]
        return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]


@dataclass(frozen=True, slots=True)
class SparkFrame:
    """Rows on Spark."""

    data: DataFrame
    engine: str = "spark"

    def rows(self, at: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """As that of `PandasFrame`."""
        from pyspark.sql import functions as f  # noqa: PLC0415

        if not at:
            return []
        wanted = f.lit(False)
        for place in at:
            same = f.lit(True)
            for name, value in place.items():
                same &= f.col(name).eqNullSafe(f.lit(value))
            wanted |= same
        found = _in_pandas(self.data.filter(wanted).toArrow())
        return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]


Frame = PandasFrame | SparkFrame
"""Rows that a suite is run over."""


@lru_cache(maxsize=64)
def flat_columns(schema: pa.Schema) -> tuple[Column, ...]:
    """The columns of a topic's frame, ``partition`` last.

    Raises:
        ConfigurationError: Two fields would get one name (``a.b`` and ``a__b``).
    """
    columns = (*(column for field in schema for column in _leaves(field, ())), PARTITION)
    seen: dict[str, Column] = {}
    for column in columns:
        if column.name in seen:
            what = f"the fields {column.dotted} and {seen[column.name].dotted} cannot be told apart in an audit"
            raise ConfigurationError(what, next_step=f"rename one of them: {SEPARATOR} stands for a dot there")
        seen[column.name] = column
    return columns


def _leaves(field: pa.Field, outer: tuple[str, ...]) -> Iterator[Column]:
    path = (*outer, field.name)
    if pa.types.is_struct(field.type):
        for inner in field.type:
            yield from _leaves(inner, path)
    elif not pa.types.is_nested(field.type):
        yield Column(path, field.type)


def is_hex(data_type: pa.DataType) -> bool:
    """Whether a frame holds hexadecimal text for values of this type."""
    return bool(pa.types.is_binary(data_type) or pa.types.is_fixed_size_binary(data_type))


def flat_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a topic's flat tables, with Arrow's types."""
    return pa.schema([(column.name, column.type) for column in flat_columns(schema)])


def read_flat(warehouse: Storage, topic: str, schema: pa.Schema, file: ArchiveFile) -> Iterator[pa.Table]:
    """The records of a staged file as flat tables, one for each row group.

    Raises:
        CorruptedDataError: The file is missing or damaged.
    """
    columns = flat_columns(schema)
    with open_staged(warehouse, topic, file) as parquet:
        for group in range(parquet.num_row_groups):
            yield flat_row_group(parquet, group, schema, columns, file.partition)


def flat_row_group(
    parquet: pq.ParquetFile, group: int, schema: pa.Schema, columns: Sequence[Column], partition: int
) -> pa.Table:
    """The flat ``columns`` of a row group; nothing else is read. Columns that are read encoded stay so."""
    paths = {column.path for column in columns}
    expected = pa.schema(_pruned(schema, paths, ()))
    found = parquet.read_row_group(group, columns=[c.dotted for c in columns if c.path != PARTITION.path])
    plain = pa.schema([field.with_type(_plain(field.type)) for field in found.schema])
    table = found
    if not plain.equals(expected):
        # Another column or type is found by the check of the files, and is not to stop those of the rows.
        decoded = found if plain.equals(found.schema) else found.cast(plain)
        table = pa.concat_tables([expected.empty_table(), decoded], promote_options="permissive")
    return flat_table(table, columns, partition)


def flat_table(records: pa.Table, columns: Sequence[Column], partition: int) -> pa.Table:
    """The flat ``columns`` of a topic's records, all of one partition."""

    def flat(column: Column) -> pa.Array | pa.ChunkedArray:
        if column.path == PARTITION.path:
            return pa.repeat(pa.scalar(partition, PARTITION.type), len(records))
        return _leaf(records, column.path)

    return pa.table({column.name: flat(column) for column in columns})


def _plain(type_: pa.DataType) -> pa.DataType:
    """A type with the values of dictionaries for these."""
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_plain(field.type)) for field in type_])
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _pruned(fields: Iterable[pa.Field], paths: Container[tuple[str, ...]], outer: tuple[str, ...]) -> list[pa.Field]:
    """``fields`` with what leads to ``paths``, and nothing else."""
    pruned = []
    for field in fields:
        path = (*outer, field.name)
        inner = _pruned(field.type, paths, path) if pa.types.is_struct(field.type) else []
        if inner:
            pruned.append(field.with_type(pa.struct(inner)))
        elif path in paths:
            pruned.append(field)
    return pruned


@contextmanager
def open_staged(
    warehouse: Storage, topic: str, file: ArchiveFile, *, check_bytes: bool = False, encoded: Iterable[Column] = ()
) -> Iterator[pq.ParquetFile]:
    """A staged file, to be read; pages that are read have the checksums that they were written with.

    Args:
        warehouse: Where it is.
        topic: Whose records it has.
        file: The file.
        check_bytes: Whether to look for damage in all of its bytes (if their digest is known), not only in those read.
        encoded: What to give as dictionary and indices, of that which the file holds so.

    Raises:
        CorruptedDataError: The file is missing or damaged; also where that shows while it is read.
    """
    path = f"{topic_path(topic)}/{file.path}"
    try:
        with warehouse.open_input(path) as opened:
            if check_bytes and file.sha256 is not None and sha256_of(opened) != file.sha256:
                raise pa.ArrowInvalid("its bytes are not those that were written")
            footer = read_footer(opened)
            dictionaries = [column.dotted for column in encoded if is_encoded(footer, column.dotted)]
            with pq.ParquetFile(
                opened, metadata=footer, page_checksum_verification=True, read_dictionary=dictionaries
            ) as parquet:
                yield parquet
    except (ObjectNotFoundError, pa.ArrowException, OSError) as error:
        raise CorruptedDataError(
            f"a staged file cannot be read: {' '.join(str(error).split())}",
            topic=topic,
            partition=file.partition,
            file=warehouse.uri(path),
            next_step="run the same slice again: its next try writes all files again",
        ) from error


def pandas_frame(flat: Iterable[pa.Table], schema: pa.Schema) -> PandasFrame:
    """Flat tables of a topic with this schema, one after the other, in this process."""
    frame = _in_pandas(pa.concat_tables([flat_schema(schema).empty_table(), *flat], promote_options="permissive"))
    for column in flat_columns(schema):
        if is_hex(column.type):
            frame[column.name] = frame[column.name].map(lambda value: None if value is None else value.hex().upper())
    return PandasFrame(frame)


def table_frame(table: pa.Table) -> PandasFrame:
    """A small table as it is; a missing integer does not make floating-point numbers of the others."""
    import pandas as pd  # noqa: PLC0415

    nullable = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}
    return PandasFrame(table.to_pandas(types_mapper=nullable.get))


def _in_pandas(table: pa.Table) -> pd.DataFrame:
    """With types that say of each value whether it is missing, and hold all others as they are."""
    import pandas as pd  # noqa: PLC0415  (for those who have no frame to make)

    nullable = {
        pa.bool_(): pd.BooleanDtype(),
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.string(): pd.StringDtype("pyarrow"),  # as objects, some of pandas' hash tables end them at a zero byte
    }
    frame: pd.DataFrame = table.cast(compared_schema(table.schema)).to_pandas(types_mapper=nullable.get)
    doubles = frame.select_dtypes("float64").columns
    frame[doubles] += 0.0  # -0.0 becomes 0.0
    return frame


def compared_schema(schema: pa.Schema) -> pa.Schema:
    """With the types in which a frame holds values: floats as doubles, and times without a zone as times of UTC."""

    def compared(of: pa.DataType) -> pa.DataType:
        if pa.types.is_floating(of):
            return pa.float64()
        return pa.timestamp(of.unit, "UTC") if pa.types.is_timestamp(of) else of

    return pa.schema([field.with_type(compared(field.type)) for field in schema])


def _leaf(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    """A nested field; null where a struct around it is."""
    outer, *inner = path
    return pc.struct_field(table.column(outer), inner) if inner else table.column(outer)


def spark_frame(
    spark: SparkSession, warehouse: Storage, topic: str, schema: pa.Schema, files: Sequence[ArchiveFile]
) -> SparkFrame:
    """A topic's staged records on Spark, cached: each expectation is a query of its own."""
    from pyspark.sql import functions as f  # noqa: PLC0415
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    columns = flat_columns(schema)
    root = hadoop_uri(warehouse.uri(topic_path(topic)))
    if files:
        frame = spark.read.option("basePath", root).parquet(*(f"{root}/{file.path}" for file in files))
    else:
        frame = spark.createDataFrame([], from_arrow_schema(pa.schema([*schema, (PARTITION.name, PARTITION.type)])))
    selected = [_spark_column(f.col(".".join(f"`{name}`" for name in c.path)), c, f) for c in columns]
    flat = frame.select(*selected)
    if sum(file.rows for file in files) <= _SMALL_ROWS:
        flat = flat.coalesce(1)  # a query over little data costs its tasks, not its rows
    return SparkFrame(flat.cache())


def slice_frame(
    spark: SparkSession, schema: pa.Schema, parts: Sequence[PartT], read: Callable[[PartT], Iterator[pa.Table]]
) -> SparkFrame:
    """What ``read`` gives of each part, flat tables of a topic with this schema, on Spark, cached.

    Rows of Spark's carry the numbers of the parts; each task reads its own.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    compared = pa.schema([
        field.with_type(pa.string()) if is_hex(field.type) else field
        for field in compared_schema(flat_schema(schema))
    ])  # fmt: skip
    compared = pa.schema([
        field.with_type(pa.timestamp("us", field.type.tz)) if pa.types.is_timestamp(field.type) else field
        for field in compared
    ])  # fmt: skip

    def read_parts(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for table in read(parts[number]):
                    yield from (
                        pa.table([_compared(c) for c in table.columns], compared.names).cast(compared).to_batches()
                    )

    numbers = spark.range(0, len(parts), 1, max(len(parts), 1))
    return SparkFrame(numbers.mapInArrow(read_parts, from_arrow_schema(compared)).cache())


def _compared(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as a frame of Spark's has them."""
    if is_hex(column.type):
        return pa.chunked_array(
            [pa.array([v if v is None else v.hex().upper() for v in column.to_pylist()], pa.string())]
        )
    if pa.types.is_floating(column.type):
        column = pc.add(column.cast(pa.float64()), 0.0)
        return pc.if_else(pc.is_nan(column), None, column)
    return column


def _spark_column(column: Any, of: Column, f: Any) -> Any:
    if is_hex(of.type):
        column = f.hex(column)
    elif pa.types.is_floating(of.type):
        column = column.cast("double") + f.lit(0.0)  # some comparisons tell -0.0 from 0.0
        column = f.when(~f.isnan(column), column)
    elif pa.types.is_timestamp(of.type):
        column = column.cast("timestamp")
    return column.alias(of.name)
