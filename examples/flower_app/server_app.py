"""Flower server: FedAvg behind ShuffledStrategy, which counts, and refuses what may not be released."""

from __future__ import annotations

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from task import ROUNDS, TERMS, accuracy, first_model

from shuffledp.flower import ShuffledStrategy

app = ServerApp()


def public_evaluation(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    """Public digits cost no privacy."""
    del server_round
    return MetricRecord({"accuracy": accuracy(arrays)})


def train(grid: Grid) -> tuple[ArrayRecord, ShuffledStrategy]:
    """Run all rounds, or as many as the budget allows."""
    strategy = ShuffledStrategy(FedAvg(fraction_evaluate=0.0), TERMS, min_messages=500, delta=1e-6, max_epsilon=2.0)
    result = strategy.start(grid, first_model(), num_rounds=ROUNDS, evaluate_fn=public_evaluation)
    return result.arrays, strategy


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train and report."""
    del context
    arrays, strategy = train(grid)
    print(f"accuracy on other digits: {100 * accuracy(arrays):.1f} %")
    print(strategy.report().describe())
