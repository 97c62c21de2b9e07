"""Other ways in: the same benchmarks from Inspect's command line. Importing this imports none of them."""
