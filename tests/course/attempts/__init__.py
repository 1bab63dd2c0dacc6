"""What students hand in: per exercise a module with RIGHT, differently written solutions that must pass, and WRONG,
each with the words that its verdict must contain, since a wrong answer must fail for the right reason. What goes wrong
in every exercise alike stands in families.py."""
