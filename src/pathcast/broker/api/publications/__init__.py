"""What publishers send besides raw documents, and what they are answered."""
