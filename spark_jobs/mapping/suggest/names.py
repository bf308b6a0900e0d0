"""The usual names of fields, and how well the name of a column fits."""

import re
from collections.abc import Mapping, Sequence
from functools import cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|[0-9]+")
_GENERIC = {"id", "value", "key", "name", "code", "uuid", "guid", "type", "time", "at", "ts", "timestamp", "date"}
"""Names that say little without the object that they are in: ``$.user.id``."""
_WRAPPERS = {
    *("data", "payload", "properties", "props", "event", "params", "body", "context", "contexts", "ext", "message"),
    *("record", "fields", "attributes", "attrs", "detail", "details", "meta", "metadata", "value", "after", "root"),
}
"""Objects that say nothing about what is in them."""
_PER_WORD, _PER_LEVEL = 2.0, 0.2
_PART_OF_NAME = 3.0

Names = Mapping[str, float]


def _names(**by_score: str) -> Names:
    return {name: float(score.removeprefix("s")) for score, text in by_score.items() for name in text.split()}


EVENT_ID = _names(
    s10="eventid eventuuid eventguid insertid",
    s8="id eid uuid guid messageid msgid recordid hitid logid rowid",
    s6="requestid reqid rid transactionid auctionid bidid traceid",
)
IMPRESSION_ID = _names(
    s10="impressionid impid imprid adimpressionid imptrackingid viewid servedid",
    s8="impression imp impr impressionuuid imptoken",
    s5="requestid reqid rid auctionid bidid transactionid parentid refid refererid originid",
)
CLICK_ID = _names(s10="clickid clkid clickuuid adclickid", s8="click clk")
CONVERSION_ID = _names(s10="conversionid convid", s8="conversion conv")
CONVERSION_TYPE = _names(
    s10="conversiontype conversionname conversionaction convtype", s8="goal goalname goaltype", s6="action actiontype"
)
VALUE = _names(
    s10="valuemicros conversionvalue value valuecents",
    s9="revenue revenuemicros revenuecents ordervalue ordertotal purchasevalue",
    s7="amount amountcents total totalprice price payout",
)
CURRENCY = _names(s10="currency currencycode", s8="valuecurrency cur ccy")
ORDER_ID = _names(s10="orderid ordernumber orderno", s8="order transactionid purchaseid")
REVOKES = _names(s10="revokes refundof reversalof", s8="revokedid refundedid reversedid")
CLICKED = _names(s10="click clicked clk isclick isclicked isclk clickflag hasclick wasclicked")
CONVERTED = _names(
    s10="conversion converted conv isconversion isconverted conversionflag hasconversion",
    s8="purchase purchased bought buy isbuy sale sold",
)
USER_ID = _names(
    s10="userid uid user userpseudoid userkey",
    s9="visitorid visitor actorid authorid buyeruid domainuserid customerid memberid subscriberid personid viewerid "
    "playerid profileid gpsadid",
    s8="anonymousid anonid networkuserid accountid guestid readerid consumerid contactid username login customer "
    "actor author",
    s7="cookieid cookie clientid deviceid ifa idfa gaid aaid maid advertisingid rdid duid browserid email idfv",
    s5="device deviceuid fingerprint msisdn phone",
    s3="u ip ipaddress clientip remoteaddr remoteip remotehost ipaddr cip useripaddress sessionid session host hostid",
)
IP = _names(
    s10="ip ipaddress ipaddr clientip userip useripaddress remoteip visitorip cip ipv4 ipv6",
    s9="clientaddress clientaddr clientipaddress remoteaddr remoteaddress sourceip srcip realip deviceip",
)
USER_AGENT = _names(s10="useragent useragentstring httpuseragent ua uastring", s8="browseragent clientagent agent")
NOT_THE_CLIENT = {"server", "local", "proxy", "host", "upstream", "edge", "dest", "destination", "dst", "target", "bot"}
"""Words of names of addresses and agents that are not of whoever saw or clicked an ad."""
CAMPAIGN_ID = _names(
    s10="campaignid campaign",
    s9="cmpid camp cmp campid campaigncode campaignkey campaignuuid utmcampaign",
    s7="cid",
    s6="campaignname lineitemid lineitem lineid orderid insertionorderid",
)
AD_ID = _names(
    s10="adid ad",
    s9="crid creativeid creative adcode bannerid adkey aduuid",
    s8="banner cr cre crtv adname",
    s6="creativename adunitid assetid adgroupid adgroup",
)
COST = _names(
    s10="costmicros pricemicros cost price bidprice winprice clearingprice cpm ecpm costamount priceamount mediacost",
    s8="spend costusd priceusd pricecpm costcpm amount payout pricecents costcents pricenanos costnanos revenue rev",
    s6="bid charge chargedprice value",
)
TIME = _names(
    s11="eventtime eventtimestamp eventts eventat eventdatetime derivedtstamp occurredat occurred happenedat",
    s10="timestamp ts time tstamp",
    s9="datetime requesttime clicktime impressiontime clickedat servedat shownat viewedat datehour dvcecreatedtstamp",
    s8="createdat created createtime creationtime createdtime clienttime logtime logdate eventdate utctime isotime t",
    s7="servertime collectortstamp localtime dt at date day hour",
)
TIME_WORDS = {"time", "timestamp", "tstamp", "ts", "at", "date", "datetime", "epoch", "when", "clock"}
"""In the names of times that are called otherwise."""
TYPE = _names(
    s10="eventtype eventname",
    s9="type event action kind",
    s7="name actiontype actionname verb op operation activity recordtype rectype logtype category ev evt et e",
    s5="topic method",
)
IS_LAST = _names(s10="islast sessionend endofsession issessionend lastinsession", s6="last final isfinal")
DATA = _names(
    s10="data payload",
    s8="properties props message text eventproperties params eventparams attributes",
    s6="page url uri pageurl path query request title content comment body details description referer referrer "
    "context",
)
NOT_A_USER = {
    *("campaign", "ad", "creative", "placement", "site", "publisher", "page", "product", "item", "app", "advertiser"),
    *("order", "line", "impression", "imp", "click", "request", "auction", "event", "bid", "country", "region", "type"),
    *("message", "transaction", "article", "content", "category", "agent", "os", "version", "banner", "unit", "cid"),
    *("schema", "stream", "property", "currency", "language", "locale", "partition", "offset", "channel", "zone"),
}
"""Words of names that end in ``id`` and are not of somebody."""
NOT_THE_EVENT = {
    *("received", "receive", "ingest", "ingested", "ingestion", "processed", "processing", "updated", "modified"),
    *("upload", "uploaded", "load", "loaded", "etl", "sent", "published", "kafka", "insert", "inserted", "expires"),
    *("expiry", "expire", "start", "end", "birth", "session", "first", "last", "previous", "prev", "install"),
    *("installed", "registered", "signup", "valid", "until", "ttl", "exp", "touch", "order", "collector", "bid"),
}
"""Words of names of times that are not when the event happened."""


@cache
def words(key: str) -> tuple[str, ...]:
    """The words of a key, in small letters: ``eventTime_ms`` has ``event``, ``time``, ``ms``."""
    return tuple(word.lower() for word in _WORD.findall(key))


@cache
def _name(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The words that name a column: those of its last key, and of the object around it if that key is generic."""
    last = words(keys[-1]) if keys else ()
    if "".join(last) not in _GENERIC:
        return last
    around = next((words(key) for key in reversed(keys[:-1]) if "".join(words(key)) not in _WRAPPERS), ())
    return (*around, *last)


def all_words(keys: Sequence[str]) -> set[str]:
    """All words of the name of a column."""
    return set(_name(tuple(keys)))


def name_score(keys: Sequence[str], names: Names) -> float:
    """How well the name of a column fits: 0 if not at all.

    The words at its end may fit as well, less so with each word before them: ``tracking_user_id``.
    """
    name = _name(tuple(keys))
    for start in range(len(name)):
        end = name[start:]
        if start and len(end) == 1 and end[0] in _GENERIC:
            break
        if score := names.get("".join(end)):
            return max(0.1, score - _PER_WORD * start - _PER_LEVEL * (len(keys) - 1))
    return 0.0


def time_score(keys: Sequence[str]) -> float:
    """How well the name of a column fits a time: 0 if not at all."""
    return name_score(keys, TIME) or _PART_OF_NAME * bool(all_words(keys) & TIME_WORDS)
