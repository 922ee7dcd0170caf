//! Names of remote tools as models see them: `mcp__server__tool`.
