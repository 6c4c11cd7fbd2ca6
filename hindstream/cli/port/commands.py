"""``hindstream draft`` and ``prove``: their options; see the modules of these names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hindstream.cli.arguments import (
    Assignments,
    Examples,
    Ignored,
    JobReference,
    JsonOrText,
    Tolerances,
    Warehouse,
    given_settings,
)

_RECORDS = 100_000

Jar = Annotated[
    Path, typer.Option("--jar", metavar="FILE", help="The application: a jar, also of Spring Boot, or its classes.")
]
TopologyReference = Annotated[
    str,
    typer.Option("--topology", metavar="CLASS::METHOD", help="What gives its topology: com.acme.Flights::build."),
]
ClassPath = Annotated[
    str | None, typer.Option(metavar="PATH", help="Its libraries, if the jar has not all of them: 'lib/*'.")
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE.properties", help="Its settings: serdes, application.id and others."),
]
TestUtils = Annotated[
    Path | None,
    typer.Option(metavar="FILE.jar", help="kafka-streams-test-utils. Default: that of its version, from --repository."),
]
RepositoryUrl = Annotated[
    str | None, typer.Option("--repository", metavar="URL", help="A Maven repository. Default: Maven Central.")
]
JavaProgram = Annotated[
    Path | None, typer.Option("--java", metavar="PROGRAM", help="The java to run it. Default: the one of Spark.")
]


def prove(
    job: JobReference,
    jar: Jar,
    topology: TopologyReference,
    class_path: ClassPath = None,
    config: Config = None,
    topics: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:NAME", help="Names and serdes of topics in Kafka, as for 'hindstream archive': KafkaTopic."
        ),
    ] = None,
    sample: Annotated[
        str | None, typer.Option("--sample-keys", metavar="SHARE", help="Only a part of the keys: 1% or 0.01.")
    ] = None,
    records: Annotated[int, typer.Option(min=1, help="At most so many records, the first ones.")] = _RECORDS,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Only records from this time on: ISO 8601.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Only records before this time.")] = None,
    tolerances: Tolerances = None,
    ignored: Ignored = None,
    limit: Examples = 20,
    test_utils: TestUtils = None,
    repository: RepositoryUrl = None,
    java: JavaProgram = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Prove a port: run the application's own topology and the job on the same records, and compare what both write.

    The topology runs in Kafka Streams' TopologyTestDriver. If something differs, the exit code is 1, and the smallest
    input that shows it is printed.

    Example: hindstream prove jobs/flights.py --jar flights.jar --topology com.acme.Flights::build
    """
    from hindstream.cli.port.prove import Asked, print_proof  # noqa: PLC0415
    from hindstream.cli.versions.diff import rules_of  # noqa: PLC0415
    from hindstream.porting.application import Application  # noqa: PLC0415
    from hindstream.porting.sample import Wanted  # noqa: PLC0415
    from hindstream.slices import time_ms  # noqa: PLC0415
    from hindstream.trials.wanted import share_of  # noqa: PLC0415
    from statelib.records.key_sample import KeySample  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    application = Application(jar, topology, class_path, config, test_utils, repository, java)
    since_ms, until_ms = (
        None if text is None else time_ms(name, text) for name, text in (("from", start), ("to", end))
    )
    keys = None if sample is None else KeySample(share_of(sample))
    wanted = Wanted(records, since_ms, until_ms, keys)
    print_proof(
        Asked(job, application, wanted, rules_of(tolerances or (), ignored or ()), topics, limit), given, output
    )


def draft(
    describe: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What Topology.describe() prints, in a file. Or give --jar and --topology."),
    ] = None,
    jar: Annotated[
        Path | None,
        typer.Option("--jar", metavar="FILE", help="The application: a jar, also of Spring Boot, or its classes."),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option("--topology", metavar="CLASS::METHOD", help="What gives its topology: com.acme.Flights::build."),
    ] = None,
    name: Annotated[str, typer.Option(help="The name of the job.")] = "port",
    class_path: ClassPath = None,
    config: Config = None,
    test_utils: TestUtils = None,
    repository: RepositoryUrl = None,
    java: JavaProgram = None,
    output: JsonOrText = "table",
) -> None:
    """Draft a port: print a job with the names, stores and topics of an application, its functions left to write.

    With the jar, windows and kinds of joins are known too. If the draft does not describe the same topology, the exit
    code is 1, and what differs is printed on standard error.

    Example: hindstream draft --jar flights.jar --topology com.acme.Flights::build > jobs/flights.py
    """
    from hindstream.cli.port.draft import print_draft  # noqa: PLC0415
    from hindstream.porting.application import Application  # noqa: PLC0415

    application = None
    if jar is not None and topology is not None:
        application = Application(jar, topology, class_path, config, test_utils, repository, java)
    print_draft(describe, application, name, output)
