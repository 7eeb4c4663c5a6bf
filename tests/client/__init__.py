"""Tests of the clients, against real brokers."""
