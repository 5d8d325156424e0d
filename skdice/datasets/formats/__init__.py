"""The formats of annotation tools, a file for each; `skdice._names` lists them."""
