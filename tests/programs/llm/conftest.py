from model_isolation import only_loopback, stand_in_keys  # noqa: F401  # fixtures of every test
