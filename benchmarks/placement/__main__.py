"""``python -m benchmarks.placement``: what happens to a large cluster, under each strategy; a table and a plot each."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from benchmarks.placement.cluster import SCENARIOS, Cluster, RunCost, Size
from benchmarks.placement.strategies import STRATEGIES
from hindstream.report.charts import Series, drawing, element, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_STYLE = """
text { font: 11px sans-serif; fill: #616e7c } line { stroke: #e4e7eb } .line { fill: none; stroke-width: 2 }
.s0 { stroke: #d9480f; fill: #d9480f } .s1 { stroke: #1c7ed6; fill: #1c7ed6 } .s2 { stroke: #868e96; fill: #868e96 }
.s3 { stroke: #2b8a3e; fill: #2b8a3e } .line.s0, .line.s1, .line.s2, .line.s3 { fill: none }
"""
_HEADER = (
    "| | runs | moved | waited for | copied beside | without an owner | last task, worst run | CPU of an assignment |"
)
_PLOTTED_RUNS = 24
_CHART_HEIGHT = 226


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, prog="python -m benchmarks.placement", description=__doc__)
    parser.add_argument("--hosts", type=int, default=Size.hosts)
    parser.add_argument("--tasks", type=int, default=Size.tasks)
    parser.add_argument("--learners", type=int, help="max_warmup_replicas; default: a fifth of the hosts")
    parser.add_argument("--only", nargs="+", default=[one.title for one in STRATEGIES], metavar="STRATEGY")
    parser.add_argument("--output", type=Path, default=Path("placement"), help="a folder for plots and figures")
    arguments = parser.parse_args()
    size = Size(hosts=arguments.hosts, tasks=arguments.tasks)
    learners = arguments.learners or max(size.hosts // 5, 1)
    size = replace(size, config=replace(size.config, max_warmup_replicas=learners))
    print(size, flush=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    figures: dict[str, dict[str, list[dict[str, object]]]] = {}
    for scenario, happen in SCENARIOS.items():
        print(f"\n{scenario}\n{_HEADER}\n|---|{'---:|' * 7}", flush=True)
        costs = {}
        for strategy in STRATEGIES:
            if strategy.title in arguments.only:
                costs[strategy.title] = list(happen(Cluster(size, strategy)))
                print(_row(strategy.title, costs[strategy.title]), flush=True)
        figures[scenario] = {title: [asdict(cost) for cost in its] for title, its in costs.items()}
        file = arguments.output / f"placement-{scenario.replace(' ', '-')}.svg"
        file.write_text(_plot(scenario, costs), encoding="utf-8")
    document = {"size": asdict(size), "scenarios": figures}
    (arguments.output / "placement.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _row(title: str, costs: Sequence[RunCost]) -> str:
    waited, copied = (sum(getattr(cost, name) for cost in costs) for name in ("waited_for_bytes", "copied_bytes"))
    cells = (
        title,
        f"{len(costs)}",
        f"{sum(cost.moved_tasks for cost in costs):,}",
        f"{waited / 1e12:,.2f} TB",
        f"{copied / 1e12:,.1f} TB",
        f"{sum(cost.without_owner_seconds for cost in costs) / 3600:,.1f} h",
        f"{max(cost.last_task_seconds for cost in costs):,.0f} s",
        f"{max(cost.assignor_seconds for cost in costs):.2f} s",
    )
    return f"| {' | '.join(cells)} |"


def _plot(scenario: str, costs: Mapping[str, Sequence[RunCost]]) -> str:
    """What tasks wait for, and what has been fetched, run by run."""
    runs = min(max(map(len, costs.values())), _PLOTTED_RUNS)
    names = [str(run + 1) for run in range(runs)]
    waited = [_series(costs, number, _owner_minutes, runs) for number in range(len(costs))]
    fetched = [_series(costs, number, _fetched_so_far, runs) for number in range(len(costs))]
    what = "task minutes without an owner, by run (logarithmic)"
    charts = (
        (what, lines(names, waited, label=f"{scenario}: {what}", logarithmic=True)),
        ("TB fetched so far, by run", lines(names, fetched, label=f"{scenario}: TB fetched so far, by run")),
    )
    parts = [
        element("text", one.name, x=70.0 + 130.0 * number, y=14.0, class_=one.css) for number, one in enumerate(waited)
    ]
    for number, (title, chart) in enumerate(charts):
        top = 30 + number * (_CHART_HEIGHT + 24)
        parts.append(element("text", title, x=70.0, y=top + 10.0))
        place = f'<svg y="{top + 16}" width="560" height="{_CHART_HEIGHT}" '
        parts.append(Markup(str(chart).replace("<svg ", place, 1)))
    height = 30 + 2 * (_CHART_HEIGHT + 24)
    return str(drawing(element("style", Markup(_STYLE)), *parts, label=scenario, height=height))


def _series(
    costs: Mapping[str, Sequence[RunCost]], number: int, figure: Callable[[Sequence[RunCost], int], float], runs: int
) -> Series:
    """One strategy's, up to its last run."""
    title, its = list(costs.items())[number]
    return Series(title, [figure(its, run) if run < len(its) else None for run in range(runs)], f"s{number}")


def _owner_minutes(costs: Sequence[RunCost], run: int) -> float:
    return costs[run].without_owner_seconds / 60


def _fetched_so_far(costs: Sequence[RunCost], run: int) -> float:
    return sum(cost.waited_for_bytes + cost.copied_bytes for cost in costs[: run + 1]) / 1e12


if __name__ == "__main__":
    main()
