"""How the theorems are evaluated: (C), (I), (Z), (W), and the sums of noises."""
