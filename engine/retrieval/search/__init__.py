"""Finding passages: lexical and dense search, their fusion, filters, diversity and reranking."""
