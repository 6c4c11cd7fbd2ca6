"""Long tests: too long for every change.

    python -m tests.campaigns properties [PYTEST ARGS...]    every property with 2,000 new examples at least
    python -m tests.campaigns long [PYTEST ARGS...]          the tests that a plain run leaves out
    python -m tests.campaigns invariance [RUNS] [RECORDS]    the whole surface over new records, cut in every way
    python -m tests.campaigns differential [--programs N]    random topologies, here and in Kafka Streams' test driver
    python -m tests.campaigns peers [--kafka VERSION]        Kafka Streams' own tests, traced, and done here
    python -m tests.campaigns faults [--seed S] [--quick]    every fault that state must survive, exactly once
    python -m tests.campaigns placement [--seed S]           a cluster with a gigabyte of state, hosts lost and added
    python -m tests.campaigns airflow-chaos [--slices N]     a real Airflow whose tasks and servers are killed at random
    python -m tests.campaigns oldest-airflow [TESTS...]      the oldest Airflow, under all its schedulers
    python -m tests.campaigns stack [MONTHS]                 the stack by Docker, the demo on it, all compared
    python -m tests.campaigns bare-machine [TESTS...]        both commands of the README on a bare Debian 12, by root
    python -m tests.campaigns wheel [--extra EXTRA]          the wheel, installed by pip anew, and its demo
    python -m tests.campaigns kafka-versions [--help]        hand-over and take-over with several versions of Kafka
    python -m tests.campaigns versions [--help]              other Pythons and packages: docs/tested-versions.md

Each prints what it would take to see a failure again.
"""
