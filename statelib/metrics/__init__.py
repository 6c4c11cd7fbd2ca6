"""What tasks count and measure.

Begin with `node_metrics`.
"""
