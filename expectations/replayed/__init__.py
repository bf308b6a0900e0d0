"""The page of a replay: how a window of gold differs from what bronze says."""
