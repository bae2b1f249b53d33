"""What prices are in: USD. A header, a pair, a symbol or the name of a file may name another unit, which is refused."""

import re

# USD, and what is worth as much.
DOLLARS = ("usd", "usdt", "usdc", "dai", "busd", "tusd", "usdp", "fdusd", "pyusd", "gusd", "usde", "us$", "$")
_OFFICIAL = (
    *("eur", "gbp", "jpy", "chf", "cad", "aud", "nzd", "sek", "nok", "dkk", "pln", "czk", "huf", "try", "brl", "mxn"),
    *("zar", "inr", "krw", "cny", "hkd", "sgd", "rub", "uah"),
)
_COINS = ("eurc", "eurt", "btc", "xbt", "wbtc", "eth", "weth", "bnb", "sol")
# After a dash other words are part of a symbol, such as UNI-V2.
_PAIR = re.compile(r"([A-Za-z0-9.]+)([/_-])([A-Za-z0-9.$]+)")
# Without a mark between them. Shorter ones are symbols of their own, such as sUSD and agEUR.
_JOINED = re.compile(rf"([a-z0-9]{{2,}}?)(usd[tc]?|busd|fdusd)|([a-z0-9]{{3,}}?)({'|'.join(_OFFICIAL)})", re.IGNORECASE)
_VALUES = ("price", "close", "open", "high", "low", "value", "rate", "usd", "tvl")
QUOTES = ("currency", "quote", "vs_currency", "quote_asset", "quote_currency")
"""Names of columns that say in what prices are."""


def base_of(name: str) -> str | None:
    """What a pair in USD prices, such as BTC of BTC/USDT; None of what is no pair."""
    pair = _PAIR.fullmatch(name)
    return pair[1] if pair and pair[3].casefold() in DOLLARS else None


def pair_fault(name: str) -> str | None:
    """Why a symbol that no asset has is none: it may be a pair."""
    pair, joined = _PAIR.fullmatch(name), _JOINED.fullmatch(name)
    if pair and pair[3].casefold() not in DOLLARS and (pair[2] == "/" or pair[3].casefold() in (*_OFFICIAL, *_COINS)):
        return (
            f"is {pair[1]} in {pair[3]}, and prices are in USD; convert them, or describe such an asset with --assets"
        )
    if joined is None or name.casefold() in DOLLARS:
        return None
    if joined[3]:
        return f"may be {joined[3]} in {joined[4]}; convert prices to USD, or describe such an asset with --assets"
    return f"may be {joined[1]} in {joined[2]}; name the asset {joined[1]}, or describe such an asset with --assets"


def named_money(name: str) -> str | None:
    """The unit other than USD that the name of a column of values names, such as EUR of price_eur."""
    first, *others = _words(name) or [""]
    money = [word for word in (first, *others) if word in _OFFICIAL]
    money += [word for word in others[-1:] if first in _VALUES and word in _COINS]
    return money[0].upper() if money else None


def file_money(stem: str) -> str | None:
    """The unit other than USD that the name of a file names after an asset, such as EUR of btc-eur."""
    words = _words(stem)
    joined = [match[4] for word in words if (match := _JOINED.fullmatch(word)) and match[3]]
    return next((word.upper() for word in (*[word for word in words[1:] if word in _OFFICIAL], *joined)), None)


def _words(name: str) -> list[str]:
    humps = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9$]+", humps.lower()) if word]
