-- Are all files of a table as they were written?
CHECK TABLE {table}
SETTINGS check_query_single_value_result = 1
