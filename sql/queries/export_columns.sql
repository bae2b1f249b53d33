-- Which columns does each view have? One that takes parameters has none.
SELECT table AS view, name, type
FROM system.columns
WHERE database = currentDatabase()
  AND table IN (
      SELECT name
      FROM system.tables
      WHERE database = currentDatabase() AND engine = 'View' AND match(name, '^[A-Za-z_][A-Za-z0-9_]*$'))
ORDER BY view, position
