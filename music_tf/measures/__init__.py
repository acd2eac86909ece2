"""What episodes show, in numpy."""
