"""On a GPU: products with kernel matrices, and whole fits against a few lines of torch."""
