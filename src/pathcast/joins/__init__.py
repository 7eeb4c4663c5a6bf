"""Select-join subscriptions over tables that change: each client is told only what it lacks."""
