-- Where the vectors are: see engine.retrieval.vectors.vector_index.
ALTER TABLE collection ADD COLUMN vector_store TEXT NOT NULL DEFAULT 'auto';
-- Of pgvector: the environment variable with the address of the database, and the beginning of the tables' names.
ALTER TABLE collection ADD COLUMN dsn_env TEXT;
ALTER TABLE collection ADD COLUMN vector_table TEXT;
