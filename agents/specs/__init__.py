"""The agents that come with Pravāha: a file each, `CATEGORY/KEY.md`, and the reader of such files."""
