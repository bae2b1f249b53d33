-- How many values since an instant are in doubt, and were not corrected since?
SELECT count() AS anomalies FROM anomalies_since(time = {time:String})
