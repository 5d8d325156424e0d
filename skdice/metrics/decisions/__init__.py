"""Decisions from probabilities: what they are tuned for, and how, without any estimator.

From the user's word to a bias, in this order: `chosen_objective` finds the objective, which is a
score or a cost (`objectives`) or a promise for new rows (`bounds`). `held_out_rows` holds
probabilities with their truth, and `tuning` finds the bias with which decisions on them come
nearest to the objective.
Both ask `counts`. The estimators around them are in `skdice.estimators.tuned`.
"""
