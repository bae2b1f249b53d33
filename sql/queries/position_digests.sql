-- Which digest of each address was written last, and was its run completed?
SELECT
    address,
    tupleElement(last, 1) AS digest,
    tupleElement(last, 2) AS complete,
    observed_at
FROM
(
    SELECT
        address,
        max(d.observed_at) AS observed_at,
        argMax(
            (d.digest, d.version IN (SELECT version FROM snapshot WHERE family = 'positions')),
            (d.observed_at, d.version)) AS last
    FROM position_digest AS d
    GROUP BY address
)
