"""How each kind of argument is spelled: for messages about arguments that do not fit (`statelib.calls.checked`)."""

from __future__ import annotations

NAME_OF = {
    "Branched": "branched",
    "Consumed": "consumed",
    "Deduplicated": "deduplicated",
    "Grouped": "grouped",
    "Joined": "joined",
    "Materialized": "materialized",
    "Named": "named",
    "Printed": "printed",
    "Produced": "produced",
    "Repartitioned": "repartitioned",
    "StreamJoined": "joined",
    "Suppressed": "suppressed",
    "TableJoined": "named",
}
"""Of each class of objects that configure: what the parameter for one is called, in all methods."""

_MAPPER = (
    'give a path such as "carrier.name", a pyarrow expression, a dict of these, a function of a batch '
    "(pyarrow.RecordBatch), or per_record(function, arrow_type), which is called with each record's key and value, or "
    "in a join with left and right"
)
_WINDOWS = (
    "TimeWindows.of_size_and_grace(size, grace), SlidingWindows.of_time_difference_and_grace(difference, grace) or "
    "SessionWindows.of_inactivity_gap_and_grace(gap, grace)"
)
_TABLE = "join it with what StreamsBuilder.table(), .global_table() or .stream() gives"
_STREAM = "join the stream with the table, stream.join(table, joiner), or make it one: stream.to_table()"
_GLOBAL = "streams are joined with global tables: to_stream().join(global_table, key_mapper, joiner)"
_WITH_TYPE = "aggregate_with(initializer, aggregator, arrow_type) takes functions"
_STRICT = "use BufferConfig.unbounded(), or add .spill_to_disk_when_full() or .shut_down_when_full() to its bounds"

WRITTEN = {
    "Aggregation": 'give count(), sum_("field"), max_("field") or another aggregate function',
    "AlignedWindows": f"write {_WINDOWS}",
    "AnyBufferConfig": "write BufferConfig.unbounded(), .max_records(n) or .max_bytes(n)",
    "Branched": 'write Branched.as_("name")',
    "BufferConfig": "write BufferConfig.unbounded(), .max_records(n) or .max_bytes(n)",
    "BuiltInDslStoreSuppliers": "give BuiltInDslStoreSuppliers.ROCKS_DB or .IN_MEMORY: there are no stores of your own",
    "Consumed": "write Consumed.with_(key_serde, value_serde)",
    "Deduplicated": 'write Deduplicated.as_("name")',
    "GlobalKTable": "StreamsBuilder.global_table(topic) gives one",
    "Grouped": 'write Grouped.as_("name")',
    "Iterable": "give a list",
    "Joined": 'write Joined.as_("name")',
    "JoinWindows": "write JoinWindows.of_time_difference_and_grace(difference, grace)",
    "KStream": "StreamsBuilder.stream(topic) gives one",
    "KTable": "StreamsBuilder.table(topic), to_table() and aggregations give one",
    "MapperLike": _MAPPER,
    "Mapping": "give a dict",
    "Materialized": 'write Materialized.as_("name")',
    "Named": 'write Named.as_("name")',
    "ProcessorSupplierLike": "give the processor's class, or a function that makes one: a new one for each task",
    "Printed": 'write Printed.to_sys_out() or Printed.to_file("path")',
    "ValueTransformerSupplierLike": "give the transformer's class, or a function that makes a new one for each task",
    "Produced": "write Produced.with_partitions(n) or Produced().with_name(name)",
    "Repartitioned": 'write Repartitioned.as_("name")',
    "Stream": "StreamsBuilder.stream(topic) gives one",
    "Table": "StreamsBuilder.table(topic), to_table() and aggregations give one",
    "SchemaSource": 'write hindstream.kafka.SchemaRegistry("https://registry.example.com")',
    "Serde": "JsonSerde(arrow_type), AvroSerde, ProtobufSerde, StringSerde, or serde_for(arrow_type)",
    "SerdeLike": "give pa.string(), pa.int64() and so on, or a serde such as JsonSerde(arrow_type)",
    "SessionWindows": "write SessionWindows.of_inactivity_gap_and_grace(gap, grace)",
    "SlidingWindows": f"write {_WINDOWS}",
    "StreamJoined": 'write StreamJoined().with_name("name")',
    "StrictBufferConfig": _STRICT,
    "Suppressed": "write Suppressed.until_window_closes(buffer) or Suppressed.until_time_limit(time, buffer)",
    "TableJoined": "write TableJoined.with_(partitioner, other_partitioner)",
    "Topology": "StreamsBuilder.build() gives one, or Topology(application_id)",
    "datetime": "write datetime(2024, 1, 1, tzinfo=UTC)",
    "int": "give a whole number",
    "pa.DataType": "give the Arrow type: pa.int64(), pa.string(), pa.struct([...]) and so on",
    "str": "give its name as a str",
    "timedelta": "write timedelta(minutes=5) and so on",
}
"""By the name in an annotation: how one is written, or who gives one."""

_EXTRACTOR = "write to(per_record(extractor, pa.string()), topics=[...]), with all topics that it may give"
_FOREIGN_KEY = "the key of the other table goes by name: join(other, joiner, foreign_key=...)"

HOW = {
    ("to", "topic", "Callable"): _EXTRACTOR,
    ("KStream.join", "other", "*"): _TABLE,
    ("KStream.left_join", "other", "*"): _TABLE,
    ("join", "other", "KStream"): _STREAM,
    ("left_join", "other", "KStream"): _STREAM,
    ("outer_join", "other", "KStream"): _STREAM,
    ("join", "other", "GlobalKTable"): _GLOBAL,
    ("left_join", "other", "GlobalKTable"): _GLOBAL,
    ("outer_join", "other", "GlobalKTable"): _GLOBAL,
    ("join", "named", "Callable"): _FOREIGN_KEY,
    ("join", "named", "str"): f'write Named.as_("name"); {_FOREIGN_KEY}',
    ("join", "named", "dict"): _FOREIGN_KEY,
    ("join", "named", "Expression"): _FOREIGN_KEY,
    ("left_join", "named", "Callable"): _FOREIGN_KEY,
    ("left_join", "named", "str"): f'write Named.as_("name"); {_FOREIGN_KEY}',
    ("left_join", "named", "dict"): _FOREIGN_KEY,
    ("left_join", "named", "Expression"): _FOREIGN_KEY,
    ("aggregate", "functions", "Callable"): _WITH_TYPE,
    ("aggregate", "functions", "Aggregation"): 'give it a name: aggregate({"name": count()})',
    ("aggregate", "functions", "*"): 'write aggregate({"flights": count(), "delay": mean_("dep_delay")})',
    ("aggregate_with", "merger", "*"):
        "a session needs a merger: give merger=, a function of (key, aggregate, other_aggregate)",
    ("windowed_by", "windows", "*"): f"write {_WINDOWS}",
    ("process", "processor_supplier", "Processor"): "give its class, or a function that makes a new one for each task",
    ("Job", "topology", "StreamsBuilder"): "give what its build() gives: Job(name, builder.build())",
    ("TopologyTestDriver", "topology", "StreamsBuilder"): "give what its build() gives",
    ("TopologyTestDriver", "topology", "Job"): "give its topology: job.topology",
}  # fmt: skip
"""By method (of a class), parameter and the class of what was given; ``Callable``: any function, ``*``: all else."""

MISSING = {
    ("join", "windows"): "two streams are joined within windows: "
    "join(other, joiner, JoinWindows.of_time_difference_and_grace(difference, grace))",
    ("left_join", "windows"): "two streams are joined within windows: "
    "left_join(other, joiner, JoinWindows.of_time_difference_and_grace(difference, grace))",
    ("outer_join", "windows"): "two streams are joined within windows: "
    "outer_join(other, joiner, JoinWindows.of_time_difference_and_grace(difference, grace))",
    ("aggregate_with", "arrow_type"): "give the Arrow type of the aggregate behind the functions: pa.int64(), say",
    ("aggregate_with", "merger"): "give a merger=, which makes one aggregate of those of two sessions, and the Arrow "
    "type of the aggregate: aggregate_with(initializer, aggregator, merger, arrow_type)",
    ("per_record", "arrow_type"): "give the Arrow type of what the function gives: per_record(function, pa.int64())",
}
"""By method and parameter: what to write where it was left out."""

_ACTION = "(key, value), or (batch), a pyarrow.RecordBatch"

ARGUMENTS = {
    ("aggregate_with", "initializer"): "()",
    ("aggregate_with", "merger"): "(key, aggregate, other_aggregate)",
    ("aggregate_with", "*"): "(key, value, aggregate)",
    ("foreach", "action"): _ACTION,
    ("peek", "action"): _ACTION,
    ("reduce", "*"): "(aggregate, value)",
    ("with_consumer", "consumer"): "(branch), a KStream",
    ("with_function", "function"): "(branch), a KStream",
}
"""By method and parameter: what a function is called with."""
