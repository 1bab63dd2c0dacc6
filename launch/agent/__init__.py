"""The process that forks the ranks: `python -m launch.agent`."""
