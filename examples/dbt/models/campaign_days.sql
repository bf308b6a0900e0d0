-- What each campaign had and cost on each day. An impression with several clicks has several rows in attributions.
with impressions as (
    select
        event_date,
        campaign_id,
        impression_id,
        count(click_id) as clicks,
        any_value(cost_micros) as cost_micros
    from {{ source('gold', 'attributions') }}
    where status <> 'orphan_click'
    group by all
)

select
    event_date,
    campaign_id,
    count(*) as impressions,
    sum(clicks)::bigint as clicks,
    sum(clicks) / count(*) as ctr,
    -- Integers until the last step: money does not add up in floating point.
    sum(cost_micros)::bigint as cost_micros,
    sum(cost_micros)::decimal(24, 0) * 0.000001::decimal(7, 6) as cost
from impressions
group by event_date, campaign_id
