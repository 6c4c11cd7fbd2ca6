"""What is executed for each kind of cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hindstream.spark.submission import driver
from hindstream.spark.submission.cluster import Cluster
from hindstream.spark.submission.command import check_options, environment, submit_command
from statelib.errors.kinds import ConfigurationError

DRIVER = driver.__file__
RESOURCES = {"driver_memory": "2g", "executor_memory": "8g", "executor_cores": 4, "num_executors": 10}


def test_yarn() -> None:
    cluster = Cluster("yarn", "cluster", "spark3-submit")
    options = {**RESOURCES, "yarn_queue": "batch", "py_files": "jobs.zip", "env_vars": {"A": "1"}, "conf": {"x": "y"}}
    assert submit_command(cluster, options, ["--job", "flights:job"], "flights replay") == [
        *("spark3-submit", "--master", "yarn", "--deploy-mode", "cluster", "--name", "flights replay"),
        *("--driver-memory", "2g", "--executor-cores", "4", "--executor-memory", "8g", "--num-executors", "10"),
        *("--py-files", "jobs.zip", "--queue", "batch"),
        *("--conf", "spark.yarn.submit.waitAppCompletion=false", "--conf", "spark.yarn.appMasterEnv.A=1"),
        *("--conf", "x=y", DRIVER, "--job", "flights:job"),
    ]
    assert environment(options)["A"] == "1"


def test_kubernetes() -> None:
    cluster = Cluster("k8s://https://host:6443", "cluster")
    image = {"spark.kubernetes.container.image": "lake/hindstream:1", "spark.kubernetes.namespace": "replays"}
    options = {"application": "local:///opt/driver.py", "conf": image, "env_vars": {"A": "1"}, "name": "mine"}
    assert submit_command(cluster, options, ["--run", "1"], "flights replay") == [
        *("spark-submit", "--master", "k8s://https://host:6443", "--deploy-mode", "cluster", "--name", "mine"),
        *("--conf", "spark.kubernetes.submission.waitAppCompletion=false"),
        *("--conf", "spark.kubernetes.driverEnv.A=1"),
        *("--conf", "spark.kubernetes.container.image=lake/hindstream:1"),
        *("--conf", "spark.kubernetes.namespace=replays", "local:///opt/driver.py", "--run", "1"),
    ]


def test_kubernetes_without_the_drivers_file() -> None:
    """That of this machine would be uploaded, to a place that nobody has named."""
    with pytest.raises(ConfigurationError, match=r"a file that the driver begins with.*Next: name it.*local:///"):
        submit_command(Cluster("k8s://https://host:6443", "cluster"), {}, [], "flights replay")
    assert submit_command(Cluster("k8s://https://host:6443"), {}, [], "flights replay")[-1] == DRIVER


def test_standalone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver of a cluster is Java's, which runs Python as spark-submit does elsewhere."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    command = submit_command(Cluster("spark://m:7077", "cluster"), {"py_files": "/srv/a.zip"}, ["--run", "1"], "n")
    runner = ["--class", "org.apache.spark.deploy.PythonRunner"]
    assert command[-9:-5] == ["--conf", f"spark.pyspark.python={sys.executable}", *runner]
    assert Path(command[-5].removeprefix("file://")).is_file()
    assert command[-4:] == [DRIVER, "/srv/a.zip", "--run", "1"]
    client = submit_command(Cluster("spark://m:7077"), {"py_files": "/srv/a.zip"}, ["--run", "1"], "n")
    assert client[-5:] == ["--py-files", "/srv/a.zip", DRIVER, "--run", "1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executor_memori": "8g"}, r"no option 'executor_memori' \(place here\). Next: did you mean executor_memory"),
        (
            {"conf": {"spark.kubernetes.authenticate.submission.oauthToken": "x"}},
            r"shown in Airflow, and one is a token .*Next: name its file: spark.kubernetes.*submission.oauthTokenFile",
        ),
        ({"deploy_mode": "clsuter"}, r"no deploy mode 'clsuter' \(place here\). Next: did you mean cluster"),
    ],
)
def test_an_option_that_is_none_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_options(options, "here")


def test_airflows_own_variables_stay_with_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    of_airflow = [
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
        "AIRFLOW__CORE__FERNET_KEY",
        "AIRFLOW_CONN_LAKE",
        "AIRFLOW_VAR_TOKEN",
        "AIRFLOW_HOME",
        "_AIRFLOW_WWW_USER_PASSWORD",
        "__AIRFLOW_SUPERVISOR_FD",
    ]
    handed_on = ["AWS_SECRET_ACCESS_KEY", "HINDSTREAM_BATCH_RECORDS", "OPENLINEAGE__TRANSPORT", "MY_AIRFLOW"]
    for name in (*of_airflow, *handed_on):
        monkeypatch.setenv(name, "x")
    given = environment({"env_vars": {"AIRFLOW_HOME": "/wanted"}})
    assert [name for name in of_airflow if name in given] == ["AIRFLOW_HOME"]
    assert given["AIRFLOW_HOME"] == "/wanted"
    assert given.keys() >= set(handed_on)
    assert not [name for name in environment({}) if name.lstrip("_").startswith("AIRFLOW")]
