"""What the templates are given: documents turned into figures, tables and charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.console.numbers import bytes_text, duration_text, seconds_text
from hindstream.report import charts
from hindstream.report.charts import Figure, Series
from hindstream.report.documents import RunDocuments, lateness
from hindstream.report.flow import display_names, flow, order
from hindstream.report.losses import losses
from hindstream.report.metrics_table import measure_rows, windows
from hindstream.report.placement import host_rows, task_rows, waiting
from hindstream.report.topology import topology_picture
from statelib.metrics.node_metrics import LATENESS_BOUNDS_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hindstream.report.history import History
    from statelib.job.job import Job
    from statelib.metrics.node_metrics import Lateness, NodeMetrics

_PALETTE = ("s1", "s2", "s3", "s4", "s5", "s6")
_PHASE_COLOURS = ("s7", *_PALETTE)

TASK_PHASES = ("fill", "restore", "read", "process", "spill", "write", "checkpoint")


def run_page(job: Job, run: RunDocuments) -> dict[str, object]:
    """The page of one run."""
    nodes = run.nodes
    return {
        "job": job.name,
        "run": run,
        "nodes": nodes,
        "order": order(job.topology, nodes),
        "names": display_names(job.topology),
        "flow": flow(job.topology, nodes) if nodes else None,
        "losses": losses(job.topology, nodes),
        "windows": windows(nodes),
        "measures": measure_rows(job.topology, run),
        "charts": _lateness_figures(nodes),
        "tasks": _task_times(run),
        "task_legend": list(zip(_PHASE_COLOURS, TASK_PHASES, strict=True)),
        "data_docs": _link_to_docs(run),
        "waiting": waiting(run),
        "hosts": host_rows(run),
        "placed": task_rows(run),
    }


def job_page(job: Job, history: History, figures: Sequence[Figure]) -> dict[str, object]:
    """The page of a job: its own ``figures``, what its committed runs did together, and each of the newest runs."""
    nodes = history.nodes
    return {
        "job": job.name,
        "history": history,
        "nodes": nodes,
        "order": order(job.topology, nodes),
        "names": display_names(job.topology),
        "flow": flow(job.topology, nodes) if nodes else None,
        "topology": topology_picture(job.topology),
        "description": job.topology.describe(),
        "losses": losses(job.topology, nodes),
        "figures": figures,
        "notes": job.notes,
        "charts": [*_lateness_figures(nodes), *_history_figures(history)],
    }


def _lateness_figures(nodes: dict[str, NodeMetrics]) -> list[Figure]:
    return [_lateness_figure(node, histogram) for node, histogram in lateness(nodes).items()]


def _lateness_figure(node: str, histogram: Lateness) -> Figure:
    names = ["on time", *(f"≤ {duration_text(bound)}" for bound in LATENESS_BOUNDS_MS[1:])]
    names.append(f"> {duration_text(LATENESS_BOUNDS_MS[-1])}")
    filled = [i for i, count in enumerate(histogram.counts) if count]
    shown = slice(0, max(filled, default=0) + 1)
    records = sum(histogram.counts)
    mean = duration_text(round(histogram.total_ms / max(records, 1)))
    return Figure(
        "Lateness",
        charts.columns(
            names[shown],
            [Series("records", histogram.counts[shown], "s1")],
            label="Lateness of records",
            logarithmic=True,
        ),
        f"How far behind stream time records reached {node}: {mean} in the mean, {duration_text(histogram.max_ms)}"
        " at most. The scale is logarithmic.",
    )


def _history_figures(history: History) -> list[Figure]:
    """How the job went, run by run."""
    committed = [run for run in history.newest if run.is_committed]
    names = [str(run.commit) for run in committed]
    stores = sorted({store for run in committed for store in run.stores})
    sizes = [
        Series(store, [run.stores.get(store) for run in committed], css)
        for store, css in zip(stores, _cycle(len(stores)), strict=True)
    ]
    phases = [
        Series(phase, [run.seconds.get(phase, 0.0) for run in committed], css)
        for phase, css in (("replay", "s1"), ("audit", "s3"))
    ]
    records = [Series("", [float(run.records_in) for run in committed], "s1")]
    return [
        Figure(
            "Records by commit",
            charts.columns(names, records, label="Records replayed by commit"),
            "Records taken up from all source topics.",
        ),
        Figure(
            "State by commit",
            charts.lines(names, sizes, label="Size of each store by commit", form=bytes_text, base=1024),
            "Size of each store after the commit, as RocksDB estimates it.",
            _legend(sizes),
        ),
        Figure(
            "Time by commit",
            charts.columns(names, phases, label="Seconds by phase and commit", form=seconds_text),
            "Wall-clock time of the phases that are timed.",
            _legend(phases),
        ),
    ]


def _task_times(run: RunDocuments) -> list[dict[str, object]]:
    """A row a task: its phases as shares of the slowest task's time."""
    tasks = run.staged.tasks if run.staged else ()
    records = {task.task_id: sum(source.records for source in task.sources) for task in run.plan.tasks}
    longest = max((sum(task.seconds.values()) for task in tasks), default=0.0) or 1.0
    return [
        {
            "task": task,
            "total": sum(task.seconds.values()),
            "parts": [
                {"css": css, "phase": phase, "seconds": task.seconds.get(phase, 0.0),
                 "share": 100 * task.seconds.get(phase, 0.0) / longest}
                for css, phase in zip(_PHASE_COLOURS, TASK_PHASES, strict=True)
            ],
            "records": records[task.task_id],
        }
        for task in tasks
    ]  # fmt: skip


def _link_to_docs(run: RunDocuments) -> str | None:
    """From the page of a run to its validation in Data Docs, both below the job's folder."""
    return f"../{run.audit.data_docs}" if run.audit and run.audit.data_docs else None


def _legend(series: Sequence[Series]) -> list[tuple[str, str]]:
    return [(s.css, s.name) for s in series]


def _cycle(count: int) -> list[str]:
    return [_PALETTE[i % len(_PALETTE)] for i in range(count)]
