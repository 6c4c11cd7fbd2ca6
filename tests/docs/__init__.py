"""Pages say what is so: commands run, examples print, names exist."""
