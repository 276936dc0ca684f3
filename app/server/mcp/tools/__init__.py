"""The tools, one file each; `catalogue.TOOLS` lists them."""
