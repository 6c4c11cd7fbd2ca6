"""Builds a recorded test's topology by the same calls of the DSL here."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import Branched, Printed, StreamsBuilder, Topology
from statelib.dsl.optimization import PROCESSORS, SETTING
from tests.peers import options
from tests.peers.calls import Call
from tests.peers.functions import Table, results, type_or_string
from tests.peers.mappers import joiner, mapper, part, predicate, records, topics, values
from tests.peers.options import kind
from tests.peers.recording import NotExpressed, type_of, type_of_serde
from tests.peers.scripts import Acting, ActingFixedKey, Script, Supplier, TransformerSupplier, Transforming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.peers.recording import Recording

_APPLICATION = "application"
REFUSED = {
    "the topology has no source but global tables": "a topology of global tables alone",
    "is not a valid name of a topic": "a name that Kafka refuses when the topic is made",
    "is not a valid name of a node": "a name that Kafka refuses when the topic is made",
    "the topic of a global table is written by the same topology": "a global table of a topic that the topology writes",
}
"""What is refused here for a good reason: a part of the message, and what the table of results says of it."""
_INTERNALS = {"enableSendingOldValues", "valueGetterSupplier", "addGraphNode", "graphNode", "internalTopologyBuilder"}
_WITHOUT_EFFECT = {"queryableStoreName", "describe"}


class Building:
    """A topology as it is built.

    Attributes:
        scripts: Of each processor of the test, by the number of its function.
        tables: The same of the functions of ``peek`` and ``foreach``, of which what they see is the result.
        is_optimised_later: Whether it was built before, with another optimisation: there that part stays as it was.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._application = recording.settings.get("application.id", _APPLICATION)  # buffers count its bytes
        self._made: dict[int, Any] = {}
        self._stores: dict[str, Any] = {}
        self._topology: Topology | None = None
        self._built_with: str | None = None
        self.is_optimised_later = False
        self._is_extended = False
        self.scripts: dict[int, Script] = {}
        self.tables: dict[int, Table] = {}

    def topology(self) -> Topology:
        """It.

        Raises:
            NotExpressed: A call has no counterpart here.
            ConfigurationError: It is refused: see `REFUSED`.
        """
        self._make(self._recording.calls)
        if self._topology is None:
            raise NotExpressed("a topology that was never built")
        return self._topology

    # --- calls -------------------------------------------------------------------------------------------------------

    def _make(self, calls: Sequence[dict[str, Any]]) -> None:
        for call in calls:
            if "threw" not in call and call["method"] not in _WITHOUT_EFFECT:
                self._one(self._call(call))

    def _one(self, call: Call) -> None:
        if call.method in _INTERNALS:
            raise NotExpressed(f"Kafka Streams' internals: {call.method}()")
        self._is_extended |= self._topology is not None and call.method == "addProcessor"
        method = getattr(self, f"_{_snake(call.method)}", None)
        if method is None:
            raise NotExpressed(f"{call.of_class.removesuffix('Impl')}.{call.method}()")
        made = method(call)
        if "is" in call.told:
            self._made[call.told["is"]] = made
        for name, number in call.told.get("branches", {}).items():
            self._made.setdefault(number, made.get(name))

    def _object(self, number: int, of_class: str) -> Any:
        """What a call has made, or is made on; a builder or topology is made with its first call."""
        if number not in self._made:
            if of_class == "StreamsBuilder":
                self._made[number] = StreamsBuilder(self._application)
            elif of_class in {"Topology", "TopologyWrapper"}:
                self._made[number] = self._topology = Topology(self._application)
            else:
                raise NotExpressed("a stream or table that was made by other means")
        return self._made[number]

    def _function(self, number: int) -> dict[str, Any]:
        """A function of the test."""
        return self._recording.functions[str(number)]

    def _call(self, told: dict[str, Any]) -> Call:
        return Call(told, self._object, self._function)

    # --- the builder -------------------------------------------------------------------------------------------------

    def _stream(self, call: Call) -> Any:
        (topic, *_) = call.told["with"]
        consumed = call.option("Consumed")
        if isinstance(topic, dict) and "pattern" in topic:
            pattern = re.compile(topic["pattern"])
            return call.on.stream(pattern, options.consumed(consumed), topics=self._matching(pattern))
        names = [topic] if isinstance(topic, str) else topic["list"]
        self._check_read_again(names, consumed)
        return call.on.stream(names, options.consumed(consumed))

    def _check_read_again(self, names: Sequence[str], consumed: dict[str, Any] | None) -> None:
        """Looks whether what the topology writes to a topic is read as it was written: here no bytes are in between."""
        sent = [event["record"] for event in self._recording.events if event.get("sent") in names]
        for number, serde in enumerate(("keySerde", "valueSerde")):
            written = type_of([record[number] for record in sent])
            read = type_of_serde(consumed["fields"][serde]) if consumed else None
            if written is not None and read not in {None, written}:
                raise NotExpressed("a topic that is written as bytes and read as something else")

    def _table(self, call: Call) -> Any:
        given = [call.materialized(), options.consumed(call.option("Consumed"))]
        return call.on.table(call.texts[0], *given)

    def _global_table(self, call: Call) -> Any:
        given = [call.materialized(), options.consumed(call.option("Consumed"))]
        return call.on.global_table(call.texts[0], *given)

    def _build(self, call: Call) -> Any:
        told = call.option("properties")
        properties = told["properties"] if told else {}
        fixed = properties.get(PROCESSORS, self._recording.settings.get(PROCESSORS, "false"))
        built_with = {SETTING: properties.get(SETTING, "none"), PROCESSORS: fixed}
        self.is_optimised_later |= self._built_with not in {None, built_with[SETTING]}
        self._built_with = built_with[SETTING]
        if not self._is_extended:  # else it has what was added to it, and Kafka Streams' builder gives the same again
            self._topology = call.on.build(built_with)
        return self._topology

    def _matching(self, pattern: re.Pattern[str]) -> list[str]:
        """The topics of the test that match a pattern, which are listed here; if nothing is sent, one that does."""
        piped = dict.fromkeys(event["pipe"] for event in self._recording.piped)
        matching = [topic for topic in piped if pattern.fullmatch(topic)]
        one = re.sub(r"\[(.).*?\]", r"\1", pattern.pattern).replace(r"\d", "0").replace(".*", "-")
        if not matching and not pattern.fullmatch(one):
            raise NotExpressed("a pattern of topics to which nothing is sent")
        return matching or [one]

    def _add_state_store(self, call: Call) -> Any:
        (told, *rest) = call.told["with"]
        builder = self._store(told)
        names = rest[0]["list"] if rest else []
        return call.on.add_state_store(builder, *names)

    def _add_global_store(self, call: Call) -> Any:
        builder = self._store(call.told["with"][0])
        texts, consumed = call.texts, options.consumed(call.option("Consumed"))
        if isinstance(call.on, StreamsBuilder):
            return call.on.add_global_store(builder, texts[0], consumed, self._supplier(call))
        return call.on.add_global_store(builder, *texts, self._supplier(call))

    def _add_read_only_state_store(self, call: Call) -> Any:
        builder = self._store(call.told["with"][0])
        return call.on.add_read_only_state_store(builder, *call.texts, self._supplier(call))

    def _add_source(self, call: Call) -> Any:
        told = call.option("pattern")
        if told is None:
            return call.on.add_source(call.texts[0], *call.listed())
        pattern = re.compile(told["pattern"])
        return call.on.add_source(call.texts[0], pattern, topics=self._matching(pattern))

    def _add_processor(self, call: Call) -> Any:
        types = self._forwarded(call.functions[0])
        return call.on.add_processor(call.texts[0], self._supplier(call), *(call.listed()), **types)

    def _add_sink(self, call: Call) -> Any:
        name, *topic = call.texts
        if any("Partitioner" in kind(one) for one in call.told["with"]):
            raise NotExpressed("a partitioner of the test's own")
        parents = call.listed()
        if topic:
            return call.on.add_sink(name, topic[0], *parents)
        return call.on.add_sink(name, mapper(call.function, pa.string()), *parents, topics=topics(call.function))

    def _connect_processor_and_state_stores(self, call: Call) -> Any:
        return call.on.connect_processor_and_state_stores(call.texts[0], *(call.listed()))

    # --- streams -----------------------------------------------------------------------------------------------------

    def _filter(self, call: Call) -> Any:
        return call.on.filter(predicate(call.function), **call.named_and_stored())

    def _filter_not(self, call: Call) -> Any:
        return call.on.filter_not(predicate(call.function), **call.named_and_stored())

    def _map_values(self, call: Call) -> Any:
        return call.on.map_values(mapper(call.function), **call.named_and_stored())

    def _select_key(self, call: Call) -> Any:
        return call.on.select_key(mapper(call.function), **call.named())

    def _map(self, call: Call) -> Any:
        return call.on.map(part(call.function, 0), part(call.function, 1), **call.named())

    def _flat_map_values(self, call: Call) -> Any:
        return call.on.flat_map_values(values(call.function), **call.named())

    def _flat_map(self, call: Call) -> Any:
        return call.on.flat_map(records(call.function), **call.named())

    def _peek(self, call: Call) -> Any:
        return call.on.peek(self._watched(call), **call.named())

    def _foreach(self, call: Call) -> Any:
        return call.on.foreach(self._watched(call), **call.named())

    def _watched(self, call: Call) -> Table:
        table = self.tables[call.functions[0]] = Table(call.function)
        return table

    def _print(self, call: Call) -> Any:
        name = options.name_of(call.option("Printed"), "processorName")
        printed = Printed.to_file(os.devnull)
        return call.on.print(printed if name is None else printed.with_name(name))

    def _merge(self, call: Call) -> Any:
        return call.on.merge(call.refs[0], **call.named())

    def _split(self, call: Call) -> Any:
        return call.on.split(*call.named().values())

    def _branch(self, call: Call) -> Any:
        return call.on.branch(predicate(call.function), *self._branched(call))

    def _default_branch(self, call: Call) -> Any:
        return call.on.default_branch(*self._branched(call))

    def _no_default_branch(self, call: Call) -> Any:
        return call.on.no_default_branch()

    def _branched(self, call: Call) -> list[Any]:
        told = call.option("Branched")
        if told is None:
            return []
        name = told["fields"]["name"]
        if "chain_of" not in call.told:
            return [Branched() if name is None else Branched.as_(name)]

        def chain(stream: Any) -> Any:
            self._made[call.told["chain_of"]] = stream
            self._make(call.told["chain"])
            return self._made[call.told["chain_is"]] if "chain_is" in call.told else None

        if told["fields"]["chainConsumer"] is not None:
            return [Branched.with_consumer(chain, name)]
        return [Branched.with_function(chain, name)]

    def _repartition(self, call: Call) -> Any:
        return call.on.repartition(options.repartitioned(call.option("Repartitioned")))

    def _to(self, call: Call) -> Any:
        produced = options.produced(call.option("Produced"))
        if call.texts:
            return call.on.to(call.texts[0], produced)
        return call.on.to(mapper(call.function, pa.string()), produced, topics=topics(call.function))

    def _to_table(self, call: Call) -> Any:
        return call.on.to_table(**call.named_and_stored())

    def _group_by_key(self, call: Call) -> Any:
        return call.on.group_by_key(options.grouped(call.option("Grouped")))

    def _group_by(self, call: Call) -> Any:
        grouped = options.grouped(call.option("Grouped"))
        if call.of_class == "KTableImpl":
            return call.on.group_by(part(call.function, 0), part(call.function, 1), grouped)
        return call.on.group_by(mapper(call.function), grouped)

    def _process(self, call: Call) -> Any:
        return call.on.process(
            self._supplier(call), *call.listed(), **self._forwarded(call.functions[0]), **call.named()
        )

    def _process_values(self, call: Call) -> Any:
        types = self._forwarded(call.functions[0])
        value_type = types["value_type"]
        return call.on.process_values(self._supplier(call), *call.listed(), value_type=value_type, **call.named())

    # --- joins -------------------------------------------------------------------------------------------------------

    def _join(self, call: Call) -> Any:
        return self._joined(call, call.on.join)

    def _left_join(self, call: Call) -> Any:
        return self._joined(call, call.on.left_join)

    def _outer_join(self, call: Call) -> Any:
        return self._joined(call, call.on.outer_join)

    def _joined(self, call: Call, join: Callable[..., Any]) -> Any:
        joined = joiner(self._function(call.functions[-1]))
        other = call.refs[0]
        if call.of_class == "KTableImpl":
            foreign = {"foreign_key": mapper(call.function)} if len(call.functions) > 1 else {}
            if call.option("TableJoined"):
                return join(other, joined, **call.named_and_stored("TableJoined"), **foreign)
            return join(other, joined, **call.named_and_stored(), **foreign)
        if len(call.functions) > 1:
            return join(other, mapper(call.function), joined, *call.named().values())
        windows = call.option("JoinWindows")
        if windows:
            return join(
                other, joined, options.join_windows(windows), options.stream_joined(call.option("StreamJoined"))
            )
        return join(other, joined, options.joined(call.option("Joined")))

    # --- tables ------------------------------------------------------------------------------------------------------

    def _to_stream(self, call: Call) -> Any:
        if call.functions:
            return call.on.to_stream(mapper(call.function), **call.named())
        return call.on.to_stream(**call.named())

    def _suppress(self, call: Call) -> Any:
        return call.on.suppress(options.suppressed(call.told["with"][0]))

    def _transform_values(self, call: Call) -> Any:
        told = self._function(call.functions[0])
        script = self._script(call.functions[0], told)
        answers = [one for one in told["calls"] if "of" in one and "is" in one]
        type_ = type_or_string([one["is"] for one in answers])
        if not call.listed() and not told.get("stores"):  # it is a function
            plainly = {**told, "calls": answers}
            return call.on.transform_values(mapper(plainly, type_), **call.named_and_stored())
        supplier: Any = partial(Transforming, script)
        if told.get("stores"):
            supplier = TransformerSupplier(supplier, [self._store(store) for store in told["stores"]])
        return call.on.transform_values_with(
            supplier,
            store_names=call.listed(),
            value_type=type_,
            **call.named_and_stored(),
        )

    # --- aggregations ------------------------------------------------------------------------------------------------

    def _windowed_by(self, call: Call) -> Any:
        return call.on.windowed_by(options.windows(call.told["with"][0]))

    def _emit_strategy(self, call: Call) -> Any:
        return call.on.emit_strategy(options.emit_strategy(call.told["with"][0]))

    def _cogroup(self, call: Call) -> Any:
        return call.on.cogroup(*call.refs, Table(call.function))

    def _count(self, call: Call) -> Any:
        return call.on.count(**call.named_and_stored())

    def _reduce(self, call: Call) -> Any:
        functions = [Table(self._function(number)) for number in call.functions]
        return call.on.reduce(*functions, **call.named_and_stored())

    def _aggregate(self, call: Call) -> Any:
        initializer, *others = call.functions
        made = [result for number in self._values_of(call) for result in results(self._function(number))]
        functions = [Table(self._function(number)) for number in others]
        return call.on.aggregate_with(
            Table(self._function(initializer)), *functions, type_or_string(made), **call.named_and_stored()
        )

    def _values_of(self, call: Call) -> list[int]:
        """The functions whose results are the values of an aggregation, those of cogrouped streams included."""
        numbers, on = list(call.functions), call.told["on"]
        for other in reversed(list(_all(self._recording.calls))):
            if other.get("is") == on and other["method"] in {"cogroup", "windowedBy"}:
                numbers += self._call(other).functions
                on = other["on"]
        return numbers

    # --- processors --------------------------------------------------------------------------------------------------

    def _script(self, number: int, told: dict[str, Any]) -> Script:
        self.scripts[number] = Script(told)
        return self.scripts[number]

    def _supplier(self, call: Call) -> Any:
        told = call.function
        script = self._script(call.functions[0], told)
        acting = ActingFixedKey if told["type"] == "FixedKeyProcessorSupplier" else Acting
        if told.get("stores"):
            return Supplier(partial(acting, script), [self._store(store) for store in told["stores"]])
        return partial(acting, script)

    def _forwarded(self, number: int) -> dict[str, pa.DataType | None]:
        actions = Script(self._function(number)).actions()
        records = [action["forward"] for action in actions if "forward" in action]
        key_type, value_type = (type_of([record[part] for record in records]) for part in (0, 1))
        if key_type is not None and pa.types.is_struct(key_type):
            key_type = None
        return {"key_type": key_type, "value_type": value_type}

    def _store(self, told: dict[str, Any]) -> Any:
        name = (told or {}).get("fields", {}).get("name")
        if name is None:
            raise NotExpressed("a mock in place of a store")
        if name not in self._stores:
            puts = [
                action["with"]
                for function in self._recording.functions.values()
                if function["type"].endswith("Supplier")
                for action in Script(function).actions()
                if action.get("store") == name
            ]
            types = (type_of([put[0] for put in puts]), type_of([_unstamped(put[1]) for put in puts if len(put) > 1]))
            self._stores[name] = options.store_builder(told, types)
        return self._stores[name]


def _all(calls: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for call in calls:
        yield call
        yield from _all(call.get("chain", []))


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _unstamped(told: Any) -> Any:
    return told["stamped"] if isinstance(told, dict) and "stamped" in told else told
