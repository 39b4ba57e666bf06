"""The public conformance suite of MCP, run against our server and against a fixture server."""
