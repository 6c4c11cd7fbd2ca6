"""Where the driver of a phase runs: in the process of the task, or wherever ``spark-submit`` puts it.

A connection of the type ``spark`` (or ``generic``) names the cluster, with the fields and extras of Airflow's Spark
provider; the package of that provider need not be installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hindstream.airflow.connections import named_connection
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from hindstream.spark.submission.cluster import Cluster

MODES = ("in-process", "spark-submit", "connect")

DEFAULT_CONNECTION = "spark_default"

_OF_NO_PROVIDER = "generic"
"""What Airflow's command line makes of the type ``spark`` where its Spark provider is not installed."""


def check_mode(mode: str, options: Mapping[str, object] | None, place: str, *, task_per: str = "phase") -> None:
    """Refuses what cannot be, when Airflow reads the DAG file.

    Raises:
        ConfigurationError: There is no such mode, it cannot be, or an option of spark-submit is none.
    """
    if mode not in MODES:
        raise ConfigurationError(f"there is no mode {mode!r}", place=place, next_step=did_you_mean(mode, MODES, "take"))
    if mode == "connect":
        what = "Spark Connect has no RDDs, accumulators, barrier stages and preferred locations, which a replay needs"
        raise ConfigurationError(what, place=place, next_step='take mode="spark-submit"')
    if mode == "in-process" and options:
        step = 'give mode="spark-submit", or leave out spark_submit'
        raise ConfigurationError("options of spark-submit need its mode", place=place, next_step=step)
    if mode == "spark-submit" and task_per == "run":
        step = 'take task_per="phase"'
        raise ConfigurationError("one task of all phases has one driver, its own", place=place, next_step=step)
    if mode == "spark-submit":
        from hindstream.spark.submission.command import check_options  # noqa: PLC0415 - parsing must stay quick

        check_options(options or {}, place)


def cluster_of(connection: Any, options: Mapping[str, Any]) -> Cluster:
    """The cluster that a connection names; options go before its extras.

    Raises:
        ConfigurationError: There is no telling what becomes of an application there.
    """
    from hindstream.spark.submission.cluster import Cluster, conf_to_ask  # noqa: PLC0415

    extra, host = connection.extra_dejson, connection.host or ""
    scheme = "spark" if connection.conn_type == _OF_NO_PROVIDER else connection.conn_type
    is_whole = scheme == "spark" and host and ("://" in host or not connection.port)
    master = host if is_whole else f"{scheme}://{host}"
    cluster = Cluster(
        master=f"{master}:{connection.port}" if connection.port else master,
        deploy_mode=str(options.get("deploy_mode") or extra.get("deploy-mode") or "client"),
        binary=str(options.get("spark_binary") or extra.get("spark-binary") or "spark-submit"),
        rest_port=int(extra.get("rest-port", 6066)),
        rest_scheme=str(extra.get("rest-scheme", "http")),
        resource_manager=extra.get("yarn_resourcemanager_webapp_address"),
        conf=conf_to_ask(options.get("conf") or {}),
    )
    if cluster.is_elsewhere and cluster.kind == "yarn" and cluster.resource_manager is None:
        step = "give its extra yarn_resourcemanager_webapp_address, such as http://rm:8088"
        what = "the connection does not say where YARN tells what becomes of an application"
        raise ConfigurationError(what, connection=connection.conn_id, next_step=step)
    return cluster


def options_of(connection: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of spark-submit that a connection has, and those that go before them."""
    extra = connection.extra_dejson
    found = {"yarn_queue": extra.get("queue"), "principal": extra.get("principal")}
    conf = {"spark.kubernetes.namespace": extra["namespace"]} if extra.get("namespace") else {}
    given = {name: value for name, value in {**found, **options}.items() if value is not None}
    return given | {"conf": conf | dict(options.get("conf") or {})}


def connected_cluster(conn_id: str, options: Mapping[str, Any]) -> tuple[Cluster, dict[str, Any]]:
    """The cluster of a connection, and all options."""
    connection = named_connection(conn_id, "spark --conn-host spark://HOST --conn-port 7077")
    return cluster_of(connection, options), options_of(connection, options)
