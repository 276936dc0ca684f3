-- Version 5: images of messages. Equal images are stored once.

ALTER TABLE node ADD COLUMN n_images INTEGER;  -- user: number of images; NULL if it has none

CREATE TABLE image (
    n           INTEGER PRIMARY KEY,
    digest      BLOB NOT NULL UNIQUE,          -- engine.api.image.Image.digest
    media_type  TEXT NOT NULL,
    width       INTEGER NOT NULL,
    height      INTEGER NOT NULL,
    data        BLOB NOT NULL
);

-- The images of a node in their order.
CREATE TABLE node_image (
    tree_id     TEXT NOT NULL REFERENCES tree (id),
    node_id     TEXT NOT NULL REFERENCES node (id),
    position    INTEGER NOT NULL,
    image_n     INTEGER NOT NULL REFERENCES image (n),
    PRIMARY KEY (tree_id, node_id, position)
) WITHOUT ROWID;
CREATE INDEX node_image_image ON node_image (image_n);
