"""What the project costs on this machine. ``python -m benchmarks`` runs it, ``RESULTS.md`` keeps what came out."""
