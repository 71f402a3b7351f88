"""What other libraries need to know of cgrad, one module each; nothing here is loaded unless it is imported."""
