-- How many values from a start (unix second) to before an end may be wrong?
SELECT count() AS anomalies FROM anomalies(start = {start:UInt32}, end = {end:UInt32}, factor = 3)
