"""Supervision of drivers: deciding what to do (``rules``), doing it (``watch``), and the DAG per job (``dag``)."""
