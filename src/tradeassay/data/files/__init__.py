"""Import of CSV and Parquet files: any folder of OHLCV data, with the guesses shown and the faults located."""
