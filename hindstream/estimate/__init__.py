"""What a job will cost: its time, CPU, memory, state and outputs, told before it runs.

Counts (`evidence`: records at each node, of former runs or of a sample) times costs (`calibration`: of the machine).

Begin with `prediction`.
"""
