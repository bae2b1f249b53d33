-- The rows of several queries.
{queries}
