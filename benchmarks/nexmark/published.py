"""What others have published: events a second and core, the generator of events included."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A table of figures.

    Attributes:
        title: Whose.
        source: Where it stands, and what it was measured on.
        events_per_core_second: By query.
    """

    title: str
    source: str
    events_per_core_second: dict[str, float]

    def us(self, query: str) -> float | None:
        """CPU microseconds an event; None: nothing was published."""
        rate = self.events_per_core_second.get(query)
        return None if rate is None else 1e6 / rate


def _by_query(figures: str) -> dict[str, float]:
    return {name: float(figure) for name, figure in (pair.split("=") for pair in figures.split())}


_FELDERA_16_CORES = _by_query(
    "q0=6973987 q1=6595871 q2=6748549 q3=6608075 q4=4233521 q5=6589786 q6=3997921 q7=3136763 q8=6641870 q9=910680 "
    "q12=6682259 q13=3675255 q14=6858711 q15=3539322 q16=810701 q17=3870269 q18=1358216 q19=1201216 q20=1352192 "
    "q21=6634820 q22=6305568"
)
_FLINK_THOUSANDS = _by_query(
    "q0=155.02 q1=157.94 q2=175.21 q3=152.12 q4=34.33 q5=22.14 q7=12.33 q8=146.14 q9=14.24 q10=57.81 q11=39.7 "
    "q12=75.67 q13=130.73 q14=161.23 q15=72.42 q16=18.65 q17=116.8 q18=53.7 q19=44.04 q20=18.98 q21=98.49 q22=129.96"
)

PUBLISHED = (
    Published(
        "Flink, published",
        "github.com/nexmark/nexmark, GUIDE_V1.md at 6b3646c, an example of results: Flink 1.13 to 2.0, 100 million "
        "events, eight task managers on three workers of 8 cores and 32 GB each, incremental checkpoints in RocksDB, "
        "mini-batches of 2 s; 'Throughput/Cores' of the cores that were busy",
        {query: thousands * 1000 for query, thousands in _FLINK_THOUSANDS.items()},
    ),
    Published(
        "Feldera, published",
        "github.com/feldera/feldera, benchmark/README.md at 6c08192, a sample of results: streaming, 16 cores of 'one "
        "particular system', a sixteenth of the throughput",
        {query: rate / 16 for query, rate in _FELDERA_16_CORES.items()},
    ),
)
