"""Files and public sets into records."""
