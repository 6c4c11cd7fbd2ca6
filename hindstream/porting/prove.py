"""Proves a port: the application's own topology and the job take up the same records, and have to write the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hindstream.porting.explained import SEVERAL_TOPICS, other_orders, possible_reasons, shipped_reasons
from hindstream.porting.protocol import Answer, Failed, framed
from hindstream.porting.runner import short
from hindstream.porting.shrinking import MOST_TRIES, smallest
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.settings.semantics import rules_of
from statelib.testing.records import hashable, is_windowed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from hindstream.porting.engine import Engine
    from hindstream.porting.formats import Formats
    from hindstream.porting.outputs import Comparing, SinkComparison
    from hindstream.porting.protocol import Ready
    from hindstream.porting.runner import TopologyRunner
    from hindstream.porting.sample import Sample
    from statelib.job.job import Job
    from statelib.settings.semantics import Semantics


@dataclass(frozen=True, slots=True)
class Compared:
    """What both have made of some records.

    Attributes:
        sinks: By topic, what differs.
        dropped: How many records were dropped: by the application, and by the job.
    """

    sinks: tuple[SinkComparison, ...]
    dropped: tuple[int, int]

    @property
    def differing(self) -> int:
        """How many records differ, in all topics."""
        return sum(len(sink.pairs) for sink in self.sinks)

    @property
    def first(self) -> SinkComparison | None:
        """The first topic that differs; None: none does."""
        return next((sink for sink in self.sinks if sink.pairs), None)


@dataclass(frozen=True, slots=True)
class Smallest:
    """An input of which nothing can be left out, and what comes of it.

    Attributes:
        places: Of its records.
        sink: What both have written to the topic that differs.
        semantics: With which the job ran.
    """

    places: tuple[int, ...]
    sink: SinkComparison
    semantics: Semantics


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found.

    Attributes:
        compared: With the semantics that the job has.
        explained: Why differences are none of the port's: rows of docs/semantics.md; empty: there is none, or nobody
            knows.
        shipped: Those of the shipped library, if the differences go away with them.
        unexplained: How many differ all the same.
        smallest: The smallest input; None: nothing is unexplained.
        only_job: Sources that only the job reads.
        only_application: The same of the application.
        possible: Rows of docs/semantics.md that may be the reason of what is unexplained, though no run can show it.
    """

    compared: Compared
    explained: tuple[str, ...] = ()
    shipped: Semantics | None = None
    unexplained: int = 0
    smallest: Smallest | None = None
    only_job: tuple[str, ...] = ()
    only_application: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()

    @property
    def is_port(self) -> bool:
        """Whether nothing is left unexplained."""
        return not self.unexplained


class Prover:
    """See the module's docstring.

    Args:
        job: The port.
        sample: The records.
        runner: Runs the application.
        ready: Its topology, which the runner has found.
        engine: Runs the job.
        comparing: Compares what they have written.
        formats: The application's bytes.
        semantics: Those of the job.
        shipped: Those of the application's version of Kafka Streams.
        most_tries: How often both run again to make the input small.
    """

    def __init__(
        self,
        job: Job,
        sample: Sample,
        runner: TopologyRunner,
        ready: Ready,
        engine: Engine,
        comparing: Comparing,
        formats: Formats,
        semantics: Semantics,
        shipped: Semantics = "kafka-4.3",
        most_tries: int = MOST_TRIES,
    ) -> None:
        self._most_tries = most_tries
        self._job = job
        self._sample = sample
        self._runner = runner
        self._ready = ready
        self._engine = engine
        self._comparing = comparing
        self._semantics = semantics
        self._shipped = shipped
        self._topics = tuple(map(formats.name, sample.topics))
        self._frames = _frames(sample, formats)

    def prove(self) -> Proof:
        """Compares, and looks for reasons of what differs, or for the smallest input that shows it.

        Raises:
            ConfigurationError: The application reads none of the job's topics, or the bytes of a topic are not known.
            InputError: The application's code fails at a record.
            HindstreamError: The job fails, as in a real run.
        """
        only = self._sources()
        places = np.arange(len(self._sample))
        answer = self._theirs(places)
        found = self._compared(answer, places, self._semantics)
        if not found.differing:
            return Proof(found, only_job=only[0], only_application=only[1])
        semantics, best = self._semantics, found
        if rules_of(self._semantics) != rules_of(self._shipped):
            as_shipped = self._compared(answer, places, self._shipped)
            if not as_shipped.differing:
                return Proof(found, shipped_reasons(self._job.topology), self._shipped, 0, None, *only)
            if as_shipped.differing <= found.differing:
                semantics, best = self._shipped, as_shipped
        if self._is_of_order(places):
            return Proof(found, (SEVERAL_TOPICS,), None, 0, None, *only)
        smallest = self._smallest(places, best, semantics)
        return Proof(found, (), None, best.differing, smallest, *only, possible_reasons(self._job.topology))

    def _sources(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Topics that one of both reads alone. Of the application's own repartition topics nobody knows here."""
        theirs = set(self._ready.sources)
        if any(topic.startswith("/") for topic in theirs):  # patterns: nobody knows before they are given
            return (), ()
        ours = {*self._topics, *self._job.topology.read_back}
        unread = tuple(topic for topic in self._topics if topic not in theirs)
        if unread:
            step = "say what the application calls it: --topics FILE.py:NAME, with KafkaTopic(NAME, archive=TOPIC)"
            what = f"the application does not read {', '.join(unread)}; it reads {', '.join(sorted(theirs))}"
            raise ConfigurationError(what, job=self._job.name, next_step=step)
        internal = tuple(topic for topic in theirs if topic.endswith(("-repartition", "-topic")))
        return (), tuple(sorted(theirs - ours - set(internal)))

    def _theirs(self, places: NDArray[np.int64]) -> Answer:
        answer = self._runner.run(self._topics, [self._frames[place] for place in places.tolist()])
        if isinstance(answer, Failed):
            raise self._failure(answer, places)
        return answer

    def _failure(self, failed: Failed, places: NDArray[np.int64]) -> InputError:
        message = f": {failed.message}" if failed.message else ""
        what = f"the application fails at a record: {short(failed.exception)}{message}"
        place = {} if failed.record < 0 else self._sample.at(int(places[failed.record]))
        step = "give it the serdes and settings that it runs with: --topics FILE.py:NAME, --config FILE.properties"
        return InputError(what, **place, at=failed.place or None, next_step=step)

    def _compared(self, answer: Answer, places: NDArray[np.int64], semantics: Semantics) -> Compared:
        written = self._engine.run(places, semantics)
        sinks = self._comparing.compare(answer.written, written.sinks)
        return Compared(sinks, (answer.dropped, written.dropped))

    def _is_of_order(self, places: NDArray[np.int64]) -> bool:
        """Whether the application's own answer depends on which of several records of one time comes first."""
        for other in other_orders(self._sample, places):
            answer = self._theirs(other)
            if any(
                not self._compared(answer, places, of).differing
                for of in dict.fromkeys((self._semantics, self._shipped))
            ):
                return True
        return False

    def _smallest(self, places: NDArray[np.int64], found: Compared, semantics: Semantics) -> Smallest | None:
        def differing(some: NDArray[np.int64]) -> Compared | None:
            answer = self._runner.run(self._topics, [self._frames[place] for place in some.tolist()])
            if isinstance(answer, Failed):
                return None
            compared = self._compared(answer, some, semantics)
            return compared if compared.differing else None

        few = smallest(places, lambda some: differing(some) is not None, list(self._of_key(found)), self._most_tries)
        compared = differing(few)
        if compared is None or compared.first is None:
            return None
        return Smallest(tuple(few.tolist()), compared.first, semantics)

    def _of_key(self, found: Compared) -> Iterator[NDArray[np.bool_]]:
        """bool[n]: the records that have the key of the first difference."""
        if found.first is None:
            return
        key = _without_window(found.first.pairs[0].key)
        of_topics = []
        for table in self._sample.tables:
            keys = {}
            column = table["key"].combine_chunks()
            for row, one in enumerate(column.to_pylist()):
                keys[row] = hashable(_without_window(one)) == key
            of_topics.append(np.array([keys[row] for row in range(len(keys))], np.bool_))
        chosen = np.zeros(len(self._sample), np.bool_)
        for number, of_topic in enumerate(of_topics):
            mine = self._sample.topic == number
            chosen[mine] = of_topic[self._sample.row[mine]]
        yield chosen


def _frames(sample: Sample, formats: Formats) -> list[bytes]:
    """The records as the application gets them, by place."""
    of_topics = []
    for number, (topic, table) in enumerate(zip(sample.topics, sample.tables, strict=True)):
        keys, values = formats.source_bytes(topic, table)
        times = table["timestamp"].cast("int64").to_pylist()
        rows = zip(times, keys.to_pylist(), values.to_pylist(), table["headers"].to_pylist(), strict=True)
        of_topics.append([
            framed(number, time, key, value, _headers(headers)) for time, key, value, headers in rows
        ])  # fmt: skip
    return [of_topics[topic][row] for topic, row in zip(sample.topic.tolist(), sample.row.tolist(), strict=True)]


def _headers(headers: Sequence[dict[str, Any]] | None) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((header["key"], header["value"]) for header in headers or ())


def _without_window(key: Any) -> Any:
    while is_windowed(key):
        key = key["key"]
    return hashable(key)
