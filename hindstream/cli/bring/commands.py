"""``hindstream archive`` and ``ingest``: their options."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Literal

import typer

from hindstream.cli.arguments import (
    Assignments,
    JsonOrText,
    Until,
    Warehouse,
    given_settings,
)


def archive(
    topics: Annotated[
        str,
        typer.Argument(
            metavar="TOPICS", help="The topics to copy, with their serdes: FILE.py:NAME, PACKAGE.MODULE:NAME."
        ),
    ],
    until: Until = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Copy new records of Kafka topics, and new files of a data lake, into topic archives, exactly once.

    Example: hindstream archive jobs/clicks.py:topics --set kafka.bootstrap.servers=broker:9092
    """
    from hindstream.cli.bring.archive import run_archive  # noqa: PLC0415
    from statelib.job.topics import load_topics  # noqa: PLC0415

    run_archive(load_topics(topics), given_settings(settings, warehouse=warehouse, until=until), output)


def ingest(
    topic: Annotated[
        str,
        typer.Argument(metavar="TOPIC", help="The topic's name, or a LakeTopic: FILE.py:NAME, PACKAGE.MODULE:NAME."),
    ],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...",
            help="Files (paths, folders, patterns, URLs), tables, sql:QUERY. Default: those of the topic's last load.",
        ),
    ] = None,
    key: Annotated[str | None, typer.Option(help="The field of the keys, or text of several: '{a}-{b}'.")] = None,
    value: Annotated[
        list[str] | None, typer.Option(help="A field of the values; repeat it. Default: all but key and timestamp.")
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option(help="The field of the timestamps, or text of several: '{date} {time}'.")
    ] = None,
    partition: Annotated[
        str | None, typer.Option(help="The field of the records' partitions in Kafka, where the files have one.")
    ] = None,
    offset: Annotated[str | None, typer.Option(help="The field of the records' offsets in Kafka.")] = None,
    timestamp_unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None,
        typer.Option(help="Of timestamps that are numbers. Default: detected, and shown."),
    ] = None,
    timestamp_format: Annotated[
        str | None,
        typer.Option(help="Of timestamps that are text, as in strptime: '%d.%m.%Y %H:%M'. Default: ISO 8601."),
    ] = None,
    timezone: Annotated[str | None, typer.Option(help="Of timestamps without one. Default: UTC.")] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="Of a partition's records: timestamp, arrival, offset (the default where files tell it), or a field."
        ),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Of a new topic. Default: what the files tell, else 4.")
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["parquet", "csv", "json", "avro", "bytes"] | None,
        typer.Option(help="Of the files. Default: what their names and content say."),
    ] = None,
    layout: Annotated[
        Literal["files", "connect", "aiven", "kcat"] | None,
        typer.Option(help="How a topic lies in the files. Default: detected."),
    ] = None,
    envelope: Annotated[
        Literal["rows", "debezium"] | None,
        typer.Option(help="What values are wrapped in. debezium: changes of rows become the rows."),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="FIELD=TYPE", help="The type of a field of CSV or JSON: zip=string; repeat it."),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(help="Between values of CSV. Default: detected. Behind values of .bin. Default: a line break."),
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Of CSV and JSON. Default: utf-8.")] = None,
    decimal_separator: Annotated[
        Literal[".", ","] | None,
        typer.Option(help="Of numbers in CSV. With a comma, points stand between thousands: 1.822,84."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The columns of CSV whose first line does not name them.")
    ] = None,
    value_encoding: Annotated[
        Literal["base64", "none"] | None, typer.Option(help="Of values in Aiven's CSV. Default: base64.")
    ] = None,
    file_name_template: Annotated[
        str | None, typer.Option(help="Of Aiven's files, as in its sink: '{{topic}}/{{partition}}/{{start_offset}}'.")
    ] = None,
    key_serde: Annotated[
        str | None, typer.Option(help="Of keys that are bytes: registry, json, string, int64, ..., FILE.py:NAME.")
    ] = None,
    value_serde: Annotated[str | None, typer.Option(help="Of values that are bytes: the same.")] = None,
    registry: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The schema registry for keys and values in its wire format."),
    ] = None,
    on_bad_record: Annotated[
        Literal["fail", "quarantine"] | None,
        typer.Option(help="A bad row ends the load (the default), or goes to the topic <topic>-quarantine."),
    ] = None,
    engine: Annotated[
        Literal["auto", "local", "spark"] | None,
        typer.Option(
            help="What loads. Default: Spark for several files of more than 1 GiB together, else this process."
        ),
    ] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would come of it, by a sample.")] = False,
) -> None:
    """Load new files of a data lake into a topic archive, each once.

    Example: hindstream ingest flights 'data/flights-*.csv.gz' --key origin --timestamp departed
    """
    from hindstream.cli.bring.ingest import lake_topic, print_profile, run_ingest  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse, ingest_engine=engine)
    options = {
        "key": key, "value": tuple(value or ()), "timestamp": timestamp, "partition": partition,
        "offset": offset, "timestamp_unit": timestamp_unit,
        "timestamp_format": timestamp_format, "timezone": timezone, "order": order, "partitions": partitions,
        "format": format, "layout": layout, "envelope": envelope, "types": types, "delimiter": delimiter,
        "columns": tuple(columns.split(",")) if columns else None, "value_encoding": value_encoding,
        "file_name_template": file_name_template, "encoding": encoding,
        "decimal_separator": decimal_separator, "key_serde": key_serde,
        "value_serde": value_serde, "registry": registry, "on_bad_record": on_bad_record,
    }  # fmt: skip
    asked = lake_topic(topic, tuple(sources or ()), {name: given for name, given in options.items() if given}, given)
    if dry_run:
        command = shlex.join(["hindstream", *(part for part in sys.argv[1:] if part != "--dry-run")])
        print_profile(asked, given, command, output)
    else:
        run_ingest(asked, given, output)
