"""`EMBEDDED_TEXT`: what the embedding model has read of a stored chunk, as SQL; see `Chunk.embedded_text`."""

EMBEDDED_TEXT = (
    "CASE WHEN in_table "
    "THEN (SELECT group_concat(value, char(10)) FROM json_each(headings)) || char(10) || text "
    "ELSE text END"
)
