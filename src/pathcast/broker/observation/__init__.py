"""What a broker shows of itself: metrics, lag, traces."""
