"""Which of Kafka Streams' public methods are here: docs/completeness.md, drawn from their list and from our answers.

``python -m tests.completeness`` draws the page again; with jars it takes the methods from these first::

    python -m tests.completeness kafka-streams-4.5.0.jar kafka-streams-test-utils-4.5.0.jar

What the release has added is marked ``(new)`` in ``kafka_streams.txt``, overloads too, and missing on the page. Who has
answered for it, or seen that the answer of its name is true of it, takes the mark away.

Begin with `answer`; `class_files` reads jars.
"""
