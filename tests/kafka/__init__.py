"""Tests against a real Kafka, and the bed that they lie in.

`tests.kafka.broker`
    A broker as a process of this one, on loopback; with TLS and a password if wanted (fixtures ``broker``,
    ``secured_broker``).
`tests.kafka.cluster`
    What tests do with it: topics, records, transactions, offsets (fixture ``cluster``).
`tests.kafka.streams_app`
    Real Kafka Streams applications, whose topologies are in ``streams-app``, each in a file: they process, tell what
    their stores hold, stop in good order and start again.
`tests.kafka.registry`
    A schema registry with Confluent's API (fixture ``schema_registry``).
`tests.kafka.maven`
    Builds and fetches all that is Java here. A machine needs no Maven and no JDK: Maven is fetched, the compiler is a
    library, and a Java run-time is what ``./dev`` has. The first time that takes a minute and some 130 MB from Maven
    Central, and 160 more where a test wants the registry; later, nothing. If it cannot be had, the tests fail and say
    so.

Run them with ``./dev test tests/kafka``; with the Java of a machine that has none, ``HINDSTREAM_JAVA=bundled ./dev test
tests/kafka``. The examples are ``test_broker.py`` and its neighbours. Each process of pytest has its own servers, and
each test takes names of its own (fixture ``unique``). A server's log lies in its folder below pytest's temporary one.
"""
