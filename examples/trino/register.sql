CREATE SCHEMA IF NOT EXISTS gold;
CALL system.register_table('gold', 'attributions', 'GOLD/attributions');
CALL system.register_table('gold', 'sessions', 'GOLD/sessions');
CALL system.register_table('gold', 'campaign_stats', 'GOLD/campaign_stats');
CALL system.register_table('gold', 'moving_averages', 'GOLD/moving_averages');
CALL system.register_table('gold', 'user_status', 'GOLD/user_status');
CALL system.register_table('gold', 'restatements', 'GOLD/restatements');
CALL system.register_table('gold', 'days', 'GOLD/days');
