from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest

from statelib.errors.kinds import ConfigurationError
from statelib.settings.max_future import MaxFuture
from statelib.settings.settings import Settings, load_settings
from statelib.settings.storage_options import LIMIT_SETTINGS, RequestLimits
from statelib.settings.value_sources import NOT_SETTINGS

SECRET = "wJalrXUtnFEMI"


@pytest.fixture
def in_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def toml(in_empty_directory):
    def write(text):
        path = in_empty_directory / "hindstream.toml"
        path.write_text(text)
        return path

    return write


def load(command_line=None, **environ):
    return load_settings(command_line, environ=environ)


def test_defaults(in_empty_directory):
    settings = load()
    assert (settings.warehouse, settings.semantics, settings.until_ms) == ("warehouse", "kip", None)
    assert settings.memory_budget_bytes == 512 * 2**20
    assert all(settings.origin(name) == "default" for name in Settings.model_fields)


def test_order_of_places(toml):
    path = toml('keep_commits = 1\nbatch_records = 1\nwarehouse = "file"\n')
    environ = {"HINDSTREAM_KEEP_COMMITS": "2", "HINDSTREAM_BATCH_RECORDS": "2"}
    settings = load({"keep_commits": 3, "warehouse": None}, **environ)
    assert (settings.keep_commits, settings.batch_records, settings.warehouse) == (3, 2, "file")
    assert settings.origin("keep_commits") == "command line"
    assert settings.origin("batch_records") == "environment HINDSTREAM_BATCH_RECORDS"
    assert settings.origin("warehouse") == f"file {path.name}"
    assert settings.origin("semantics") == "default"


def test_the_process_environment_is_the_default(in_empty_directory, monkeypatch):
    monkeypatch.setenv("HINDSTREAM_WAREHOUSE", "s3://bucket/prefix")
    assert load_settings().warehouse == "s3://bucket/prefix"


@pytest.mark.parametrize("value", ["1359676800000", "2013-02-01T00:00:00Z", "2013-02-01T01:00:00+01:00"])
def test_instants(in_empty_directory, value):
    assert load(HINDSTREAM_UNTIL=value).until_ms == 1_359_676_800_000


def test_instants_of_toml(toml):
    toml("until = 2013-02-01T00:00:00Z")
    assert load().until_ms == 1_359_676_800_000


def test_sizes(in_empty_directory):
    assert load(HINDSTREAM_MEMORY_BUDGET_BYTES="1.5GiB").memory_budget_bytes == 3 * 2**29
    assert load({"memory_budget_bytes": 2**21}).memory_budget_bytes == 2**21


def test_tables(toml):
    toml('[spark_conf]\n"spark.driver.memory" = "2g"\n')
    assert load().spark_conf == {"spark.driver.memory": "2g"}
    assert load(HINDSTREAM_SPARK_CONF='{"a": "b"}').spark_conf == {"a": "b"}


def test_another_file(toml, in_empty_directory):
    toml("keep_commits = 1")
    other = in_empty_directory / "other.toml"
    other.write_text("keep_commits = 7")
    assert load_settings(environ={}, file=other).keep_commits == 7
    assert load(HINDSTREAM_CONFIG=str(other)).keep_commits == 7


def test_a_file_that_was_named_must_be_there(in_empty_directory):
    with pytest.raises(ConfigurationError, match=r"no such settings file \(file nowhere.toml\)"):
        load(HINDSTREAM_CONFIG="nowhere.toml")


class TestUnknown:
    def test_on_the_command_line(self, in_empty_directory):
        with pytest.raises(ConfigurationError, match=r"no setting keep_comits \(place command line --keep-comits\)"):
            load({"keep_comits": 3})

    def test_where_there_is_no_command_line(self, in_empty_directory):
        with pytest.raises(ConfigurationError, match=r"no setting keep_comits \(place the task\)"):
            load_settings({"keep_comits": 3}, environ={}, given_by="the task")
        with pytest.raises(ConfigurationError, match=r"value of keep_commits .* \(place the task\)"):
            load_settings({"keep_commits": "many"}, environ={}, given_by="the task")
        assert load_settings({"keep_commits": 3}, environ={}, given_by="the task").origin("keep_commits") == "the task"

    def test_in_the_environment(self, in_empty_directory):
        with pytest.raises(ConfigurationError, match=r"HINDSTREAM_WAREHUSE\). Next: did you mean warehouse\?"):
            load(HINDSTREAM_WAREHUSE="x")

    def test_in_the_file(self, toml):
        toml("memory_budget = 3")
        with pytest.raises(ConfigurationError, match=r"file hindstream.toml.*did you mean memory_budget_bytes"):
            load()

    def test_without_likeness(self, in_empty_directory):
        with pytest.raises(ConfigurationError, match="the settings are: warehouse, "):
            load(HINDSTREAM_ZZZ="x")

    def test_variables_of_the_dev_script_are_none(self, in_empty_directory):
        assert load(**dict.fromkeys(NOT_SETTINGS - {"HINDSTREAM_CONFIG"}, "x")) == load()

    def test_every_variable_of_the_dev_script_is_known(self):
        read = set(re.findall(r"HINDSTREAM_[A-Z_]+", (Path(__file__).parents[2] / "dev").read_text()))
        assert read <= NOT_SETTINGS


@pytest.mark.parametrize(
    ("text", "ms"),
    [("90s", 90_000), ("90min", 5_400_000), ("36h", 129_600_000), ("7d", 604_800_000), ("2w", 1_209_600_000),
     ("P7D", 604_800_000), ("PT0.5S", 500), ("0s", 0)],
)  # fmt: skip
def test_a_time_span(in_empty_directory, text, ms):
    settings = load(HINDSTREAM_KEEP_STATE_FOR=text)
    assert settings.keep_state_for_ms == ms
    again = load({"keep_state_for": json.loads(settings.model_dump_json())["keep_state_for"]})  # as a DAG carries it
    assert again.keep_state_for_ms == ms
    assert load().keep_state_for_ms is None


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("7d", {"span_ms": 604_800_000}),
        ("PT0S", {"span_ms": 0}),
        ("2014-01-01T00:00Z", {"last_ms": 1_388_534_400_000}),
        ("2014-01-01T00:00:00.123456+01:00", {"last_ms": 1_388_530_800_123}),
        (None, None),
    ],
)
def test_records_from_the_future(in_empty_directory, text, rule):
    settings = load(**({} if text is None else {"HINDSTREAM_MAX_FUTURE": text}))
    assert settings.max_future_rule == (None if rule is None else MaxFuture(**rule))
    again = load({"max_future": json.loads(settings.model_dump_json())["max_future"]})  # as a DAG carries it
    assert again.max_future_rule == settings.max_future_rule


class TestWrong:
    @pytest.mark.parametrize(
        ("name", "value", "reason"),
        [
            ("keep_commits", "0", "greater than or equal to 1"),
            ("keep_commits", "many", "valid integer"),
            ("semantics", "kafka", "'kip', 'kafka-4.3' or 'kafka-4.4'"),
            ("until", "2013-02-01", "no time zone"),
            ("until", "tomorrow", "isoformat"),
            ("until", "9" * 30, "less than or equal to"),
            ("memory_budget_bytes", "1KiB", "greater than or equal to"),
            ("memory_budget_bytes", "lots", "byte"),
            ("warehouse", "", "at least 1 character"),
            ("keep_state_for", "a week", "valid timedelta"),
            ("keep_state_for", "7", "has no unit"),
            ("keep_state_for", f"{'9' * 30}d", "longer than 999999999d"),
            ("keep_state_for", "-P1D", "greater than or equal to"),
            ("max_future", "7", "has no unit"),
            ("max_future", "1400000000000", "has no unit"),
            ("max_future", "2014-01-01", "no time zone"),
            ("max_future", "-P1D", "greater than or equal to"),
            ("on_future_record", "drop", "'quarantine' or 'partition-time'"),
            ("parallel_transfers", "0", "greater than or equal to 1"),
        ],
    )
    def test_names_setting_and_place(self, in_empty_directory, name, value, reason):
        with pytest.raises(ConfigurationError) as raised:
            load(**{f"HINDSTREAM_{name.upper()}": value})
        assert f"the value of {name} cannot be used" in str(raised.value)
        assert f"place environment HINDSTREAM_{name.upper()}" in str(raised.value)
        assert reason in str(raised.value)

    def test_json(self, in_empty_directory):
        with pytest.raises(ConfigurationError, match=r"not JSON \(setting environment HINDSTREAM_SPARK_CONF\)"):
            load(HINDSTREAM_SPARK_CONF="{")

    def test_toml(self, toml):
        toml("keep_commits = ")
        with pytest.raises(ConfigurationError, match=r"not TOML: Invalid value .*\(file hindstream.toml\)"):
            load()


class TestCredentials:
    @pytest.mark.parametrize(
        "name",
        ["aws_secret_access_key", "AWS_SESSION_TOKEN", "azure_storage_account_key", "access_key_id", "sas_token"],
    )
    def test_are_no_settings(self, in_empty_directory, name):
        with pytest.raises(ConfigurationError, match=f"{name} is a credential") as raised:
            load({"storage_options": {name: SECRET}})
        assert SECRET not in str(raised.value)
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__

    @pytest.mark.parametrize(
        ("name", "variable"),
        [
            ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
            ("Session_Token", "AWS_SESSION_TOKEN"),
            ("azure_storage_account_key", "AZURE_STORAGE_ACCOUNT_KEY"),
            ("sas_token", "AZURE_STORAGE_SAS_TOKEN"),
            ("master_key", "AZURE_STORAGE_MASTER_KEY"),
            ("service_account_key", "GOOGLE_SERVICE_ACCOUNT_KEY"),
        ],
    )
    def test_the_variable_to_use_is_named(self, toml, name, variable):
        toml(f'[storage_options]\n{name} = "{SECRET}"\n')
        with pytest.raises(ConfigurationError, match=f"set {variable} in the environment") as raised:
            load()
        assert SECRET not in str(raised.value)

    @pytest.mark.parametrize("address", ["http://me:{}@proxy", "https://proxy/?X-Amz-Signature={}"])
    def test_not_in_an_address_among_the_options(self, in_empty_directory, address):
        with pytest.raises(ConfigurationError, match="proxy_url is an address that holds credentials") as raised:
            load({"storage_options": {"proxy_url": address.format(SECRET)}})
        assert SECRET not in str(raised.value)

    def test_not_in_spark_s_configuration(self, in_empty_directory):
        with pytest.raises(ConfigurationError, match="is a credential"):
            load({"spark_conf": {"spark.hadoop.fs.s3a.secret.key": SECRET}})

    @pytest.mark.parametrize("address", ["s3://me:{}@bucket", "s3://{}@bucket", "abfss://box@account/?sig={}"])
    def test_not_in_the_address(self, in_empty_directory, address):
        with pytest.raises(ConfigurationError, match="the address holds credentials") as raised:
            load(HINDSTREAM_WAREHOUSE=address.format(SECRET))
        assert SECRET not in str(raised.value)

    def test_ordinary_options_stay(self, in_empty_directory):
        options = {"aws_endpoint_url": "http://localhost:9000", "aws_region": "eu-central-1", "allow_http": "true"}
        assert load({"storage_options": options}).storage_options == options


class TestStore:
    def test_limits_are_options_of_the_store(self, in_empty_directory):
        settings = load(
            {"storage_options": {"aws_region": "eu"}, "storage_retries": 3, "storage_request_timeout_ms": 5}
        )
        assert settings.store_options == {
            "aws_region": "eu",
            "connect_timeout": "5000ms",
            "timeout": "5ms",
            "max_retries": "3",
            "retry_timeout": "180000ms",
            "backoff_config.init_backoff": "100ms",
            "backoff_config.max_backoff": "15000ms",
        }

    @pytest.mark.parametrize("name", LIMIT_SETTINGS)
    def test_limits_have_settings_of_their_own(self, in_empty_directory, name):
        assert RequestLimits().options().keys() == LIMIT_SETTINGS.keys()
        assert LIMIT_SETTINGS[name] in Settings.model_fields
        with pytest.raises(ConfigurationError, match=f"has a setting of its own: {LIMIT_SETTINGS[name]}"):
            load({"storage_options": {name: "1"}})

    def test_a_request_is_not_tried_for_longer_than_its_signature_lasts(self, in_empty_directory):
        with pytest.raises(ConfigurationError, match="storage_retry_timeout_ms cannot be used"):
            load({"storage_retry_timeout_ms": 300_001})


def test_explain_says_value_and_place(toml):
    toml("keep_commits = 4")
    lines = load(HINDSTREAM_MEMORY_BUDGET_BYTES="1GiB").explain().splitlines()
    assert [line.split()[0] for line in lines] == list(Settings.model_fields)
    assert ["memory_budget_bytes", "1.0GiB", "environment", "HINDSTREAM_MEMORY_BUDGET_BYTES"] in map(str.split, lines)
    assert ["keep_commits", "4", "file", "hindstream.toml"] in map(str.split, lines)
    assert ["semantics", "kip", "default"] in map(str.split, lines)


def test_settings_travel(in_empty_directory):
    settings = load({"keep_commits": 3})
    copy = pickle.loads(pickle.dumps(settings))
    assert copy == settings
    assert copy.origin("keep_commits") == "command line"


def test_settings_do_not_change(in_empty_directory):
    with pytest.raises(ValueError, match="frozen"):
        load().keep_commits = 3
