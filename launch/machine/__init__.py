"""What runs on a machine that is attached to a notebook elsewhere: its hub, between the notebook and the ranks here."""
