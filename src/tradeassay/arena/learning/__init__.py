"""Reinforcement feedback: a learner on the Gymnasium market, and what its practice was worth."""
