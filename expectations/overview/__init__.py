"""One page of charts: what the tables of a lake say."""
