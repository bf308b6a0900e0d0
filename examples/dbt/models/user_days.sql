-- How active each user was on each day.
select
    event_date,
    user_id,
    count(*) as sessions,
    sum(impression_count)::bigint as impressions,
    sum(click_count)::bigint as clicks,
    sum(epoch_ms(session_end) - epoch_ms(session_start))::bigint as active_ms
from {{ source('gold', 'sessions') }}
group by event_date, user_id
