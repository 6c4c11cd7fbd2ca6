"""What tasks count and measure.

Begin with `statelib.metrics.node_metrics`.
"""
