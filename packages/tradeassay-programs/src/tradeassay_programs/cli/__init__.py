"""Define the commands about programs that trade."""
