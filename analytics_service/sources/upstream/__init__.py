"""Another deployment of this interface as a source, read over HTTP."""
