"""The published results of all rounds: result sets, hashes of logs and hyperparameters."""
