"""Runs told to OpenLineage: Marquez, DataHub and whoever else takes its events.

What a run has stored of itself becomes events beside it. Nothing that happens here fails a run, or holds it up for
long. The client of OpenLineage is an extra, imported where the setting ``openlineage`` is on.

Begin with `reported`, which the phases are decorated with; `events` makes the events.
"""
