"""Many documents at once: the annotations on all links of an overlay, from one match of each document."""
