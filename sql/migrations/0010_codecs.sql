-- Codecs by measured table (`python -m tests.benchmarks --only storage`): GCD drops the zeros at the end of decimals that
-- have fewer than 18 places, and what is left of times and versions after Delta fits few bits. Parts that are there
-- take them on when they are next merged.

ALTER TABLE price
    MODIFY COLUMN observed_at CODEC(Delta, T64, ZSTD(1)),
    MODIFY COLUMN price CODEC(GCD, ZSTD(1)),
    MODIFY COLUMN version CODEC(Delta, T64, ZSTD(1));

ALTER TABLE price_rollup MODIFY COLUMN price CODEC(GCD, ZSTD(1));

ALTER TABLE lend_rate
    MODIFY COLUMN observed_at CODEC(Delta, T64, ZSTD(1)),
    MODIFY COLUMN apr CODEC(GCD, ZSTD(1)),
    MODIFY COLUMN version CODEC(Delta, T64, ZSTD(1));

ALTER TABLE lend_rate_rollup MODIFY COLUMN apr CODEC(GCD, ZSTD(1));

ALTER TABLE borrow_rate
    MODIFY COLUMN observed_at CODEC(Delta, T64, ZSTD(1)),
    MODIFY COLUMN apr CODEC(GCD, ZSTD(1)),
    MODIFY COLUMN version CODEC(Delta, T64, ZSTD(1));

ALTER TABLE borrow_rate_rollup MODIFY COLUMN apr CODEC(GCD, ZSTD(1));

ALTER TABLE loans_originated
    MODIFY COLUMN observed_at CODEC(Delta, T64, ZSTD(1)),
    MODIFY COLUMN usd CODEC(GCD, ZSTD(1)),
    MODIFY COLUMN version CODEC(Delta, T64, ZSTD(1));

ALTER TABLE loans_originated_rollup MODIFY COLUMN usd CODEC(GCD, ZSTD(1));
