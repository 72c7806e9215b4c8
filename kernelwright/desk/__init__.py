"""A model server whose model is a person: questions become files, and files are the answers.

`folder.py` has the files, `replies.py` the forms in which OpenAI's endpoints answer, `app.py` the addresses.
"""
