"""What Spark's Python workers are forked from: a process that has imported the engine, and loaded its kernels.

Each worker would import it anew otherwise, which takes a second of CPU time and some 200 MiB of memory that all of them
can share. Spark starts it by its name, the setting ``spark.python.daemon.module``.
"""

from __future__ import annotations

from hindstream.garbage import collect_seldom
from hindstream.spark.session.compiling import marked
from hindstream.spark.session.imports import importing

with importing():
    from pyspark import daemon

    import statelib.task  # noqa: F401
    from statelib.kernels.compiled import load_kernels

    with marked():
        load_kernels()

if __name__ == "__main__":
    collect_seldom()  # as do the workers, which are forks
    daemon.manager()  # type: ignore[no-untyped-call]
