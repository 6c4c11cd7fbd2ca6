"""The states of aggregate functions for all windows of a working set, by slot: numpy arrays, and loops over them.

Begin with `numbers`: counts, sums, extremes and variances. `table_numbers` takes values back, as tables need it. Others
have a module each, and their loops beside it: `decimals`, `picks`, `collecting`, `top`, `quantiles`, `hyperloglog`,
`distinct_values`. States of no fixed size lie in `blocks`; what all of them see of a batch is in `inputs`.
"""
