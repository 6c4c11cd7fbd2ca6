"""Records as a frame of whichever library one works with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import polars as pl


class Frames(ABC):
    """Records of a topic that become a frame when they are asked for."""

    @abstractmethod
    def _tables(self) -> Iterator[tuple[int, pa.Table]]:
        """Partition and records, one after the other."""

    def to_arrow(self, *, flat: bool = True) -> pa.Table:
        """As a table of pyarrow."""
        parts = [
            rows.add_column(
                0, pa.field("partition", pa.int32()), pa.repeat(pa.scalar(partition, pa.int32()), len(rows))
            )
            for partition, rows in self._tables()
        ]
        table = pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
        while flat and any(pa.types.is_struct(field.type) for field in table.schema):
            table = table.flatten()
        return table

    def to_pandas(self, *, flat: bool = True) -> pd.DataFrame:
        """As a frame of pandas."""
        frame: pd.DataFrame = self.to_arrow(flat=flat).to_pandas()
        return frame

    def to_polars(self, *, flat: bool = True) -> pl.DataFrame:
        """As a frame of polars, which Hindstream does not bring along.

        Raises:
            ConfigurationError: It is not installed.
        """
        try:
            import polars as pl  # noqa: PLC0415 - optional
        except ImportError as error:
            raise ConfigurationError("polars is not installed", next_step="pip install polars") from error
        frame = pl.from_arrow(self.to_arrow(flat=flat))
        assert isinstance(frame, pl.DataFrame)  # noqa: S101 - a table is none of a series
        return frame
