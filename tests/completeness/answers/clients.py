"""What belongs to a running application, and has no place in a replay: ``KafkaStreams``, its metadata and listeners."""

from __future__ import annotations

from tests.completeness.answer import ClassAnswers, differs, refused

_THREADS = refused("A run has tasks, not threads: [Spark](concepts.md) has as many at once as it has cores")
_LIFE = "A run begins with its slice and ends with it: `hindstream run`, a DAG, or `hindstream.run()`"
_NO_GROUP = refused("Nobody has to find out about members of a group: tasks of a run have no lasting place")
_METADATA = "`hindstream status` and a run's report tell it of a job"
_RESTORE = "State is restored from a checkpoint when a task begins; the report says how long it took"


def _of_the_client(name: str, text: str, kip: int | None = None) -> ClassAnswers:
    return ClassAnswers(name, None, text, {"*": _NO_GROUP}, kip)


CLIENTS = (
    ClassAnswers(
        "KafkaStreams", None, "The client that runs a topology. Here a job is run, slice by slice.",
        {
            "new, start": differs(_LIFE, ""),
            "close": differs("A run ends by itself; one that is killed is run again", ""),
            "close(CloseOptions)": refused("There is no group to leave", kip=812),
            "cleanUp": differs("`hindstream state JOB` goes back to a commit", ""),
            "pause, resume, isPaused": refused("A run is as long as its slice; [Airflow](airflow.md) pauses DAGs", 834),
            "state, setStateListener": differs(_METADATA, ""),
            "addStreamThread, removeStreamThread": refused(_THREADS.text, kip=663),
            "store": differs("[`open_state(...)`](state-as-data.md)", "", kip=67),
            "query": differs("[`open_state(...)`](state-as-data.md)", "", kip=796),
            "queryMetadataForKey": refused("State is in the warehouse: no reader has to find a host", kip=535),
            "streamsMetadataForStore, metadataForAllStreamsClients": refused(
                "State is in the warehouse: no reader has to find a host", kip=744
            ),
            "metadataForLocalThreads": refused(_THREADS.text, kip=744),
            "allLocalStorePartitionLags": refused("No standby lags: a commit is the whole state", kip=535),
            "metrics": differs("[The report, and OpenTelemetry](semantics.md#metrics)", ""),
            "clientInstanceIds": refused("A replay has no clients of a cluster", kip=714),
            "setGlobalStateRestoreListener, setStandbyUpdateListener": differs(_RESTORE, ""),
            "setUncaughtExceptionHandler": differs(
                "An error ends the run, and the next one begins where the last commit is; "
                "[bad records](operations.md) can go to quarantine", "", kip=671,
            ),
        },
    ),
    _of_the_client("KafkaStreams$State", "Whether it runs."),
    _of_the_client("KafkaStreams$StateListener", "Told when that changes."),
    _of_the_client("KafkaStreams$CloseOptions", "How it leaves its group.", 812),
    _of_the_client("CloseOptions", "How it leaves its group.", 1153),
    ClassAnswers("CloseOptions$GroupMembershipOperation", None, "Whether it leaves its group.", {}, kip=1153),
    _of_the_client("GroupProtocol", "How its group is kept.", 1071),
    _of_the_client("ClientInstanceIds", "The ids of its clients.", 714),
    _of_the_client("KafkaClientSupplier", "Makes its clients."),
    _of_the_client("LagInfo", "How far a standby is behind.", 535),
    _of_the_client("StreamsMetadata", "What is known of a client.", 744),
    _of_the_client("ThreadMetadata", "What is known of a thread.", 744),
    _of_the_client("TaskMetadata", "What is known of a task.", 744),
    ClassAnswers(
        "StreamsMetrics", None, "Sensors of a processor's own.",
        {"*": refused("Sensors measure rates in wall-clock time, which a replay has not. A run's report has metrics")},
    ),
    ClassAnswers(
        "StreamsConfig", None, "The settings of an application.",
        {"*": refused("A run has other settings: [`hindstream settings`](cli.md)")},
    ),
    ClassAnswers("StreamsConfig$InternalConfig", None, "Kafka's own.", {"*": refused("It is internal, though public")}),
    ClassAnswers(
        "processor.StateRestoreListener", None, "Told of restores.",
        {"onRestoreStart, onBatchRestored, onRestoreEnd, onRestoreSuspended": differs(_RESTORE, "")},
    ),
    ClassAnswers(
        "processor.StandbyUpdateListener", None, "Told of standbys.",
        {
            "onUpdateStart, onBatchLoaded, onUpdateSuspended": differs(
                "[Standbys](placement.md) copy commits; `hindstream status` shows them", ""
            )
        },
        kip=988,
    ),
    ClassAnswers("processor.StandbyUpdateListener$SuspendReason", None, "Why one ends.", {}, kip=988),
)  # fmt: skip
