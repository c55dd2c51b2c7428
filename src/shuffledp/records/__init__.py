"""Records as people hold them: where they come from, whose they are, at which budgets, as codes and numbers."""
