"""The broker's HTTP surface: routes, what they accept, what they answer."""
