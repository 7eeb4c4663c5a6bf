"""The broker as a process: its throughput, latency and scale, beside other brokers and bare web servers."""
