"""Which events are invalid traffic: one module for each kind of rule, and what puts them together.

Each kind is a function of events and a rule. The events have the columns of silver and ``ip`` and ``user_agent``, each
event once; those of other types and those around the wanted time are among them, because rules look at them. A kind
returns ``event_type``, ``event_id``, ``event_time`` and ``evidence`` of the events that the rule marks.
"""
