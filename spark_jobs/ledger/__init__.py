"""The ledger: where every record went, kept while jobs run, from commits and the rows they added. No Spark."""
