"""`ringside room CHAPTER`: a chapter's questions on the phones of the room, answers as bars on the lecturer's page."""
