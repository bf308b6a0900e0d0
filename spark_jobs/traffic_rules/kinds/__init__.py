"""The kinds of rules, a module each.

Each kind is a function of events and a rule. The events have the columns of silver and ``ip`` and ``user_agent``, each
event once; they include other types and events around the wanted time, because rules use them. A kind returns
``event_type``, ``event_id``, ``event_time`` and ``evidence`` of the events that the rule marks.
"""
