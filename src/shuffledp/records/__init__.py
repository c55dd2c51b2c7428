"""The records of people: their sources, their owners and budgets, and their conversion to codes and numbers."""
