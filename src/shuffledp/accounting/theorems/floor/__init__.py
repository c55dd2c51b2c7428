"""The floor: what dummies alone guarantee, whoever else takes part."""
