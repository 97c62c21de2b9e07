"""The four dimensions of SysTradeBench, as printed and as measured."""
