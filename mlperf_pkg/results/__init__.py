"""The numbers of a result set, and the report that holds them."""
