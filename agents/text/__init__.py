"""Pure functions over text: sentences, words, numbers, dates, names, units, relevance, merging."""
