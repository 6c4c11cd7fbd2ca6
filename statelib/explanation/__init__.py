"""Which source records made a result of a job, and which were dropped on the way.

Begin with `explainer`. The history that leads to the result is replayed by the real operators, while somebody looks on
(`replayed`, `rows`); what may matter is followed backwards (`needed`); and what does matter is found by replaying it
alone, with the clocks of the whole history (`alone`, `minimal`).
"""

from statelib.explanation.explainer import explain
from statelib.explanation.explanation import Contribution, Dropped, Explanation, Place, Result, Step
from statelib.explanation.result import find_result, result_at

__all__ = ["Contribution", "Dropped", "Explanation", "Place", "Result", "Step", "explain", "find_result", "result_at"]
