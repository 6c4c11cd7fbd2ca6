"""What fails under a job: kills, power cuts, full disks, damaged files, lost answers, object stores that refuse."""
