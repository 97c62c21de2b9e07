"""What a run is asked to do: its spec, its agents and models, its plan."""
