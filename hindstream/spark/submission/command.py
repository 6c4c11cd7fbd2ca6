"""The command line of spark-submit, and the options that it is given by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hindstream.spark.submission.cluster import Cluster

_FLAGS = {
    "archives": "--archives",
    "driver_class_path": "--driver-class-path",
    "driver_cores": "--driver-cores",
    "driver_memory": "--driver-memory",
    "exclude_packages": "--exclude-packages",
    "executor_cores": "--executor-cores",
    "executor_memory": "--executor-memory",
    "files": "--files",
    "jars": "--jars",
    "keytab": "--keytab",
    "num_executors": "--num-executors",
    "packages": "--packages",
    "principal": "--principal",
    "properties_file": "--properties-file",
    "proxy_user": "--proxy-user",
    "py_files": "--py-files",
    "repositories": "--repositories",
    "total_executor_cores": "--total-executor-cores",
    "yarn_queue": "--queue",
}

OPTIONS = sorted([*_FLAGS, "application", "conf", "deploy_mode", "env_vars", "name", "runner_jar", "spark_binary"])
"""By the names that the operator of Airflow's Spark provider has for them.

``application`` and ``runner_jar`` are paths on the driver's host: of `hindstream.spark.submission.driver`, and of the
jar that starts it in standalone clusters."""

_DEPLOY_MODES = ("client", "cluster")
_SECRET = "spark.kubernetes.authenticate.submission.oauthToken"  # noqa: S105 - its name
_OF_AIRFLOW = "AIRFLOW"
_PYTHON_RUNNER = "org.apache.spark.deploy.PythonRunner"


def check_options(options: Mapping[str, object], place: str) -> None:
    """Refuses what is no option.

    Raises:
        ConfigurationError: A name is none, the deploy mode cannot be, or there is a token among them.
    """
    for name in options:
        if name not in OPTIONS:
            step = did_you_mean(name, OPTIONS, "there are")
            raise ConfigurationError(f"spark-submit has no option {name!r}", place=place, next_step=step)
    mode = options.get("deploy_mode")
    if mode is not None and mode not in _DEPLOY_MODES:
        step = did_you_mean(str(mode), _DEPLOY_MODES, "there are")
        raise ConfigurationError(f"there is no deploy mode {mode!r}", place=place, next_step=step)
    conf = options.get("conf")
    if isinstance(conf, Mapping) and _SECRET in conf:
        what, step = "options of spark-submit are shown in Airflow, and one is a token", f"name its file: {_SECRET}File"
        raise ConfigurationError(what, option=_SECRET, place=place, next_step=step)


def submit_command(cluster: Cluster, options: Mapping[str, Any], arguments: Sequence[str], name: str) -> list[str]:
    """What is executed.

    Args:
        cluster: Where to.
        options: See `OPTIONS`.
        arguments: Of `hindstream.spark.submission.driver`.
        name: The application's, unless the options have one.

    Raises:
        ConfigurationError: There is no telling where the driver's file is there.
    """
    if cluster.is_elsewhere and cluster.kind == "kubernetes" and options.get("application") is None:
        what = "the image of Kubernetes' pods has a file that the driver begins with, and nobody has said where"
        step = "name it in spark_submit={'application': 'local:///...'}: docs/kubernetes.md has an image"
        raise ConfigurationError(what, file="hindstream/spark/submission/driver.py", next_step=step)
    command = [cluster.binary, "--master", cluster.master, "--deploy-mode", cluster.deploy_mode]
    command += ["--name", str(options.get("name") or name)]
    is_standalone = cluster.is_elsewhere and cluster.kind == "standalone"
    for option, flag in _FLAGS.items():
        if options.get(option) is not None and not (option == "py_files" and is_standalone):
            command += [flag, str(options[option])]
    for key, value in (_conf_of(cluster, options) | dict(options.get("conf") or {})).items():
        command += ["--conf", f"{key}={value}"]
    script = str(options.get("application") or Path(__file__).with_name("driver.py"))
    if not is_standalone:
        return [*command, script, *arguments]
    # spark-submit refuses Python in these clusters' drivers. The class by which it runs Python elsewhere runs it there.
    jar = str(options.get("runner_jar") or _spark_core())
    return [*command, "--class", _PYTHON_RUNNER, jar, script, str(options.get("py_files") or ""), *arguments]


def environment(options: Mapping[str, Any]) -> dict[str, str]:
    """That of spark-submit: the process' without Airflow's own variables, and ``env_vars``.

    A standalone cluster hands it on to the driver. Airflow's variables hold its database, keys and connections, and no
    driver needs one: settings, and whom OpenLineage tells, have arguments and variables of their own.
    """
    kept = {name: value for name, value in os.environ.items() if not name.lstrip("_").startswith(_OF_AIRFLOW)}
    return kept | {name: str(value) for name, value in (options.get("env_vars") or {}).items()}


def _conf_of(cluster: Cluster, options: Mapping[str, Any]) -> dict[str, str]:
    """What follows from the cluster: nobody waits in spark-submit, and variables reach the driver."""
    if not cluster.is_elsewhere:
        return {}
    variables = {name: str(value) for name, value in (options.get("env_vars") or {}).items()}
    if cluster.kind == "yarn":
        return {"spark.yarn.submit.waitAppCompletion": "false"} | {
            f"spark.yarn.appMasterEnv.{name}": value for name, value in variables.items()
        }
    if cluster.kind == "kubernetes":
        return {"spark.kubernetes.submission.waitAppCompletion": "false"} | {
            f"spark.kubernetes.driverEnv.{name}": value for name, value in variables.items()
        }
    return {"spark.pyspark.python": os.environ.get("PYSPARK_PYTHON", sys.executable)}


def _spark_core() -> str:
    """Of the Spark that is installed here, which has to lie at the same place on the cluster's hosts."""
    import pyspark  # noqa: PLC0415 - half a second, which only this needs

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    found = sorted((home / "jars").glob("spark-core_*.jar"))
    if not found:
        step = "name it in spark_submit={'runner_jar': ...}"
        raise ConfigurationError("there is no jar of Spark's core", folder=home / "jars", next_step=step)
    return found[0].as_uri()
