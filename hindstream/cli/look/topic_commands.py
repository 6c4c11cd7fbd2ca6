"""``hindstream topic ...``: the history of a topic's table, and the way back; see `hindstream.cli.look.topic`."""

from __future__ import annotations

from typing import Annotated

import typer

from hindstream.cli.arguments import Assignments, JsonOrText, Warehouse, given_settings
from hindstream.cli.help import CommandByDefault

topic = typer.Typer(
    name="topic",
    cls=CommandByDefault,
    help="Show what Hindstream and other programs have committed to a topic's archive: 'hindstream topic TOPIC'; or"
    " restore a former version of it.\n\n"
    "Example: hindstream topic flights --warehouse demo-warehouse",
    no_args_is_help=True,
    rich_markup_mode=None,
)

TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]


@topic.command("history")
def topic_history(
    name: TopicName, output: JsonOrText = "table", warehouse: Warehouse = None, settings: Assignments = None
) -> None:
    """List the versions of a topic's archive, newest first: time, operation, writer.

    Example: hindstream topic flights --warehouse demo-warehouse
    """
    from hindstream.cli.look.topic import print_history  # noqa: PLC0415

    print_history(name, given_settings(settings, warehouse=warehouse), output)


@topic.command("restore")
def topic_restore(
    name: TopicName,
    to: Annotated[int, typer.Option(help="The version to restore.")],
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Restore a former version of a topic's archive, as a new version. Nothing is deleted.

    Example: hindstream topic restore flights --to 12
    """
    from hindstream.cli.look.topic import restore_topic  # noqa: PLC0415

    restore_topic(name, given_settings(settings, warehouse=warehouse), to, yes=yes, output=output)


@topic.command("compact")
def topic_compact(
    name: TopicName,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    despite_other_writers: Annotated[
        bool, typer.Option("--despite-other-writers", help="Also where another program has written to the table.")
    ] = False,
) -> None:
    """Merge the small files of a topic that no job writes. Records, offsets and their order stay.

    Run it while nothing is loaded into the topic. Jobs may read it meanwhile.

    Example: hindstream topic compact flights --warehouse demo-warehouse
    """
    from hindstream.cli.look.topic import compact  # noqa: PLC0415

    compact(name, given_settings(settings, warehouse=warehouse), despite_others=despite_other_writers, output=output)
