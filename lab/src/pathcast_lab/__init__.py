"""The laboratory: experiments that compare Pathcast with the papers and with other systems."""
