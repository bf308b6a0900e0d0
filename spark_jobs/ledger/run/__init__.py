"""The ledger of a bounded run, counted as a whole."""
