-- Has no earlier run written observations before the head since one began? If it has died, cells would lack them.
SELECT rows <= {left:UInt64}
FROM ({left_behind})
