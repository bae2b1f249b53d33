-- What the redemption ratio is, where a receipt token has other decimals than its asset.

ALTER TABLE market_lend
    COMMENT COLUMN IF EXISTS receipt_supply 'Receipt tokens outstanding, in denom units; principal / receipt_supply, both in standard units, is the redemption ratio';
