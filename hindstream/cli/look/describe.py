"""``hindstream describe``: a job's topology as Kafka Streams describes it, or as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hindstream.console.json_lines import print_json

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from statelib.job.job import Job


def print_topology(job: Job, output: Output) -> None:
    """Prints the topology of a job."""
    topology = job.topology
    if output == "table":
        typer.echo(topology.describe(), nl=False)
        return
    print_json(
        {
            "job": job.name,
            "fingerprint": topology.fingerprint,
            "sources": topology.source_topics,
            "sinks": topology.sink_topics,
            "sub_topologies": [
                {
                    "sub_topology": sub.index,
                    "sources": [{"name": source.name, "topic": source.topic} for source in sub.all_sources],
                    "processors": [
                        {
                            "name": node.name,
                            "parents": node.parents,
                            "stores": [store.name for store in node.spec.state_stores()],
                        }
                        for node in sub.processors
                    ],
                    "sinks": [
                        {"name": sink.name, "parents": sink.parents, "topic": sink.topic} for sink in sub.all_sinks
                    ],
                }
                for sub in topology.sub_topologies
            ],
            "description": topology.describe(),
        }
    )
