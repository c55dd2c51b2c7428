"""`demo`: the main job on bundled data, and a whole collection on this machine."""
