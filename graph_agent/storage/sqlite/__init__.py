"""The one SQLite file: checkpoints, journal, ledger, locks, search."""
