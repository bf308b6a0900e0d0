"""How each table of gold is corrected when events came too late for it: one module per table.

A module declares ``CORRECTION``: given late events, which rows they touch, and how these rows should be. It goes by the
operator of the live query or by its rule, over all events, late ones included.
"""
