"""One solution per exercise, named after it. Students load them into a cell, chapters and tests import them."""
